"""The race car's track as its samples see it: two moments of a run side by side, as a picture and as a film."""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.text import Text
from matplotlib.ticker import MultipleLocator
from PIL import Image

from ..tasks.pictures.race_car import car_outlines
from ..tasks.race_car import GOAL_RADIUS, OBSTACLE_RADIUS, OBSTACLES, START
from .canvas import plt, png
from .charts import UNSAFE
from .drives import Drives

__all__ = ["CHARGED", "DRAWN", "Moment", "draw", "film", "frame_times", "places"]

LEFT, RIGHT, BOTTOM, TOP = -0.62, 1.72, -1.40, 0.94
"""What is shown of the track, in metres. It is a square."""
GRID = 118
"""Places on each side of it at which samples are asked what they charge: one every two centimetres."""
CHARGED = 0.5
"""The share of the energy from which on a place counts as one that costs."""

PAPER, SAMPLE, TRUE, FEARED, GOAL = "#FBFAF7", "#2F7FB5", "#1A1A1A", "#E9A23B", "#4B9B63"
RUBBER, EDGE, WORDS = "#CDCCC7", "#85847F", "#6B6A66"


class Moment(NamedTuple):
    """What was believed and what was true at one time of a run, under the policy of that time."""

    title: str
    told: Drives
    """On every sample."""
    true: Drives
    charge: Float[np.ndarray, "n gy gx"]
    """Which share of its energy each sample charges a car at the places of the picture."""

    @property
    def feared(self) -> Float[np.ndarray, "gy gx"]:
        """The most that any sample charges at each place. Where that is much is the tightened obstacle."""
        return self.charge.max(axis=0)

    @property
    def steps(self) -> int:
        """Of an episode."""
        return self.true.costs.shape[-1]


def places() -> Float[np.ndarray, "gy gx 2"]:
    """A grid over what is shown."""
    return np.stack(np.meshgrid(np.linspace(LEFT, RIGHT, GRID), np.linspace(BOTTOM, TOP, GRID)), axis=-1)


STILL = 100
"""The step at which the picture shows the cars: the first policy is on its way then, the last one at the goal."""


def draw(moments: Sequence[Moment], budget: float) -> bytes:
    """A PNG: whole trajectories, and cars that are on their way."""
    stage = _Stage(moments, budget)
    stage.show(moments[0].steps, min(STILL, moments[0].steps))
    return png(stage.figure)


EVERY, FRAME, HOLD = 4, 80, 2000
"""Steps between two frames; for how long a frame is seen, and the last one, in milliseconds."""


def frame_times(steps: int) -> list[int]:
    """The steps that the frames of a film show, the last one included."""
    return [*range(0, steps, EVERY), steps]


def film(moments: Sequence[Moment], budget: float) -> bytes:
    """An animated GIF of the episodes, which begin together."""
    stage, times = _Stage(moments, budget), frame_times(moments[0].steps)
    frames = [stage.frame(t) for t in reversed(times)][::-1]
    palette = frames[-1].quantize(
        COLOURS, kmeans=1
    )  # of the last frame, which has all of them: what stays does not flicker
    first, *others = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames)
    buffer, shown = io.BytesIO(), [*[FRAME] * len(others), HOLD]
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=shown, loop=0, optimize=False)
    plt.close(stage.figure)
    return buffer.getvalue()


COLOURS = 128
"""Of a film: enough for smooth edges."""

WIDE, SIDE, GAP, HEAD, METER, FOOT = 9.0, 0.16, 0.3, 0.42, 0.6, 0.5
"""Inches: the figure, its margins, the gap between tracks, the space above them, a meter, the space below it."""
TRACK = (WIDE - 2 * SIDE - GAP) / 2
UNDER = FOOT + METER + 0.12
HIGH = HEAD + TRACK + UNDER


