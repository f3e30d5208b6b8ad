"""What is compared with networks: worlds, methods, and ways to make samples; each with priors of its own."""

from typing import Any, NamedTuple

from ..runs.study import Arm

__all__ = ["ALL", "BINDING", "BODIES", "WORLDS", "World", "arm", "oracle", "oracle_of", "with_prior", "world_of"]


class World(NamedTuple):
    """A task as the experiments set it, and the data they begin with."""

    name: str
    task: str
    changes: tuple[tuple[str, Any], ...]
    data: str
    """Behaviour and episodes of the offline data; their seed is the prior's number."""
    episodes: int
    wanted: float
    """The normalised return that the final policy is to have."""
    judged: int = 64
    """Initial states over which the true mean cost of every policy is taken."""
    sooper: tuple[tuple[str, Any], ...] = ()
    """What its pessimism and optimism are here."""

    @property
    def has_oracle(self) -> bool:
        """Whether the task's equations are known, so that returns can be compared with those of a policy that is
        trained on them; else they are compared with the behaviour's."""
        return self.task not in {each.task for each in BODIES.values()}


WORLDS = {
    world.name: world
    for world in (
        World("race car, obstacles slow it", "race-car", (("contact", "sticky"),), "careless:25", 40, 0.9),
        World("race car, obstacles only cost", "race-car", (("contact", "ghost"),), "careless:25", 40, 0.8),
        World("cartpole", "rwrl-cartpole", (), "pump:300", 30, 0.9),
    )
}
BODIES = {
    world.name: world
    for world in (
        World("quadruped", "rwrl-quadruped", (), "trot:40", 20, 1.03, 4, (("pessimism", 0.0), ("optimism", 0.0))),
        World("humanoid", "rwrl-humanoid", (), "stand:40", 20, 1.05, 4, (("pessimism", 0.002), ("optimism", 0.0))),
        World("go to goal", "go-to-goal", (), "driver:100", 20, 1.5, 64, (("pessimism", 0.002), ("optimism", 0.1))),
    )
}
"""Simulations without equations: 1 is what the behaviour of the data earns."""
ALL = {**WORLDS, **BODIES}
BINDING = WORLDS["race car, obstacles only cost"]
"""Where whoever earns most costs too much."""


def arm(label: str, world: World, method: str = "sbsrl", **changes: Any) -> Arm:
    """A method in a world. `data` may be given as behaviour and episodes, like that of the world."""
    usual = {"data": world.data, "episodes": world.episodes, "judged": world.judged}
    return Arm(label, world.task, method, (*world.changes, *{**usual, **changes}.items()))


def with_prior(compared: Arm, prior: int, preset: str = "cpu") -> Arm:
    """The same, from the offline data and the offline phase of this number. To see that it works, few data do."""
    changes = dict(compared.changes)
    behaviour, episodes = changes["data"].split(":")
    count = min(int(episodes), FEW) if preset == "smoke" else int(episodes)
    data = f"{behaviour}:{count}:{prior}"
    return compared._replace(changes=tuple({**changes, "data": data, "offline_seed": prior}.items()))


FEW = 25
"""Episodes of offline data of the preset `smoke`."""


def world_of(compared: Arm) -> World:
    """In which world it is."""
    found = [w for w in ALL.values() if w.task == compared.task and set(w.changes) <= set(compared.changes)]
    return found[0]


def oracle(world: World, budget: float | None = None) -> Arm:
    """The same solver on the true dynamics: with twice the updates, and free to leave what the data support.

    It has the world's own budget unless another one is said.
    """
    rounds = 6 if world.task == "rwrl-cartpole" else 2
    own = {} if budget is None else {"budget": budget}
    return arm(
        "true dynamics", world, "oracle", episodes=ORACLE_EPISODES, trust=0.0, **{"gradient.rounds": rounds}, **own
    )


def oracle_of(compared: Arm) -> Arm:
    """What the returns of an arm are compared with: the true dynamics known, under the same constraint."""
    return oracle(world_of(compared), dict(compared.changes).get("budget"))


ORACLE_EPISODES = 20
