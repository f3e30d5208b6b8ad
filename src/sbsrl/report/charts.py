"""Bars and curves over seeds, as in the paper."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .statistics import summarise

__all__ = ["COLOURS", "UNSAFE", "draw_bars", "draw_curves", "limit", "tidy"]

COLOURS = ("#1D6996", "#E17C05", "#38A6A5", "#73AF48", "#94346E", "#666666", "#CC503E", "#5F4690", "#EDAD08")
"""Told apart by the colour-blind, and in the order in which arms are listed."""

UNSAFE = "#C8102E"


def draw_bars(axes: Axes, values: Mapping[str, Float[np.ndarray, " seeds"]]) -> None:
    """Mean and standard deviation of each arm as a bar, every seed as a dot."""
    for i, (each, colour) in enumerate(zip(values.values(), cycle(COLOURS), strict=False)):
        found = summarise(list(each))
        axes.bar(i, found.mean, width=0.7, color=colour, alpha=0.75, zorder=2)
        axes.errorbar(i, found.mean, found.deviation, color="black", capsize=3, linewidth=1, zorder=3)
        axes.scatter(i + np.linspace(-0.18, 0.18, len(each)), each, s=9, color="black", alpha=0.6, zorder=4)
    axes.set_xticks(range(len(values)), list(values), rotation=30, ha="right", rotation_mode="anchor", fontsize=8)
    tidy(axes)


def draw_curves(
    axes: Axes, values: Mapping[str, Float[np.ndarray, "seeds episodes"]], colours: Sequence[str] = COLOURS
) -> None:
    """Mean and 95 % percentile interval over seeds, over episodes."""
    for (label, each), colour in zip(values.items(), cycle(colours), strict=False):
        found = [summarise(list(column)) for column in each.T]
        episodes = range(len(found))
        axes.plot(episodes, [s.mean for s in found], color=colour, label=label, marker="o", markersize=3, zorder=3)
        axes.fill_between(episodes, [s.low for s in found], [s.high for s in found], color=colour, alpha=0.15, zorder=2)
    axes.set_xlabel("episode")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)


def tidy(*many: Axes) -> None:
    """A light grid and no box."""
    for axes in many:
        axes.grid(axis="y", color="#e5e5e5", zorder=0)
        axes.spines[["top", "right"]].set_visible(False)


def limit(axes: Axes, height: float, text: str, colour: str = UNSAFE, style: str = "--") -> None:
    """A level that matters, with its name at its right end, outside, where it hides nothing."""
    axes.axhline(height, color=colour, linewidth=1.2, linestyle=style, zorder=1)
    axes.annotate(
        text,
        (1, height),
        xytext=(3, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
        color=colour,
    )
