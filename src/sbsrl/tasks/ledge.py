"""A sled on the way to a ledge: small enough that every promise of the theory can be kept and checked.

x is the position of the sled, a in [-1, 1] the push,

    x_{t+1} = 0.5 x_t + 0.9 a_t + g(x_t, a_t) + w_t,   w_t ~ N(0, 0.3^2),   x_0 = 0,   T = 3,

and g is not known: a function of norm at most B in the RKHS of a kernel of finite rank. Going right earns, the ledge is
at x = 1. Cost and reward of a step are smooth and lie in [0, 1], and the budget bounds their *expected sum*, as in the
paper. The policies are a_t = tanh(push + spring x_t).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from .._jax import EXACT
from ..costs import Cost
from ..kernels import FiniteRank, Kernel, Linear, Tanh
from ..model import Signals
from ..policies import Parameters, PolicyClass
from ..prior import GPPrior, Prior
from ..systems.drawable import Drawing
from ..systems.equations import EquationsEnv
from ..task import Equations, Limits, Task
from ..types import Action, Input, PRNGKey, Scalar, State

__all__ = ["GROUNDS", "PRESETS", "PRIORS", "Sled", "make", "prior_of"]

HORIZON = 3
NOISE = 0.3
SIZE = 0.15
"""sqrt k(z, z) is about this: what is not known moves the sled by so much a step."""
REACH = 3.0
"""No step begins further away, but with a probability of 2e-5, whatever the policy and the ground."""


def push(x: State, a: Action) -> State:
    """What is known of the sled."""
    return 0.5 * x + 0.9 * jnp.clip(a, -1, 1)


def step_reward(x: State, a: Action, y: State) -> Scalar:
    """The further right, the better: 1 / (1 + exp(-2 y))."""
    return jax.nn.sigmoid(2 * y[0])


def step_costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """1 beyond the ledge, 0 far from it: 1 / (1 + exp(-8 (y - 1)))."""
    return jax.nn.sigmoid(8 * (y - 1))


def waves(z: Input) -> Float[Array, "2"]:
    """Bumpy ground: a wave of any phase and a bounded height."""
    return SIZE * jnp.stack([jnp.cos(2 * z[0]), jnp.sin(2 * z[0])])


def motor(z: Input) -> Float[Array, "1"]:
    """A push that is stronger or weaker than one thinks."""
    return SIZE * z[1:]


GROUNDS: dict[str, Kernel] = {
    "slope": SIZE**2 * Linear((1.0, 1.0)).on(Tanh((1.0, np.inf))),
    "waves": FiniteRank(waves, 2, SIZE**2),
    "motor": FiniteRank(motor, 1, SIZE**2),
}
"""What g may be: linear in tanh(x) and a, a wave of x, or a multiple of a."""


class Sled(eqx.Module):
    """The true system: g(z) = phi(z) . w."""

    ground: Kernel
    weights: Float[Array, " p"]

    def mean(self, x: State, a: Action) -> State:
        """f*."""
        phi = self.ground.features(jax.random.key(0), 0)
        g = phi(jnp.concatenate([x, a]).astype(EXACT)) @ self.weights.astype(EXACT)
        return push(x, a) + g.astype(x.dtype)  # a planner that knows it computes in single precision

    def __call__(self, x: State, a: Action, key: PRNGKey) -> State:
        return self.mean(x, a) + NOISE * jax.random.normal(key, x.shape, x.dtype)


def reset(key: PRNGKey) -> State:
    """At rest at 0."""
    return jnp.zeros(1)


def spring(theta: Parameters, x: State) -> Action:
    """a = tanh(push + spring x)."""
    return jnp.tanh(theta[:1] + theta[1:] * x)


POLICIES = PolicyClass(spring, (-1.0, -1.0), (1.5, 1.0), ("push", "spring"), (11, 9))


def prior_of(ground: str, bound: float = 1.0) -> Prior:
    """What is known of the sled on that ground."""
    gp = GPPrior(
        mean=push,
        scale=(1.0,),
        kernel=GROUNDS[ground],
        noise=NOISE,
        bound=bound,
        bound_source="given: the norm of the ground is at most this",
    )
    return Prior(ground, informative=True, gp=gp)


PRIORS = {ground: prior_of(ground) for ground in GROUNDS}

PRESETS: dict[str, dict[str, Any]] = {
    "cpu": {
        "prior": "slope",
        "budget": 1.6,
        "tightening": 0.25,
        "exploration_threshold": 0.0,
        "accuracy": 1.2,
        "delta": 0.05,
        "samples": 400,
        "episodes": 1500,
        "solver": "exact",
        "sampler": "truncated",
        "uncertainty": "deviation",
        "exploration_tolerance": 0.0,
        "stop_when_learned": True,
    }
}
"""Algorithm 1 as analysed, with enough samples and a large enough tightening for the theorems to hold."""


SIGNALS = Signals(step_reward, step_costs)
LEDGE, RATE = 1.0, 2.0
"""Where the ledge is; steps per second of a film, for this sled has no clock."""


def picture(states: Float[np.ndarray, "t 1"]) -> UInt8[np.ndarray, "h w 3"]:
    """The sled before the ledge."""
    from .pictures.ledge import draw  # noqa: PLC0415  (only who draws needs Pillow)

    return draw(states, LEDGE)


DRAWING = Drawing(picture, RATE)


def make(prior: Prior = PRIORS["slope"], budgets: tuple[float, ...] = (1.6,), sled: Sled | None = None) -> Task:
    """The task. Unless a sled is given, the ground is a little steeper towards the ledge than expected."""
    assert prior.gp is not None
    (kernel,) = prior.gp.kernels
    rank = kernel.rank or 0
    sled = sled or Sled(kernel, jnp.full(rank, 0.5 / np.sqrt(rank)))
    equations = Equations(reset, sled, sled.mean, SIGNALS, noise=(NOISE,))
    return Task(
        name="ledge",
        state_names=("x",),
        action_low=(-1.0,),
        action_high=(1.0,),
        horizon=HORIZON,
        costs=(Cost("steps beyond the ledge", budgets[0], "sum", (0.0, 1.0)),),
        start=reset,
        fixed_start=(0.0,),
        open=lambda render_mode=None: EquationsEnv(
            equations, (-1.0,), (1.0,), HORIZON, render_mode=render_mode, drawing=DRAWING
        ),
        prior=prior,
        signals=SIGNALS,
        equations=equations,
        limits=Limits((REACH, 1.0), reward=(0.0, 1.0)),
        policies=POLICIES,
        safe_action=(0.0,),
    )
