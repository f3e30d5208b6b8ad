"""One episode over time: states, actions, and costs against the budget, with what the samples foretold behind."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..costs import Cost
from ..runs.look import Look
from .canvas import plt, png
from .charts import UNSAFE, limit, tidy

__all__ = ["draw_episode"]

MOST_STATES = 8
"""Panels of states: of more, the last ones are shown, the newest of a window of observations."""
LONGEST = 28
"""Letters of a name that fit beside a panel."""
TRUE, FORETOLD, ACTION = "#222222", "#7BA7C7", "#1D6996"


def draw_episode(look: Look) -> bytes:
    """The picture, as a PNG."""
    task = look.experiment.task
    shown = list(range(task.state_size - task.unobserved))[-MOST_STATES:]
    panels = len(shown) + task.action_size + len(task.costs)
    columns = 1 if panels <= 4 else 2
    rows = -(-panels // columns)
    figure, grid = plt.subplots(
        rows, columns, sharex=True, squeeze=False, figsize=(6.6 * columns, 1.75 * rows + 1.0), layout="constrained"
    )
    axes = list(grid.T.ravel())
    for panel, i in zip(axes, shown, strict=False):
        _draw_state(panel, look, i)
    for j in range(task.action_size):
        _draw_action(axes[len(shown) + j], look, j)
    for k, cost in enumerate(task.costs):
        _draw_cost(axes[len(shown) + task.action_size + k], look, k, cost)
    for panel in axes[panels:]:
        panel.set_visible(False)
    for panel in (*grid[-1], axes[panels - 1]):
        panel.set_xlabel("control step")
        panel.tick_params(labelbottom=True)
    figure.suptitle(_title(look), fontsize=11)
    return png(figure)


def _title(look: Look) -> str:
    record = look.record
    verdict = "safe" if record.safe else f"exceeds the budget by {record.violation:.3g}"
    title = (
        f"{look.experiment.task.name}, episode {record.episode} ({record.phase}): return {record.reward:.4g}, {verdict}"
    )
    if look.forecast is None:
        return title
    count, window = len(look.forecast.states), look.forecast.window
    return f"{title}\nblue: {count} samples, asked anew every {window} steps; black: what happened"


def _draw_state(axes: Axes, look: Look, i: int) -> None:
    states = look.episode.states[:, i]
    if look.forecast is not None:
        _fan(axes, states[:-1], look.forecast.states[:, :, i], look.forecast.window)
    axes.plot(states, color=TRUE, linewidth=1.4, zorder=3)
    _see(axes, states)
    _tidy(axes, look.experiment.task.state_names[i])


def _fan(axes: Axes, begins: Float[np.ndarray, " T"], foretold: Float[np.ndarray, "M T"], window: int) -> None:
    """Each stretch of each forecast from the true state where it began."""
    for start in range(0, foretold.shape[1], window):
        stretch = foretold[:, start : start + window]
        lines = np.concatenate([np.full((len(stretch), 1), begins[start]), stretch], axis=1)
        axes.plot(np.arange(start, start + lines.shape[1]), lines.T, color=FORETOLD, linewidth=0.6, alpha=0.5, zorder=2)


def _see(axes: Axes, values: Float[np.ndarray, " n"], *levels: float) -> None:
    """What really happened fills the panel, whatever samples foretell."""
    known = [*values, *levels]
    low, high = float(np.min(known)), float(np.max(known))
    room = 0.12 * (high - low) or 0.5 * (1 + abs(high)) * 1e-3
    axes.set_ylim(low - room, high + room)


def _draw_action(axes: Axes, look: Look, j: int) -> None:
    taken, low, high = (
        look.episode.actions[:, j],
        look.experiment.task.action_low[j],
        look.experiment.task.action_high[j],
    )
    axes.step(np.arange(len(taken) + 1), np.append(taken, taken[-1:]), where="post", color=ACTION, linewidth=1.2)
    for level in (low, high):
        axes.axhline(level, color="#bbbbbb", linewidth=0.8, linestyle=":")
    _see(axes, np.array([low, high]))
    _tidy(axes, "action" if look.experiment.task.action_size == 1 else f"action {j}")


def _draw_cost(axes: Axes, look: Look, k: int, cost: Cost) -> None:
    """Each step where every step is bounded; the sum so far where the sum is."""
    charged, sums = look.episode.costs[:, k], cost.aggregation == "sum"
    path = np.cumsum(charged) if sums else charged
    steps = np.arange(1, len(path) + 1)
    if look.forecast is not None:
        foretold = look.forecast.costs[:, :, k]
        for start in range(0, foretold.shape[1], look.forecast.window):
            stretch = foretold[:, start : start + look.forecast.window]
            lines = (path[start - 1] if start else 0.0) + np.cumsum(stretch, axis=1) if sums else stretch
            axes.plot(steps[start : start + lines.shape[1]], lines.T, color=FORETOLD, lw=0.6, alpha=0.5, zorder=2)
    axes.plot(steps, path, color=TRUE, linewidth=1.4, zorder=3)
    beyond = path > cost.budget
    axes.scatter(steps[beyond], path[beyond], color=UNSAFE, s=12, zorder=4)
    limit(axes, cost.budget, f"budget\n{cost.budget:g}", UNSAFE, "-")
    given = look.experiment.settings.method.tightening
    axes.axhspan(cost.budget - given[k % len(given)], cost.budget, color=UNSAFE, alpha=0.12, linewidth=0)
    _see(axes, path, cost.budget)
    _tidy(axes, f"{cost.name}, summed" if sums else cost.name)


def _tidy(axes: Axes, name: str) -> None:
    axes.set_ylabel(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
