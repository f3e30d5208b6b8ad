"""The smallest parts that need all of the frame: what networks, MuJoCo and a robot will ask for, in a page each.

- a task without equations, kernel or known signals: its system is plain numpy, has two costs and ends episodes early;
- a belief that is random: linear models fitted to bootstraps, which learn reward and costs and draw their next state;
- a solver that remembers: it searches around what it found last, and counts.

They are chosen by name like any other part, after `register`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from sbsrl import parts, tasks
from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.model import Model
from sbsrl.parts import Part
from sbsrl.prior import Prior
from sbsrl.problem import Evaluation, excess, information, nominal_returns
from sbsrl.solve.protocol import Solution
from sbsrl.task import Task
from sbsrl.tasks import TaskEntry
from sbsrl.validation import Number, Whole, declared, validate

TASK, BELIEF, SOLVER = "cart", "bootstraps", "counter"
HORIZON, EDGE, SAFE = 12, 0.4, (-0.125,)


def register(place=dict.__setitem__):
    """Makes the parts known; `place(mapping, name, entry)` may be one that undoes it later."""
    place(tasks.TASKS, TASK, TaskEntry("push a cart, but not over the edge", __name__))
    place(parts.BELIEFS, BELIEF, Part("linear models of bootstraps", __name__, "BootstrapSettings"))
    place(parts.SOLVERS, SOLVER, Part("searches around what it found last", __name__, "CounterSettings"))


def unspoiled(n, outcome):
    return outcome


class Cart(gymnasium.Env):
    """Place and speed; beyond the edge the episode is over. Costs: the speed of a step, and the effort of an episode.

    `calls` are all calls of all carts, in order. `spoil(n, outcome)` is what call number n of `step` returns, counted
    from 1 over all episodes; `start(outcome)` is what a reset returns.
    """

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    calls: ClassVar[list[tuple[str, Any]]] = []
    spoil = staticmethod(unspoiled)
    start = staticmethod(lambda outcome: outcome)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.calls.append(("reset", seed))
        self.x = np.array([self.np_random.uniform(-0.1, 0.1), 0.0])
        return self.start((self.x.copy(), {}))

    def step(self, action):
        self.calls.append(("step", tuple(np.asarray(action).tolist())))
        place, speed = self.x
        speed = 0.9 * speed + 0.2 * float(action[0]) + 0.01 * self.np_random.normal()
        self.x = np.array([place + speed, speed])
        cost = np.array([abs(speed), float(action[0]) ** 2])
        outcome = self.x.copy(), float(self.x[0]), bool(self.x[0] > EDGE), False, {"cost": cost}
        return self.spoil(sum(kind == "step" for kind, _ in self.calls), outcome)


class Halfway:
    """A policy that is safe: it does nothing."""

    def init(self):
        return ()

    def act(self, x, state, key):
        return jnp.zeros(1), (), {}


def draw_start(key):
    return jnp.stack([jax.random.uniform(key, (), jnp.float64, -0.1, 0.1), jnp.zeros(())])


PRIORS = {"none": Prior("none", informative=False), "idle": Prior("idle", informative=True, policy=Halfway())}
PRESETS = {
    "cpu": {
        "prior": "none",
        "budget": (0.5, 4.0),
        "tightening": (0.05, 0.2),
        "exploration_threshold": 0.01,
        "belief": BELIEF,
        "solver": SOLVER,
        "episodes": 4,
        "samples": 4,
    },
    "smoke": {"pushes": 8},
}


def make(prior=PRIORS["none"], budgets=(0.5, 4.0)):
    return Task(
        name=TASK,
        state_names=("place", "speed"),
        action_low=(-1.0,),
        action_high=(1.0,),
        horizon=HORIZON,
        costs=(Cost("speed", budgets[0], "statewise"), Cost("effort", budgets[1], "sum")),
        start=draw_start,
        open=Cart,
        prior=prior,
        safe_action=SAFE,
    )


class Linear(eqx.Module):
    """Next state, reward and costs of one member, linear in (x, a, 1)."""

    weights: jax.Array
    noise: float = eqx.field(static=True)
    stochastic: ClassVar[bool] = True

    def outputs(self, x, a):
        z = jnp.concatenate([x, a, jnp.ones(1, x.dtype)])
        return z @ self.weights.astype(x.dtype)

    def __call__(self, x, a):
        return self.outputs(x, a)[: len(x)]

    def draw(self, x, a, key):
        return self(x, a) + self.noise * jax.random.normal(key, x.shape, x.dtype)

    def reward(self, x, a, y):
        return self.outputs(x, a)[len(x)]

    def costs(self, x, a, y):
        return self.outputs(x, a)[len(x) + 1 :]


class Members(eqx.Module):
    """M draws from the members, with replacement."""

    weights: jax.Array
    noise: float = eqx.field(static=True)

    def __len__(self):
        return len(self.weights)

    def member(self, m) -> Model:
        return Linear(self.weights[m], self.noise)


class Spread(eqx.Module):
    """How much the members disagree about the next state."""

    members: Members

    def __call__(self, x, a):
        each = jax.vmap(lambda weights: Linear(weights, 0.0)(x, a))(self.members.weights)
        return jnp.sum(jnp.std(each, axis=0))


class Bootstraps(eqx.Module):
    """A few linear models, each fitted to a bootstrap of all transitions that was drawn with the key of `update`."""

    weights: jax.Array
    inputs: jax.Array
    targets: jax.Array
    count: jax.Array
    ended: jax.Array
    """How many of the transitions were terminal."""
    noise: float = eqx.field(static=True)

    @classmethod
    def create(cls, members, room, dx, da, costs, noise, key):
        """Members that agree but for 1e-5, which is too little to be explored."""
        outputs = dx + 1 + costs
        return cls(
            weights=1e-5 * jax.random.normal(key, (members, dx + da + 1, outputs)),
            inputs=jnp.zeros((room, dx + da + 1)),
            targets=jnp.zeros((room, outputs)),
            count=jnp.zeros((), jnp.int32),
            ended=jnp.zeros((), jnp.int32),
            noise=noise,
        )

    def nominal(self):
        return Linear(jnp.mean(self.weights, axis=0), self.noise)

    def uncertainty(self):
        return Spread(Members(self.weights, self.noise))

    def samples(self, key, count):
        chosen = jax.random.randint(jax.random.fold_in(key, self.count), (count,), 0, len(self.weights))
        return Members(self.weights[chosen], self.noise)

    def update(self, data, key):
        n, more = int(self.count), len(data.actions)
        rows = np.hstack([data.states, data.actions, np.ones((more, 1))])
        outputs = np.hstack([data.next_states, data.rewards[:, None], data.costs])
        inputs = self.inputs.at[n : n + more].set(rows)
        targets = self.targets.at[n : n + more].set(outputs)
        keys = jax.random.split(key, len(self.weights))
        members = [_fit(inputs, targets, n + more, k) for k in keys] if n + more else self.weights
        return Bootstraps(
            weights=jnp.stack(list(members)),
            inputs=inputs,
            targets=targets,
            count=jnp.asarray(n + more, jnp.int32),
            ended=self.ended + int(data.terminated.sum()),
            noise=self.noise,
        )


def _fit(inputs, targets, count, key):
    """Least squares on a bootstrap of the first `count` rows."""
    rows = np.asarray(jax.random.randint(key, (len(inputs),), 0, count))[:count]
    weights, *_ = np.linalg.lstsq(np.asarray(inputs)[rows], np.asarray(targets)[rows], rcond=1e-6)
    return jnp.asarray(weights)


@dataclass(frozen=True)
class BootstrapSettings:
    """Linear models of bootstraps."""

    name: ClassVar[str] = BELIEF
    calibrated: ClassVar[bool] = False

    members: int = declared(Whole(1, 100), 3, "how many models are fitted")
    noise: float = declared(Number(0), 0.01, "of what a member draws")

    def __post_init__(self):
        validate(self, "belief.")

    def create(self, task, episodes, key):
        room, costs = task.horizon * episodes, len(task.costs)
        return Bootstraps.create(self.members, room, task.state_size, task.action_size, costs, self.noise, key)

    def largest_uncertainty(self, task):
        return np.inf

    def describe(self, task):
        return {"members": self.members}

    def against_safety(self, task):
        yield from ()


class Pushes(eqx.Module):
    """Plays the actions that were found, a little shaken."""

    actions: jax.Array

    def init(self):
        return jnp.zeros((), jnp.int32)

    def act(self, x, state, key):
        shaken = self.actions[state] + 0.02 * jax.random.normal(key, (1,), self.actions.dtype)
        return jnp.clip(shaken, -1.0, 1.0), state + 1, {"shaken": shaken[0]}


class Counter(eqx.Module):
    """Draws sequences of actions around the last one it found, and never tries the same twice: it counts."""

    horizon: int = eqx.field(static=True)
    pushes: int = eqx.field(static=True)

    def init(self, key):
        start = 0.1 + 0.1 * jax.random.normal(key, (self.horizon, 1), jnp.float32)
        return {"count": jnp.zeros((), jnp.int32), "last": start}

    def solve(self, problem, state, key):
        count, last = state["count"], state["last"]
        noise = jax.random.normal(key, (self.horizon, 1, self.pushes), jnp.float32)
        tried = jnp.clip(last[:, :, None] + 0.1 * noise + 0.05 * count.astype(jnp.float32), -1.0, 1.0)
        best, evaluation = _best(problem, tried)
        memory = {"count": count + 1, "last": best}
        return Solution(Pushes(best), evaluation, float(problem.threshold), {"count": count}), memory


@eqx.filter_jit
def _best(problem, tried):
    x = problem.starts[0].astype(tried.dtype)
    returns, states = nominal_returns(problem, x, tried)
    each = [excess(problem, jnp.int32(m), x, tried).beyond for m in range(problem.constraint_count)]
    beyond = jnp.max(jnp.stack([*each, jnp.zeros_like(returns)]), axis=0)
    value = returns - 100 * beyond
    chosen = jnp.argmax(value)
    gathered = information(problem, states, tried)
    return tried[:, :, chosen], Evaluation(value[chosen], beyond[chosen], gathered[chosen])


@dataclass(frozen=True)
class CounterSettings:
    """Searches around what was found last."""

    name: ClassVar[str] = SOLVER

    pushes: int = declared(Whole(2, 1000), 16, "sequences of actions that are tried")

    def __post_init__(self):
        validate(self, "solver.")

    def create(self, task):
        if task.action_size != 1:
            raise UserError(f"{task.name} has {task.action_size} actions, and the counter knows one.")
        return Counter(task.horizon, self.pushes)

    def cost_error(self, task):
        return 0.0

    def against_safety(self, task):
        yield from ()

    def against_optimality(self, task):
        yield from ()
