"""A task for networks that takes seconds: push a sled to the right, but not too far beyond a line.

State (place, speed), 20 steps. The cost of a step is by how much the sled is beyond 0.5, at most 1, and the budget of
an episode 1: the best policy goes as far as that allows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from sbsrl import tasks
from sbsrl.costs import Cost
from sbsrl.model import Signals
from sbsrl.prior import Prior
from sbsrl.systems.equations import EquationsEnv
from sbsrl.task import Equations, Task
from sbsrl.tasks import TaskEntry

NAME, HORIZON, LINE = "slider", 20, 0.5
LOW, HIGH = (-1.0,), (1.0,)


def register(place=dict.__setitem__):
    place(tasks.TASKS, NAME, TaskEntry("push a sled, but not too far", __name__))


def dynamics(x, a):
    speed = 0.8 * x[1] + 0.1 * jnp.clip(a[0], -1.0, 1.0)
    return jnp.stack([x[0] + speed, speed])


def step(x, a, key):
    return dynamics(x, a)


def start(key):
    return jnp.stack([jax.random.uniform(key, (), jnp.float64, -0.1, 0.1), jnp.zeros(())])


def reward(x, a, y):
    return jnp.minimum(y[0], 1.0)


def costs(x, a, y):
    return jnp.clip(y[:1] - LINE, 0.0, 1.0)


class Pusher(eqx.Module):
    """Holds a place with an unsteady hand."""

    place: jax.Array

    def init(self):
        return ()

    def act(self, x, state, key):
        push = 2 * (self.place - x[0]) - 3 * x[1] + 0.3 * jax.random.normal(key, (), jnp.float64)
        return jnp.clip(push, -1.0, 1.0)[None], (), {}


def pusher(key):
    return Pusher(jax.random.uniform(key, (), jnp.float64, 0.0, 0.7))


SIGNALS = Signals(reward, costs)
EQUATIONS = Equations(start, step, dynamics, SIGNALS, noise=(0.0, 0.0))
PRIORS = {"data": Prior("data", informative=True)}
SMALL = {
    "ensemble.networks": 3,
    "ensemble.width": 16,
    "ensemble.offline_updates": 1500,
    "ensemble.online_updates": 50,
    "ensemble.batch": 32,
    "gradient.policy_width": 8,
    "gradient.updates": 5,
    "gradient.cloning_updates": 300,
    "gradient.offline_blocks": 2,
    "gradient.policy_rate": 3e-3,
    "gradient.check_starts": 4,
}
PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 1.0,
        "tightening": 0.0,
        "exploration_threshold": 0.0,
        "episodes": 3,
        "data": "pusher:12:0",
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 4,
        **SMALL,
    }
}


def open_system():
    return EquationsEnv(EQUATIONS, LOW, HIGH, HORIZON)


def make(prior=PRIORS["data"], budgets=(1.0,)):
    return Task(
        name=NAME,
        state_names=("place", "speed"),
        action_low=LOW,
        action_high=HIGH,
        horizon=HORIZON,
        costs=(Cost("beyond the line", budgets[0], limits=(0.0, 1.0)),),
        start=start,
        open=open_system,
        prior=prior,
        behaviours={"pusher": pusher},
        equations=EQUATIONS,
        simulated=True,
        safe_action=(0.0,),
    )
