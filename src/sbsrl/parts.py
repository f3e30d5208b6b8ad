"""Parts that are chosen by name: beliefs and solvers. A part is imported when it is used."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from .belief.protocol import Belief
from .errors import UserError, unknown
from .own.names import find
from .solve.protocol import Solver
from .task import Task
from .types import PRNGKey

__all__ = ["BELIEFS", "SOLVERS", "BeliefSettings", "Cloning", "Deciding", "Part", "SolverSettings", "find_part"]


@runtime_checkable
class BeliefSettings(Protocol):
    """The settings of a kind of belief, which also make it."""

    name: str
    calibrated: bool
    """Whether such a belief has confidence sets, without which nothing can be certified."""

    def create(self, task: Task, episodes: int, key: PRNGKey) -> Belief:
        """What is believed before the first episode, offline data included, with room for so many episodes.

        The key is of what is random in a belief from the start, such as the weights of networks.
        """
        ...

    def largest_uncertainty(self, task: Task) -> float:
        """What the uncertainty s_n of one step can be at most; infinite where nothing bounds it."""
        ...

    def describe(self, task: Task) -> dict[str, Any]:
        """What it believes in and how it samples, in words and numbers for the certificate."""
        ...

    def against_safety(self, task: Task) -> Iterator[str]:
        """Why the safety theorem does not apply to such a belief, a sentence each."""
        ...


@runtime_checkable
class SolverSettings(Protocol):
    """The settings of a kind of solver, which also make it."""

    name: str

    def create(self, task: Task) -> Solver:
        """The solver for a task; refuses tasks that it cannot solve."""
        ...

    def cost_error(self, task: Task) -> float:
        """By how much a computed J_c may be off; the tightening must cover it in addition to Delta_zeta."""
        ...

    def against_safety(self, task: Task) -> Iterator[str]:
        """Why the safety theorem does not apply to such a solver, a sentence each."""
        ...

    def against_optimality(self, task: Task) -> Iterator[str]:
        """Why the optimality theorem does not apply, a sentence each."""
        ...


@runtime_checkable
class Cloning(SolverSettings, Protocol):
    """The settings of solvers that make a policy of the offline data, which can be fallen back to."""

    @property
    def critics(self) -> bool:
        """Whether the policy is trained with critics, which know states and not what an episode has cost so far."""
        ...

    def has_prior_policy(self, task: Task) -> bool:
        """Whether there are data to make it of."""
        ...


@runtime_checkable
class Deciding(SolverSettings, Protocol):
    """The settings of solvers that plan as they go, which also make one that decides before the episode."""

    def deciding(self, task: Task) -> Solver:
        """A solver whose policies can be tried on whole episodes; refuses settings that mean nothing to it."""
        ...


class Part(NamedTuple):
    """A line about it, and where its settings are."""

    summary: str
    module: str
    settings_class: str

    def load(self) -> Any:
        """Its class of settings."""
        return find(f"{self.module}:{self.settings_class}", "part")


BELIEFS = {
    "gp": Part("an exact Gaussian process around a prior mean", "sbsrl.belief.settings", "GPSettings"),
    "ensemble": Part(
        "several probabilistic networks, whose combinations are samples",
        "sbsrl.belief.ensemble.settings",
        "EnsembleSettings",
    ),
}

SOLVERS = {
    "icem": Part("plans actions anew at every step", "sbsrl.solve.receding", "ICEMSettings"),
    "exact": Part("tries every policy of the task's lattice", "sbsrl.solve.policy_search", "ExactSettings"),
    "gradient": Part(
        "trains a network by gradients through every sample", "sbsrl.solve.gradient.settings", "GradientSettings"
    ),
    "actor-critic": Part(
        "trains a network with critics for every sample", "sbsrl.solve.actor_critic.settings", "ActorCriticSettings"
    ),
    "slsqp": Part("searches the task's policies by quadratic programs", "sbsrl.solve.slsqp", "SLSQPSettings"),
    "evolution": Part("searches the task's policies by iCEM", "sbsrl.solve.policy_search", "EvolutionSettings"),
}

PARTS = {"belief": BELIEFS, "solver": SOLVERS}
"""The groups of settings that are chosen by name."""


def find_part(group: str, name: str) -> Part:
    """The belief or solver of that name: one of this package, or module:Class with the settings of a user's own."""
    if name in PARTS[group]:
        return PARTS[group][name]
    if ":" not in name:
        raise unknown(group, name, PARTS[group])
    found = find(name, group)
    if not is_dataclass(found) or getattr(found, "name", None) != name:
        raise UserError(
            f"the {group} {name} must be a dataclass of settings with name = '{name}', by which config.json can find "
            "it again; see docs/extending.md."
        )
    module, _, settings_class = name.rpartition(":")
    return Part("your own", module, settings_class)
