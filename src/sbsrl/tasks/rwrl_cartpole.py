"""Swing up a pole on a cart that should stay within 0.25 m of the middle (appendix G of the paper), on MuJoCo.

The control suite's cartpole with the constraint of the real-world RL suite: a cost of 1 in each of the 1000 steps of an
episode in which |p| >= 0.25, budget 100. An action is held for four steps, so that an episode has 250 control steps
and a control step costs between 0 and 4. State (p, cos th, sin th, v, omega), th = 0 upright.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT
from ..costs import Cost
from ..model import Signals
from ..policy import Metrics
from ..prior import Prior
from ..structure import Structure
from ..systems import suite_cartpole
from ..systems.camera import View
from ..systems.dm_control import DMControlEnv
from ..task import Equations, Task
from ..types import Action, PRNGKey, Scalar, State

STEPS, REPEAT, EDGE = 1000, 4, 0.25
HEIGHT = 1.0
"""Of the rail, in metres."""
LOW, HIGH = (-1.0,), (1.0,)
NAMES = ("p", "cos th", "sin th", "v", "omega")


def reset(key: PRNGKey) -> State:
    """Hanging almost at rest near the middle, as the suite draws it."""
    p, angle, v, omega = 0.01 * jax.random.normal(key, (4,), EXACT)
    theta = jnp.pi + angle
    return jnp.stack([p, jnp.cos(theta), jnp.sin(theta), v, omega])


def complete(x: State, a: Action, new: Float[Array, "5"]) -> State:
    """The next state, with cosine and sine brought back to the circle."""
    radius = jnp.sqrt(new[1] ** 2 + new[2] ** 2 + 1e-6)
    return jnp.concatenate([new[:1], new[1:3] / radius, new[3:]])


def off_the_middle(physics: object) -> float:
    """1 if the cart is too far from the middle."""
    return float(abs(physics.named.data.qpos["slider"][0]) >= EDGE)  # type: ignore[attr-defined]


def dynamics(x: State, a: Action) -> State:
    """f*, as it is written down: the place after the steps that an action is held for."""
    return suite_cartpole.observed(suite_cartpole.after_steps(x, a, REPEAT)[0])


def step(x: State, a: Action, key: PRNGKey) -> State:
    """The same: there is no noise."""
    return dynamics(x, a)


def reward(x: State, a: Action, y: State) -> Scalar:
    """The suite's, summed over the steps."""
    return jnp.sum(suite_cartpole.reward(a, suite_cartpole.after_steps(x, a, REPEAT)[1]))


def costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """Steps in which the cart is too far from the middle."""
    beyond = jnp.abs(suite_cartpole.after_steps(x, a, REPEAT)[1].p) >= EDGE
    return jnp.sum(beyond.astype(x.dtype))[None]


def gradual_costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """The same with an edge that is WIDTH wide."""
    beyond = jnp.abs(suite_cartpole.after_steps(x, a, REPEAT)[1].p) - EDGE
    return jnp.sum(jax.nn.sigmoid(beyond / WIDTH))[None]


WIDTH = 0.01
EQUATIONS = Equations(
    reset, step, dynamics, Signals(reward, costs), noise=(0.0,) * 5, gradual=Signals(reward, gradual_costs)
)


class Pump(eqx.Module):
    """Pumps energy into the pole and catches it, with gains and a hand of its own; it does not mind the edge much."""

    gains: Float[Array, "7"]
    """Of energy, place, then of angle, rate, place and speed when upright; and how unsteady the hand is."""

    def init(self) -> Scalar:
        return jnp.zeros((), EXACT)

    def act(self, x: State, state: Scalar, key: PRNGKey) -> tuple[Action, Scalar, Metrics]:
        """The state is the hand's, which wanders: an Ornstein-Uhlenbeck process."""
        action, hand = _pump(self, x, state, key)
        return action, hand, {}


MEMORY = 0.85
"""Of the hand, per control step."""