class _Stage:
    """A figure with a track and a meter for each of two moments."""

    def __init__(self, moments: Sequence[Moment], budget: float) -> None:
        self.figure = Figure(figsize=(WIDE, HIGH), facecolor="white")
        FigureCanvasAgg(self.figure)
        most = max(budget, *(moment.told.totals.mean(axis=1).max() for moment in moments))
        followed = _followed(moments[0])
        self._parts: list[_Track | _Meter] = []
        for i, moment in enumerate(moments):
            x = SIDE + i * (TRACK + GAP)
            track, meter = self._axes(x, UNDER, TRACK), self._axes(x, FOOT, METER)
            self._parts += [_Track(track, moment, followed), _Meter(meter, moment, budget, most)]
            if not i:
                _name(track, len(moment.told.costs))

    def _axes(self, x: float, y: float, high: float) -> Axes:
        """A place of the figure, in inches, as wide as a track."""
        return self.figure.add_axes((x / WIDE, y / HIGH, TRACK / WIDE, high / HIGH))

    def show(self, until: int, cars: int) -> None:
        """Trajectories and costs up to a step, and the cars at a step."""
        for part in self._parts:
            part.show(until, cars)

    def frame(self, t: int) -> Image.Image:
        """What is seen at a step of the film."""
        self.show(t, t)
        canvas = self.figure.canvas
        assert isinstance(canvas, FigureCanvasAgg)
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])


DRAWN = 8
"""Of the initial states, how many have their trajectories drawn: more would hide one another."""


def _followed(moment: Moment) -> int:
    """The one of those drawn from which the dearest sample costs most: it has cars."""
    return int(np.argmax(moment.told.totals[moment.told.dearest, :DRAWN]))


class _Track:
    """What drives: trajectories from some initial states, faint but for one of them, from which cars are drawn."""

    def __init__(self, axes: Axes, moment: Moment, followed: int) -> None:
        _ground(axes, moment)
        worst = moment.told.dearest
        others = [i for i in range(len(moment.told.costs)) if i != worst]
        self._groups = [
            _Group(axes, moment.told, others, followed, SAMPLE, 0.45),
            _Group(axes, moment.told, [worst], followed, UNSAFE, 0.85),
            _Group(axes, moment.true, [0], followed, TRUE, 1.0),
        ]

    def show(self, until: int, cars: int) -> None:
        for group in self._groups:
            group.show(until, cars)


class _Group:
    """The episodes of some models, in one colour."""

    def __init__(
        self, axes: Axes, drives: Drives, models: list[int], followed: int, colour: str, opacity: float
    ) -> None:
        positions, layer = drives.positions[models, :DRAWN], 4 + opacity
        self._others = np.delete(positions, followed, axis=1).reshape(-1, *positions.shape[2:])
        self._own, self._headings = positions[:, followed], drives.headings[models, followed]
        self._faint = LineCollection([], colors=colour, linewidths=0.6, alpha=0.5 * opacity, zorder=layer)
        self._trails = LineCollection([], colors=colour, linewidths=1.5, alpha=opacity, zorder=layer + 2)
        self._cars = PolyCollection(
            [], facecolors=colour, edgecolors="white", linewidths=0.6, alpha=opacity, zorder=layer + 4
        )
        for part in (self._faint, self._trails, self._cars):
            axes.add_collection(part)

    def show(self, until: int, cars: int) -> None:
        self._faint.set_segments(list(self._others[:, : until + 1]))
        self._trails.set_segments(list(self._own[:, : until + 1]))
        self._cars.set_verts(list(car_outlines(self._own[:, cars], self._headings[:, cars])))


def _ground(axes: Axes, moment: Moment) -> None:
    """What does not move: feared places, tyres, goal."""
    x, y = np.moveaxis(places(), -1, 0)
    axes.contourf(x, y, moment.feared, levels=[CHARGED, np.inf], colors=[FEARED], alpha=0.25, zorder=1)
    axes.contour(x, y, moment.feared, levels=[CHARGED], colors=[FEARED], linewidths=1.3, zorder=3)
    for centre in OBSTACLES:
        for radius, colour in ((OBSTACLE_RADIUS, RUBBER), (0.46 * OBSTACLE_RADIUS, PAPER)):
            axes.add_patch(Circle(centre, radius, facecolor=colour, edgecolor=EDGE, linewidth=0.9, zorder=2))
    axes.add_patch(Circle((0, 0), GOAL_RADIUS, facecolor=GOAL, alpha=0.16, zorder=1))
    axes.add_patch(Circle((0, 0), GOAL_RADIUS, facecolor="none", edgecolor=GOAL, linewidth=1.2, zorder=2))
    axes.text(0, GOAL_RADIUS + 0.05, "goal", color=GOAL, ha="center", va="bottom", fontsize=10)
    axes.set_title(moment.title, fontsize=12, loc="left", pad=7)
    axes.set_title(f"return {moment.true.returns.mean():.0f}", fontsize=10.5, loc="right", pad=7, color=WORDS)
    axes.set(xlim=(LEFT, RIGHT), ylim=(BOTTOM, TOP), xticks=[], yticks=[], aspect="equal", facecolor=PAPER)
    axes.spines[:].set_visible(False)


