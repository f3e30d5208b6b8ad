"""A true system that is written down, behind the same boundary as any other."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8, UInt32, UInt64

from .._jax import EXACT
from ..errors import UserError
from ..task import Equations
from ..types import PRNGKey, Scalar, State
from .actions import read_action
from .drawable import Drawing, check_mode, drawing_metadata

__all__ = ["EquationsEnv"]

Vector = Float[np.ndarray, " n"]

ROUNDING = 1e-9
"""By this share the space of observations is wider than the limits: a state on them may be rounded beyond."""


class EquationsEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Equations as an environment: y = step(x, a), the reward and, in `info["cost"]`, the costs of (x, a, y).

    Everything is in double precision. `info["cost"]` is a number if there is one cost, else an array of all. Nothing
    terminates; the episode is truncated after `horizon` steps, or never. Actions beyond `low` and `high` are passed on
    as they are: the equations say what becomes of them.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's own declaration)

    def __init__(
        self,
        equations: Equations,
        low: tuple[float, ...],
        high: tuple[float, ...],
        horizon: int | None = None,
        state_limits: tuple[float, ...] | None = None,
        render_mode: str | None = None,
        drawing: Drawing | None = None,
    ) -> None:
        """`state_limits` are r_i such that |x_i| <= r_i, infinite where nothing bounds a state.

        Only with a drawing there is a `render_mode`.
        """
        self.metadata = self.metadata if drawing is None else drawing_metadata(drawing.rate)
        self.render_mode, self._drawing = check_mode(render_mode, self.metadata), drawing
        limits = _limits(len(equations.noise), state_limits)
        self.observation_space = gymnasium.spaces.Box(-limits, limits, dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(np.array(low, float), np.array(high, float), dtype=np.float64)
        self._start, self._horizon = equations.start, horizon
        self._parameters, self._program = _split((equations.step, equations.signals))
        self._x: State | None = None
        self._seen: list[Vector] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """Draws x_0. All randomness of the episode comes from `seed`, without one from the generator of the last."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**63)) if seed is None else seed % 2**64
        (self._x, self._key), self._t = _true_start(self._start, np.uint64(number)), 0
        return self._observed(), {}

    def step(self, action: Any) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """One step of the equations, with the noise of its own that seed and number of the step decide."""
        if self._x is None:
            raise gymnasium.error.ResetNeeded("call reset() before the first step().")
        a, t = read_action(action, self.action_space.shape), np.uint32(self._t)
        self._x, reward, costs = _true_step(self._program, self._parameters, self._x, a, self._key, t)
        self._t += 1
        charged = np.array(costs)
        info = {"cost": float(charged[0]) if charged.size == 1 else charged}
        return self._observed(), float(reward), False, self._t == self._horizon, info

    def render(self) -> UInt8[np.ndarray, "h w 3"] | None:
        """A picture of the state; None where no mode was asked for."""
        if self.render_mode is None or self._drawing is None:
            return None
        if not self._seen:
            raise gymnasium.error.ResetNeeded("call reset() before the first render().")
        return self._drawing.draw(np.array(self._seen))

    def _observed(self) -> Vector:
        """The state; what was seen of an episode is kept if it is to be drawn."""
        x = np.array(self._x)
        if self.render_mode is not None:
            self._seen = [*self._seen, x] if self._t else [x]
        return x.copy()


def _limits(size: int, state_limits: tuple[float, ...] | None) -> Vector:
    if state_limits is not None and len(state_limits) != size:
        raise UserError(f"{len(state_limits)} limits were given for {size} states; give one per state.")
    limits = np.full(size, np.inf) if state_limits is None else np.array(state_limits, float)
    return limits * (1 + ROUNDING)


@eqx.filter_jit
def _true_start(start: Callable[[PRNGKey], State], seed: UInt64[Any, ""]) -> tuple[State, PRNGKey]:
    """The initial state of the episode with this seed, and the key of its noise."""
    start_key, key = jax.random.split(jax.random.key(seed))
    return jnp.asarray(start(start_key), EXACT), key


class _Program(NamedTuple):
    """What is compiled of a system: everything but its arrays. Equal ones are compiled once."""

    form: Any
    constants: tuple[Any, ...]


def _split(functions: Any) -> tuple[list[Any], _Program]:
    """The arrays in the functions, if they are modules that have some, and the rest.

    `eqx.filter_jit` does the same at every call, which takes longer than a step of a small system.
    """
    leaves, form = jax.tree.flatten(functions)
    parameters = [leaf if eqx.is_array(leaf) else None for leaf in leaves]
    constants = tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves)
    return parameters, _Program(form, constants)


@partial(jax.jit, static_argnums=0)
def _true_step(
    program: _Program, parameters: list[Any], x: State, a: Float[Any, " da"], key: PRNGKey, t: UInt32[Any, ""]
) -> tuple[State, Scalar, Float[Array, " k"]]:
    """The next state, the reward and the costs of step t of the episode with this key.

    It is compiled once for the same functions, and once for all parameters of a system that is a module of arrays.
    """
    step, (reward, costs) = jax.tree.unflatten(program.form, eqx.combine(parameters, list(program.constants)))
    y = step(x, a, jax.random.fold_in(key, t))
    return y, reward(x, a, y), costs(x, a, y)