@eqx.filter_jit
def _pump(policy: Pump, x: State, hand: Scalar, key: PRNGKey) -> tuple[Action, Scalar]:
    p, c, s, v, omega = x
    energy_gain, place_gain, angle_gain, rate_gain, upright_place, upright_speed, unsteady = policy.gains
    hand = MEMORY * hand + unsteady * jnp.sqrt(1 - MEMORY**2) * jax.random.normal(key, (), EXACT)
    energy = 0.5 * omega**2 / 14.7 + c - 1  # of the pole, 0 when upright at rest
    pump = energy_gain * energy * omega * c - place_gain * (p + 0.3 * v)
    hold = angle_gain * jnp.arctan2(s, c) + rate_gain * omega + upright_place * p + upright_speed * v
    wanted = jnp.clip(jnp.where(c > 0.85, hold, pump), -1.0, 1.0)
    return jnp.clip(wanted + hand, -1.0, 1.0)[None], hand


LEAST = (0.1, 0.8, 2.0, 0.5, 0.0, 0.0, 0.1)
MOST = (0.4, 2.5, 5.0, 1.2, 0.5, 0.5, 0.5)


def pump(key: PRNGKey) -> Pump:
    """One with random gains."""
    return Pump(jax.random.uniform(key, (7,), EXACT, jnp.asarray(LEAST), jnp.asarray(MOST)))


VIEW = View("fixed", marks=((-EDGE, 0.0, HEIGHT), (EDGE, 0.0, HEIGHT)))


def open_system(render_mode: str | None = None) -> DMControlEnv:
    """The true cartpole."""
    return DMControlEnv("cartpole", "swingup", off_the_middle, STEPS, REPEAT, view=VIEW, render_mode=render_mode)


PRIORS = {"data": Prior("data", informative=True)}
BEHAVIOURS = {"pump": pump}
STRUCTURE = Structure(tuple(range(5)), complete)
PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 100.0,
        "tightening": 10.0,
        "exploration_threshold": 0.0,
        "data": "pump:300:0",
        "episodes": 30,
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 10,
        "solver.checks": 3,
        "solver.refuted": True,
        "solver.good": 0.95,
        "solver.robust": True,
        "solver.trust": 0.0,
        "solver.safety_weight": 1.0,
        "solver.curvature": 0.1,
        "solver.multiplier_limit": 2.0,
        "solver.margin": 0.05,
        "solver.offline_blocks": 50,
        "solver.offline_patience": 50,
        "actor-critic.rounds": 2,
        "actor-critic.offline_blocks": 30,
        "actor-critic.policy_rate": 3e-4,
        "actor-critic.anchor": 0.0,
        "actor-critic.multiplier_rate": 0.01,
        "gradient.segment": 50,
        "gradient.each": 5,
        "gradient.nominal": 20,
        "gradient.updates": 10,
        "gradient.rounds": 3,
        "gradient.steepest": 0.5,
        "gradient.recalled": 0.25,
        "ensemble.offline_updates": 6000,
        "ensemble.kappa": 0.75,
        "ensemble.kappa_least": 0.75,
        "gradient.unsteadiness": 0.2,
        "gradient.multiplier_rate": 0.04,
        "ensemble.noisy": "training",
        "gradient.policy_rate": 1e-4,
        "gradient.offline_rate": 2e-3,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""


def make(prior: Prior = PRIORS["data"], budgets: tuple[float, ...] = (100.0,)) -> Task:
    """The task."""
    return Task(
        name="rwrl-cartpole",
        state_names=NAMES,
        action_low=LOW,
        action_high=HIGH,
        horizon=STEPS // REPEAT,
        costs=(Cost("steps with |p| >= 0.25 m", budgets[0], limits=(0.0, float(REPEAT))),),
        start=reset,
        open=open_system,
        prior=prior,
        structure=STRUCTURE,
        behaviours=BEHAVIOURS,
        equations=EQUATIONS,
        simulated=True,
        safe_action=(0.0,),
    )
