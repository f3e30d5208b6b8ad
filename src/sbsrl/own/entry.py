"""A user's system in the place of a task of this package."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..archive import packed
from ..errors import UserError
from ..task import Task
from ..transitions import Transitions
from ..validation import Numbers
from .data import Recorded, checked, read_recorded, with_signals
from .description import Description
from .knowledge import Knowledge, MethodNumbers, read_knowledge
from .names import find, is_local
from .settings import OwnSettings
from .signals import Sources
from .system import OwnSystem
from .task import make_own_task

__all__ = ["OwnEntry", "archived", "read_own"]


@dataclass(frozen=True)
class OwnEntry:
    """Makes tasks of one system. What is known of it is the file that the setting `prior` names."""

    spec: str

    @property
    def settings(self) -> Any:
        return OwnSettings

    def presets(self, changes: Mapping[str, Any] | None = None) -> Mapping[str, Mapping[str, Any]]:
        """What the prior that the changes name proposes for settings that the user does not choose."""
        given = changes or {}
        prior = str(given.get("prior", given.get("run.prior", "")))
        knowledge = self.knowledge(prior)
        return {"cpu": self.proposed(knowledge.belief, knowledge.method)}

    @staticmethod
    def proposed(belief: str, numbers: MethodNumbers) -> dict[str, Any]:
        """Settings that follow from a belief and its numbers."""
        return {
            "tightening": numbers.tightening,
            "exploration_threshold": numbers.exploration_threshold,
            "method.samples": numbers.samples,
            "belief": belief,
            "solver": "gradient" if belief == "ensemble" else "icem",
        }

    def make(self, prior: str, budget: Any, settings: Any, data: str) -> Task:
        """The task with the prior of that file, and the data of that one."""
        system, knowledge = OwnSystem(self.spec, settings or OwnSettings()), self.knowledge(prior)
        if budget is None:
            raise UserError(f"the budget of {self.spec} is yours to say: how much may an episode cost? Give budget=...")
        return make_own_task(
            system, knowledge, Numbers().read("budget", budget), read_own(system, knowledge.shape, data)
        )

    def knowledge(self, prior: str) -> Knowledge:
        """What the file says."""
        if not prior:
            raise UserError(f"nothing is known of {self.spec} yet; make a prior with 'sbsrl prior {self.spec}'.")
        if is_local(prior):
            known: Knowledge = find(prior, "prior")
            return known
        return read_knowledge(Path(prior))

    def prior_content(self, prior: str) -> bytes:
        """The file, for the run's own copy of it."""
        return self.knowledge(prior).content if is_local(prior) else Path(prior).read_bytes()

    def data_content(self, settings: Any, prior: str, data: str) -> bytes:
        """The recorded data as an archive, whatever they were read from."""
        system = OwnSystem(self.spec, settings)
        return archived(read_own(system, self.knowledge(prior).shape, data))


def archived(data: Transitions | None) -> bytes:
    """Transitions as an archive that can be read as recorded data."""
    return packed("recorded data", {} if data is None else data._asdict())


def read_own(system: OwnSystem, shape: Description, data: str) -> Transitions | None:
    """Recorded data of a system, with its reward and its costs; None where there are none."""
    if not data:
        return None
    names = [name for name, _ in system.settings.costs]
    found = (
        checked(_in_memory(find(data, "data"), names), shape) if is_local(data) else read_recorded(data, shape, names)
    )
    return with_signals(found, Sources.of(system.settings), names)


def _in_memory(data: Transitions, costs: list[str]) -> Recorded:
    columns = dict(zip(costs, np.asarray(data.costs, float).T, strict=False))
    return Recorded(
        "the data",
        data.states,
        data.actions,
        data.next_states,
        data.rewards,
        columns,
        np.asarray(data.terminated, bool),
    )
