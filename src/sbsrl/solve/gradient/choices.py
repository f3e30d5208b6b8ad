"""What can be chosen about gradients through the samples."""

from dataclasses import dataclass

from ...validation import Number, Whole, declared
from ..network.choices import NetworkChoices

__all__ = ["GradientChoices"]


@dataclass(frozen=True)
class GradientChoices(NetworkChoices):
    """How much of the samples' episodes gradients go through."""

    each: int = declared(Whole(1, 10_000), 2, "episodes on every sample per update")
    nominal: int = declared(Whole(1, 10_000), 6, "episodes on the nominal model per update")
    segment: int = declared(
        Whole(0, 100_000), 0, "control steps that gradients go through, with critics for the rest; 0 is whole episodes"
    )
    recalled: float = declared(Number(0, 1), 0.0, "share of the segments that begin at states of the offline data")
    unsteadiness: float = declared(
        Number(0, 1), 0.1, "noise on the actions of the models' episodes while training, a share of half their range"
    )
    steepest: float = declared(
        Number(0),
        0.0,
        "longest slope of the objective by a state of a single row, in standard deviations, on the way back through an "
        "episode: keeps unstable systems from drowning it in noise; 0 sets no limit",
    )