def _name(axes: Axes, samples: int) -> None:
    """Names in the colours of what they name, where hardly anything drives."""
    names = ((f"{samples} samples", SAMPLE), ("the dearest sample", UNSAFE), ("what really happens", TRUE))
    for i, (text, colour) in enumerate(names):
        axes.text(
            LEFT + 0.06,
            BOTTOM + 0.30 - 0.115 * i,
            text,
            color=colour,
            fontsize=10,
            zorder=12,
            path_effects=_outlined(PAPER),
        )
    axes.text(1.37, 0.55, "some sample\nexpects a cost", color="#8A5A0B", ha="center", fontsize=10, linespacing=1.3)
    axes.text(*OBSTACLES[-1], "tyres", color=WORDS, ha="center", va="center", fontsize=9, zorder=3)
    axes.text(START[0], START[1] - 0.28, "start", color=WORDS, ha="center", fontsize=10)


class _Meter:
    """The mean cost over the initial states, on every sample and in truth, against the budget that bounds it."""

    def __init__(self, axes: Axes, moment: Moment, budget: float, most: float) -> None:
        self._told, self._true = moment.told.spent.mean(axis=1), moment.true.spent[0].mean(axis=0)
        self._worst = moment.told.dearest
        axes.axvspan(budget, 2 * most, color=UNSAFE, alpha=0.07, linewidth=0)
        axes.axvline(budget, color=UNSAFE, linewidth=1.3)
        axes.annotate(
            "budget", (budget, -0.62), (5, 0), textcoords="offset points", va="center", color=UNSAFE, fontsize=9
        )
        self._samples = axes.scatter([], [], s=46, color=SAMPLE, alpha=0.4, linewidths=0, zorder=3)
        self._dearest = axes.scatter([], [], s=46, color=UNSAFE, linewidths=0, zorder=4)
        self._truth = axes.scatter([], [], s=110, color=TRUE, marker="|", linewidths=2.4, zorder=5)
        self._above, self._below = _number(axes, UNSAFE, 0.62), _number(axes, TRUE, -0.66)
        axes.set(xlim=(-0.04 * most, 1.22 * most), ylim=(-1, 1), yticks=[])
        axes.xaxis.set_major_locator(MultipleLocator(5.0))
        axes.tick_params(labelsize=9, color=EDGE, labelcolor=WORDS, length=3)
        axes.set_xlabel(
            f"cost of an episode (J), mean from {moment.true.costs.shape[1]} starts", fontsize=9, color=WORDS
        )
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(EDGE)

    def show(self, until: int, cars: int) -> None:
        told, true = self._told[:, until], float(self._true[until])
        dearest = float(told[self._worst])
        self._samples.set_offsets(np.stack([told, np.zeros_like(told)], axis=1))
        self._dearest.set_offsets([[dearest, 0.0]])
        self._truth.set_offsets([[true, 0.0]])
        for text, value in ((self._above, dearest), (self._below, true)):
            text.set_x(value)
            text.set_text(f"{value:.1f}")


def _number(axes: Axes, colour: str, height: float) -> Text:
    """A number that is to move along a meter."""
    return axes.text(0, height, "", color=colour, ha="center", va="center", fontsize=9, path_effects=_outlined("white"))


def _outlined(colour: str) -> list[AbstractPathEffect]:
    """Letters that can be read where they cross a line."""
    return [withStroke(linewidth=3, foreground=colour)]
