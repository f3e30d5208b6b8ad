"""All settings of a run, in five groups. What a group has is declared beside what it sets.

A setting has a full name, such as `solver.horizon`, and its last part alone where no other group has the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from .errors import UserError, unknown
from .parts import PARTS, BeliefSettings, SolverSettings, find_part
from .systems.faults import STEP_TIMEOUT
from .task import TaskSettings
from .theory.binomial import planning_samples
from .validation import Kind, Number, Numbers, Switch, Whole, Word, declared, kinds, validate

__all__ = [
    "PRESETS",
    "MethodSettings",
    "RunSettings",
    "Settings",
    "Text",
    "make_settings",
    "parse_setting",
]


@dataclass(frozen=True)
class RunSettings:
    """What is run, for how long, and when it stops."""

    prior: str = declared(Word(), text="what is known beforehand: the name of one of the task's priors")
    budget: tuple[float, ...] = declared(Numbers(), text="d: bound on the aggregated cost of an episode, one per cost")
    data: str = declared(
        Word(),
        "",
        "offline transitions in place of those of the prior: a file of 'sbsrl collect'; or, where the system is "
        "simulated, BEHAVIOUR:EPISODES:SEED, which makes them",
    )
    offline_seed: int = declared(
        Whole(-1, 2**32 - 1), -1, "the randomness of what is learned offline, which runs may share; -1 takes the seed"
    )
    offline: str = declared(
        Word(), "", "the folder of a run whose offline phase this one begins with, in place of one of its own"
    )
    episodes: int = declared(Whole(1, 10_000), 10, "episodes on the true system before the final policy")
    stop_when_learned: bool = declared(
        Switch(), False, "stop as soon as exploration is infeasible (Algorithm 1) instead of going on greedily"
    )
    inconsistent: str = declared(
        Word(("stop", "prior")),
        "stop",
        "what to do when confidence sets have no common point: stop, or prior, which plays the prior policy then",
    )
    judged: int = declared(
        Whole(0, 100_000),
        0,
        "initial states from which every policy is simulated, on the task's equations or on another copy of it: its "
        "true mean cost for the "
        "ledger, never for the learner; 0 does not",
    )
    step_timeout: float = declared(
        Number(0), STEP_TIMEOUT, "seconds within which the true system must answer a step; 0 waits for ever"
    )

    def __post_init__(self) -> None:
        validate(self, "run.")


@dataclass(frozen=True)
class MethodSettings:
    """How Problem (1) is posed: samples, tightening, exploration."""

    tightening: tuple[float, ...] = declared(
        Numbers(Number(0)),
        text="Delta: by how much plans must stay below the budget, one for all costs or one per cost",
    )
    exploration_threshold: float = declared(
        Number(0), text="d_sigma: information that an episode must promise to explore (nats)"
    )
    exploration_decay: float = declared(
        Number(0, 1), 1.0, "factor by which exploration_threshold is multiplied after every episode"
    )
    samples: int = declared(
        Whole(1, 10_000), 30, "M: dynamics sampled from the belief per episode; with a risk, 3 / risk or more"
    )
    accuracy: float = declared(
        Number(0), 0.0, "epsilon: if positive, d_sigma^n follows from it (theorem 2) instead of exploration_threshold"
    )
    shrinking: bool = declared(
        Switch(), False, "multiply exploration_threshold by B / beta_n, as theorem 2 does, instead of keeping it fixed"
    )
    exploration_tolerance: float = declared(
        Number(0, 1), 0.05, "share of d_sigma that may be missing before exploration counts as infeasible"
    )
    monitor: int = declared(
        Whole(0, 100_000),
        0,
        "control steps between two looks ahead during an episode: the prior policy, or a last resort, takes over when "
        "the cost so far and the predicted rest exceed the budget on one of the samples; 0 never looks",
    )
    form: str = declared(Word(("sharp", "paper")), "sharp", "of the bounds on returns that theorem 2 uses")
    risk: float = declared(
        Number(0, 0.5),
        0.0,
        "probability with which an episode may violate, under the belief: a policy is played only if fresh draws show "
        "that; 0 promises nothing",
    )
    confidence: float = declared(
        Number(0.5, 1 - 1e-9), 0.95, "with which the draws of a run show that risk, of all its episodes together"
    )

    def __post_init__(self) -> None:
        validate(self, "method.")
        if self.risk:
            object.__setattr__(self, "samples", max(self.samples, planning_samples(self.risk)))


@dataclass(frozen=True)
class Settings:
    """What can be set with `--set key=value`."""

    run: RunSettings
    task: Any
    method: MethodSettings
    belief: BeliefSettings
    solver: SolverSettings

    def plain(self) -> dict[str, dict[str, Any]]:
        """All values, group by group, with the names of the parts: what config.json has."""
        return {
            "run": asdict(self.run),
            "task": asdict(self.task),
            "method": asdict(self.method),
            "belief": {"name": self.belief.name, **asdict(self.belief)},  # type: ignore[call-overload]
            "solver": {"name": self.solver.name, **asdict(self.solver)},  # type: ignore[call-overload]
        }


_SMALL = {"candidates": 124, "elites": 12, "iterations": 3}

PRESETS: dict[str, dict[str, Any]] = {
    "cpu": {},
    "paper": {
        "icem.candidates": 1000,
        "icem.elites": 100,
        "icem.iterations": 5,
        "icem.momentum": 0.2,
        "icem.colour": 0.2,
    },
    "smoke": {
        "run.episodes": 3,
        "method.samples": 8,
        "gp.features": 64,
        "ensemble.offline_updates": 200,
        "ensemble.online_updates": 10,
        "solver.cloning_updates": 200,
        "solver.offline_blocks": 2,
        "solver.rounds": 1,
        "solver.checks": 1,
        "actor-critic.updates": 5,
        "actor-critic.first_fit": 10,
        **{f"{part}.{name}": n for part in ("icem", "evolution") for name, n in _SMALL.items()},
    },
}
"""What a preset changes, by group or by the name of a part; a task may have presets of its own."""

DEFAULT_PARTS = {"belief": "gp", "solver": "icem"}


class Text(str):
    """A value as it was typed, to be read in the kind of its setting."""

    __slots__ = ()


def parse_setting(text: str) -> tuple[str, Text]:
    """'key=value' in two; the value is read when it is known what the key means."""
    name, found, value = text.partition("=")
    if not found:
        raise UserError(f"--set wants key=value and got '{text}'; for example --set samples=50.")
    return name, Text(value)


Classes = Mapping[str, Any]
"""The class of settings of each group."""


def make_settings(
    method_settings: Any,
    layers: Sequence[Mapping[str, Any]],
    changes: Mapping[str, Any],
    task_settings: Any = TaskSettings,
) -> Settings:
    """Settings from layers, of which later ones win, and changes, which must all mean something.

    A layer (the task's own settings, a preset) may have settings for parts that are not chosen.
    """
    parts = _chosen_parts(layers, changes)
    classes = {"run": RunSettings, "task": task_settings, "method": method_settings, **parts}
    values: dict[str, dict[str, Any]] = {group: {} for group in classes}
    for layer in layers:
        for name, value in layer.items():
            for group, item in _places(name, classes):
                values[group][item] = _read(group, item, value, classes)
            if name not in PARTS and not _exists(name, classes):
                raise UserError(f"a preset has a setting '{name}', which nothing has; mend the preset.")
    for name, value in changes.items():
        if name not in PARTS:
            group, item = find_setting(name, classes)
            values[group][item] = _read(group, item, value, classes)
    return Settings(**{group: _build(classes[group], values[group]) for group in classes})


def _chosen_parts(layers: Sequence[Mapping[str, Any]], changes: Mapping[str, Any]) -> Classes:
    names = dict(DEFAULT_PARTS)
    for layer in (*layers, changes):
        names |= {group: layer[group] for group in PARTS if group in layer}
    return {group: find_part(group, Word().read(group, name)).load() for group, name in names.items()}


def _exists(name: str, classes: Classes) -> bool:
    """Whether the setting is one of what was chosen, or of a part or a method that could be."""
    if any(_places(name, classes)):
        return True
    others = ((group, entry.load()) for group, parts in PARTS.items() for entry in parts.values())
    return any(any(_places(name, {group: other})) for group, other in others)


def _read(group: str, item: str, value: Any, classes: Classes) -> Any:
    """The value in the kind of its setting."""
    kind: Kind = kinds(classes[group])[item]
    return kind.parse(f"{group}.{item}", value) if isinstance(value, Text) else kind.read(f"{group}.{item}", value)


def _build(group: Any, values: Mapping[str, Any]) -> Any:
    missing = [item.name for item in fields(group) if item.default is MISSING and item.name not in values]
    if missing:
        raise UserError(f"the task says nothing about {', '.join(missing)}; give it with --set {missing[0]}=VALUE.")
    return group(**values)


def _places(name: str, classes: Classes) -> Iterator[tuple[str, str]]:
    """The groups that have a setting of this name, full or short."""
    wanted, dot, item = name.rpartition(".")
    for group, declared_by in classes.items():
        named = wanted in {group, getattr(declared_by, "name", group)} if dot else True
        if named and item in kinds(declared_by):
            yield group, item


def find_setting(name: str, classes: Classes) -> tuple[str, str]:
    """The one setting of this name; refuses unknown and ambiguous ones."""
    places = list(_places(name, classes))
    if len(places) == 1:
        return places[0]
    if places:
        full = " or ".join(".".join(place) for place in places)
        raise UserError(f"'{name}' is the name of several settings; say {full}.")
    raise _elsewhere(name, classes) or unknown("setting", name, _all_names(classes))


def _all_names(classes: Classes) -> Iterator[str]:
    for group, declared_by in classes.items():
        if group in PARTS:
            yield group
        for item in kinds(declared_by):
            yield from (item, f"{group}.{item}")


def _elsewhere(name: str, classes: Classes) -> UserError | None:
    """The complaint about a setting of a part that was not chosen."""
    wanted, _, item = name.rpartition(".")
    for group, parts in PARTS.items():
        owners = [part for part, entry in parts.items() if item in kinds(entry.load())]
        if wanted in {"", group} and owners:
            chosen = classes[group].name
            return UserError(
                f"{item} is a setting of {group}={owners[0]}, and the {group} is {chosen}; leave it out, or set "
                f"{group}={owners[0]}."
            )
    return None
