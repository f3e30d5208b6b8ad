"""The package's own tasks as environments that `gymnasium.make` knows by name.

Gymnasium looks for no plugins since version 1.0: a program imports `sbsrl.systems` first, or asks for
`gymnasium.make("sbsrl.systems:sbsrl/Pendulum-v0")`, which imports it.
"""

import gymnasium

__all__ = ["ENVIRONMENTS", "register"]

ENVIRONMENTS = {
    "sbsrl/Pendulum-v0": "pendulum",
    "sbsrl/Cartpole-v0": "cartpole",
    "sbsrl/Ledge-v0": "ledge",
    "sbsrl/Canal-v0": "canal",
    "sbsrl/RaceCar-v0": "race-car",
    "sbsrl/RWRLCartpole-v0": "rwrl-cartpole",
    "sbsrl/RWRLHumanoid-v0": "rwrl-humanoid",
    "sbsrl/RWRLQuadruped-v0": "rwrl-quadruped",
    "sbsrl/GoToGoal-v0": "go-to-goal",
}
"""Which task is behind which name."""


def register() -> None:
    """Registers what is not registered yet. A task is loaded only when its environment is made."""
    for name, task in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point="sbsrl.tasks:open_system", kwargs={"task": task})
