"""What can be chosen about the actor-critic."""

from dataclasses import dataclass

from ...validation import Number, Switch, Whole, declared
from ..network.choices import NetworkChoices

__all__ = ["ActorCriticChoices"]


@dataclass(frozen=True)
class ActorCriticChoices(NetworkChoices):
    """Rollouts of the models, critics, and the actor."""

    policy_rate: float = declared(Number(0, 1), 1e-4, "learning rate of the policy")
    updates: int = declared(Whole(1, 100_000), 40, "updates of the policy per round")
    margin: float = declared(
        Number(0, 1), 0.5, "share of its bound by which training keeps a cost below what the gate demands"
    )
    rollouts: int = declared(Whole(1, 10_000), 16, "rollouts on every sample, and on the nominal model")
    rollout_steps: int = declared(Whole(1, 10_000), 25, "control steps of a rollout between two updates of the policy")
    rollout_parts: int = declared(
        Whole(1, 10_000), 4, "times a rollout from a recorded state goes on where it stopped, before it begins anew"
    )
    fresh: float = declared(
        Number(0, 1), 0.5, "share of the rollouts that begin at initial states and go on for a whole episode"
    )
    trace: float = declared(
        Number(0, 1), 0.97, "lambda: how far targets follow a rollout before they ask the critics; 0 is one step"
    )
    critic_rate: float = declared(Number(0, 1), 1e-3, "learning rate of the critics")
    critic_updates: int = declared(Whole(1, 10_000), 16, "updates of the critics per update of the policy")
    critic_batch: int = declared(Whole(1, 1_000_000), 256, "steps per update of the critics")
    actor_batch: int = declared(Whole(1, 1_000_000), 512, "states per update of the policy")
    constraint_starts: int = declared(Whole(1, 10_000), 16, "initial states at which constraints are evaluated")
    replayed: bool = declared(
        Switch(), False, "whether constraints are evaluated at recorded states instead of initial ones"
    )
    first_fit: int = declared(
        Whole(0, 100_000), 150, "updates with the policy held, so that critics know the clone before it changes"
    )
    std: float = declared(Number(1e-3, 1), 0.2, "standard deviation of actions while it trains, at first")
    entropy: float = declared(Number(), -0.5, "entropy that the policy is to have while it trains, per action")
    anchor: float = declared(
        Number(0), 0.03, "weight of the squared distance from the actions of the policy at the beginning of a round"
    )
    averaging: float = declared(
        Number(1e-3, 1), 0.1, "weight of the newest policy in the running mean over a round, which is what is kept"
    )
