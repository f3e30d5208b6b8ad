"""Pictures that are drawn without a screen. Import it before pyplot."""

import io

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

__all__ = ["plt", "png"]


def png(figure: Figure) -> bytes:
    """The finished figure as the content of a file; it cannot be drawn on any more."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, format="png")
    plt.close(figure)
    return buffer.getvalue()
