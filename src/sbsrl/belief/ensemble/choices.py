"""What can be chosen about an ensemble."""

from dataclasses import dataclass

from ...errors import UserError
from ...spread import SPREADS
from ...validation import Number, Switch, Whole, Word, declared, validate
from .model import NOISY

__all__ = ["EnsembleChoices"]


@dataclass(frozen=True)
class EnsembleChoices:
    """Sizes and training of the networks, and how samples are made of them."""

    networks: int = declared(Whole(2, 100), 5, "M: networks of the ensemble")
    width: int = declared(Whole(4, 4096), 128, "neurons per layer")
    layers: int = declared(Whole(1, 8), 2, "hidden layers")
    units: str = declared(
        Word(SPREADS),
        "deviation",
        "in which units of the data networks see states: standard deviations, or those of the eight tenths in the "
        "middle",
    )
    cost_width: int = declared(Whole(4, 4096), 64, "neurons per layer of the networks of the costs")
    samples: str = declared(
        Word(("combinations", "members")),
        "combinations",
        "what samples are: random combinations of the networks, drawn anew, or (the paper's) the networks themselves",
    )
    kappa: float = declared(
        Number(0, 100), 2.0, "how much wider samples are spread than the networks, at first; 1 is the paper's"
    )
    state_share: float = declared(
        Number(0.01, 1), 1.0, "of kappa, how much holds for dynamics and reward, which networks know better than costs"
    )
    adapted: bool = declared(Switch(), True, "whether kappa follows the tests on held-out and on executed episodes")
    kappa_rate: float = declared(Number(0, 10), 0.2, "eta: by how much a missed test raises log kappa")
    misses: float = declared(Number(0, 1), 0.1, "alpha: share of the tests that may be missed in the long run")
    kappa_least: float = declared(Number(0, 100), 1.25, "kappa is never below")
    kappa_most: float = declared(Number(0, 100), 3.0, "kappa is never above")
    tolerance: float = declared(
        Number(0, 10), 0.1, "share of the budget by which a cost may exceed all predictions without being a miss"
    )
    test_steps: int = declared(
        Whole(0, 100_000),
        0,
        "control steps of an executed episode that samples predict at a time, from states that it came to, where they "
        "are not to be trusted for all of it; 0: the whole episode, from its first state",
    )
    prior_scale: float = declared(
        Number(0, 100), 3.0, "size of the frozen random network that is added to every predicted cost; 0 is none"
    )
    prior_stretch: float = declared(
        Number(0, 100), 1.5, "over what distances it varies: the standard deviation of the data divided by this"
    )
    cost_weight: float = declared(Number(0), 4.0, "what errors of the cost are worth in the training of the networks")
    cost_cap: float = declared(
        Number(0),
        0.0,
        "the largest cost of a step that is believed possible, where no task knows it; 0: twice that of the data",
    )
    noisy: str = declared(
        Word(NOISY),
        "always",
        "when predictions are drawn with the variance that the networks predict; of a system without noise that is "
        "their own error, and training with it makes policies robust",
    )
    batch: int = declared(Whole(1, 100_000), 256, "transitions per update of each network")
    costly_share: float = declared(Number(0, 1), 0.1, "share of each batch taken from transitions that cost something")
    new_share: float = declared(Number(0, 1), 0.5, "share of each batch taken from episodes of this run, if any")
    offline_updates: int = declared(Whole(1, 10_000_000), 3000, "most updates with the offline data")
    online_updates: int = declared(Whole(0, 10_000_000), 150, "updates after each episode")

    def __post_init__(self) -> None:
        validate(self, "belief.")
        if self.kappa_least > self.kappa_most:
            raise UserError(
                f"belief.kappa_least={self.kappa_least:g} is above belief.kappa_most={self.kappa_most:g}: swap them."
            )
