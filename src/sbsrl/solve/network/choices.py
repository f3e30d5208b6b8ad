"""What can be chosen about policies that are networks, however they are trained."""

from dataclasses import dataclass

from ...spread import SPREADS
from ...validation import Number, Switch, Whole, Word, declared, validate
from .lagrangian import PENALTIES

__all__ = ["NetworkChoices"]

RETURNED = ("tried", "newest")


@dataclass(frozen=True)
class NetworkChoices:
    """The policy's network, how constraints enter its training, the gate, and the offline phase."""

    policy_width: int = declared(Whole(1, 4096), 64, "neurons per layer of the policy")
    policy_layers: int = declared(Whole(0, 8), 2, "hidden layers of the policy; 0 is a linear one")
    policy_rate: float = declared(Number(0, 1), 3e-4, "learning rate of the policy")
    units: str = declared(
        Word(SPREADS),
        "deviation",
        "in which units of the data networks see states: standard deviations, or those of the eight tenths in the "
        "middle, where a few falls would make everything else look small",
    )
    updates: int = declared(Whole(1, 100_000), 10, "updates of the policy per round")
    rounds: int = declared(
        Whole(1, 10_000), 1, "rounds per episode, and between two checks; multipliers of segments change once in each"
    )
    robust: bool = declared(
        Switch(), False, "whether the return is the mean over the nominal model and all samples; no is the paper's"
    )
    pieces: int = declared(
        Whole(0, 100_000),
        0,
        "H: control steps for which models are followed from states that were visited, where they are not to be "
        "trusted for whole episodes; what is found is taken T / H times; 0: whole episodes from initial states",
    )
    recent: float = declared(
        Number(0, 1), 0.5, "share of those states from the last episodes, once there are any; the others are recorded"
    )
    radius: float = declared(
        Number(0, 2),
        0.0,
        "how far, at first, actions may be from those of the last policy that proved itself: root mean square over "
        "visited states, as a share of half their range; adapted after every episode; what that policy really cost "
        "more than is foretold of it is added to every forecast; 0 sets no limit; needs pieces",
    )
    corrected: bool = declared(
        Switch(),
        False,
        "whether bounds are divided by how many times what was foretold of the last policies they really cost, at "
        "first by how many times what is foretold of their clone the data cost; with a radius what the policy it is "
        "about costs more is always subtracted",
    )
    steered: int = declared(
        Whole(0, 10_000),
        0,
        "trains only what the policy makes of so many numbers at the end of the state, a clock's, say: what it makes "
        "of the others, its feedback, stays as it was cloned; 0 trains all",
    )
    discount: float = declared(Number(0, 0.9999), 0.99, "of the critics, where there are any")
    critic_width: int = declared(Whole(1, 4096), 64, "neurons per layer of the critics")
    checks: int = declared(Whole(1, 1000), 3, "checks that a policy may fail before an earlier one is played")
    refuted: bool = declared(
        Switch(), False, "whether training goes on with the samples of the last check, on which the policy failed"
    )
    good: float = declared(
        Number(0, 1), 0.5, "share of every budget that a policy may really have cost, to be one to come back to"
    )
    returned: str = declared(
        Word(RETURNED),
        "tried",
        "which policy is returned in the end: the newest, or (tried) one that was played and really earned "
        "more than the newest can be expected to",
    )
    check_starts: int = declared(Whole(1, 100_000), 16, "initial states of a check")
    penalty: str = declared(
        Word(PENALTIES), "augmented", "how constraints enter the objective: augmented Lagrangian, primal-dual, or fixed"
    )
    safety_weight: float = declared(Number(0), 5.0, "what all safety constraints together are worth")
    curvature: float = declared(
        Number(1e-9), 1.0, "c of the augmented Lagrangian; the weight itself of fixed penalties"
    )
    multiplier_rate: float = declared(Number(0), 0.1, "eta: by how much a multiplier follows its constraint per update")
    multiplier_limit: float = declared(Number(0), 20.0, "multipliers are never above")
    margin: float = declared(
        Number(0, 1), 0.0, "share of its bound by which training keeps a cost below what the gate demands"
    )
    trust: float = declared(
        Number(0), 10.0, "upper bound on J_sigma while training, which keeps policies near the data; 0 sets none"
    )
    trust_weight: float = declared(Number(0), 2.0, "what exceeding it is worth")
    cloning_updates: int = declared(Whole(0, 10_000_000), 2000, "updates that clone the behaviour of the offline data")
    offline_rate: float = declared(
        Number(0, 1), 0.0, "learning rate at the beginning of the offline phase, from which it falls; 0: policy_rate"
    )
    free_blocks: int = declared(Whole(0, 100_000), 0, "offline blocks before safety constraints count")
    annealing: int = declared(
        Whole(0, 100_000), 0, "offline blocks in which bounds fall from what the policy costs to their own"
    )
    offline_blocks: int = declared(
        Whole(0, 100_000), 10, "most times the rounds of an episode are made with the offline data alone"
    )
    offline_patience: int = declared(
        Whole(1, 100_000), 2, "times without improvement on fresh samples after which that ends"
    )

    def __post_init__(self) -> None:
        validate(self, "solver.")
