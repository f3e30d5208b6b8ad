"""One picture of the trade-off: a larger zeta needs fewer samples and more of the budget."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ..theory import Point, Premises
from ..theory.words import count, number
from .canvas import plt, png

__all__ = ["draw_tradeoff"]

BLUE, RED, GREY = "#1D6996", "#C8102E", "#555555"


def draw_tradeoff(premises: Premises, curve: Sequence[Point], name: str) -> bytes:
    """The samples that zeta needs above the tightening that it costs, as a PNG."""
    figure, (samples, tightening) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 6.4), layout="constrained")
    _draw_samples(samples, premises, curve)
    _draw_tightening(tightening, premises, curve)
    _mark_limit((samples, tightening), premises, curve)
    for axes in (samples, tightening):
        axes.set_xscale("log")
        axes.set_xlim(curve[0].zeta, curve[-1].zeta)
        axes.grid(color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    tightening.set_xlabel(r"$\zeta$: how close one sample must be to the true dynamics (units of the model)")
    figure.suptitle(f"{name}: what a sample's closeness $\\zeta$ costs", fontsize=12)
    return png(figure)


def _draw_samples(axes: Axes, premises: Premises, curve: Sequence[Point]) -> None:
    known = [point for point in curve if point.log10_samples is not None]
    axes.set_ylabel("samples needed, M")
    if not known:
        axes.set_yticks([])
        axes.annotate("B is not known,\nand with it M", (0.25, 0.5), xycoords="axes fraction", ha="center")
        return
    heights = [point.log10_samples or 0.0 for point in known]
    axes.plot([point.zeta for point in known], heights, color=BLUE, linewidth=2)
    if premises.samples is not None:
        heights.append(math.log10(premises.samples))
        _level(axes, heights[-1], f"$M$ = {count(premises.samples)} in use", GREY)
    if max(heights) > 100:
        axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, max(heights) * 1.3 + 0.3)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda height, _: f"$10^{{{height:.7g}}}$"))


def _draw_tightening(axes: Axes, premises: Premises, curve: Sequence[Point]) -> None:
    axes.plot([point.zeta for point in curve], [point.tightening for point in curve], color=BLUE, linewidth=2)
    axes.set_ylabel(r"$\Delta_\zeta$, tightening of the budget")
    optimistic = " at most (not known)" if premises.margin is None else ""
    _level(axes, premises.largest_margin, f"margin $\\Delta$ = {number(premises.largest_margin)}{optimistic}", RED)
    if premises.tightening:
        _level(axes, premises.tightening, f"in use: {number(premises.tightening)}", GREY, right=0.49)
    axes.set_yscale("log")
    axes.margins(y=0.12)


def _level(axes: Axes, height: float, text: str, colour: str, right: float | None = None) -> None:
    """A dashed line with a text above it, at the left or ending at a share of the width."""
    axes.axhline(height, color=colour, linestyle="--", linewidth=1.2)
    axes.annotate(
        text,
        (0.01 if right is None else right, height),
        ha="left" if right is None else "right",
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        va="bottom",
        fontsize=9,
        color=colour,
    )


def _mark_limit(panels: Sequence[Axes], premises: Premises, curve: Sequence[Point]) -> None:
    """Beyond zeta_max the tightening uses up the margin."""
    limit = premises.closeness_limit
    if not limit < curve[-1].zeta:
        return
    for axes in panels:
        axes.axvline(limit, color=RED, linewidth=1.2)
        axes.axvspan(limit, curve[-1].zeta, color=RED, alpha=0.08, linewidth=0)
    panels[-1].annotate(
        f"$\\zeta_{{max}}$ = {number(limit)}\nbeyond it the tightening\nuses up the margin",
        (limit, 0.2),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        va="bottom",
        fontsize=9,
        color=RED,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )
