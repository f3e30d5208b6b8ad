"""An iteration of the actor-critic at the paper's sizes against a plain one of the same; writes `actor_critic.md`.

taskset -c 0 python benchmarks/actor_critic.py

The plain one has a pair of networks for every signal, updates them one after the other, each with a program of its own,
computes the gradient of the policy at every update of the critics and uses the last one, asks all critics at all states
where the policy is updated, and compiles nothing together. Here costs and uncertainty share a trunk, so that critics do
not stay the same; as long as they are (a learning rate of 0) both make the same policy, which is checked.
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import json
import resource
import subprocess
import sys
import time
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.networks import apply
from sbsrl.optimisation import descend
from sbsrl.solve.actor_critic import updates
from sbsrl.solve.actor_critic.critics import CRITIC, TRACKING, TWO, Judged, Pairs, inputs, targets
from sbsrl.solve.actor_critic.rollouts import Rollout, roll, stochastic
from sbsrl.solve.actor_critic.updates import Learned, Round, Sources
from sbsrl.solve.network.improver import OPTIMISER, Trained, signal_units, weights_of
from sbsrl.solve.network.network_policy import standardised
from sbsrl.solve.network.pressures import followed, pressures
from sbsrl.specification import Specification

HERE = Path(__file__).parent
PAPER = {
    "contact": "ghost",
    "data": "careless:25:0",
    "solver": "actor-critic",
    "method.samples": 5,
    "critic_width": 512,
    "critic_batch": 1280,
    "robust": False,
    "actor_batch": 1280,
    "rollouts": 43,
    "rollout_steps": 5,
}
"""Five samples, batches of 256 states on each, critics 512 wide; 43 rollouts of 5 steps on 6 models are 1290 steps."""
RATIOS = (1, 20)
"""Updates of the critics per update of the policy: the paper's race car, and its humanoid and quadruped."""
WANTED = 1.5


def made(critic_updates: int) -> tuple[Round, Learned, Rollout]:
    """What an iteration needs."""
    experiment, learner = Specification.make(
        "race-car", "sbsrl", 7, "cpu", {**PAPER, "critic_updates": critic_updates}
    ).start()
    from sbsrl.learner import context_of  # noqa: PLC0415

    solver: Any = experiment.solver
    problem = experiment.method.problem(context_of(experiment, learner))
    improver, state, domain = solver.improver, learner.solver, solver.domain
    weights = weights_of(solver.choices, domain.return_scale)
    sources: Sources = improver._sources(state.memory, jax.random.key(1))
    scale = signal_units(problem, domain, weights)
    setting = Round(domain.units, problem, sources, problem.bounds, scale, improver._sizes, weights, weights.trust)
    trained = Trained(state.network, state.moments, jnp.full((5, 1), 0.1, jnp.float32), state.curiosity)
    learned = Learned(trained, state.memory.critics, state.memory.soft)
    n = setting.models * setting.sizes.each
    first = sources.recorded[:n]
    rolled = roll(
        trained.network, learned.soft.log_std, domain.units, setting.rows, problem, first, (), scale,
        setting.sizes.steps, jax.random.key(2),
    )  # fmt: skip
    return setting, learned, rolled


def ours(setting: Round) -> Any:
    """Of learned networks and a rollout, in one program."""

    @jax.jit
    def iteration(learned: Learned, rolled: Rollout, rate: Any, key: Any) -> Learned:
        learn_key, act_key = jax.random.split(key)
        judged = updates._judged(setting, learned, rolled)
        anchor = learned.trained.network
        learned = learned._replace(critics=updates._critics(setting, learned.critics, judged, learn_key))
        return updates._actor(setting, learned, anchor, judged, rate, act_key)[0]

    return lambda learned, rolled, key: iteration(learned, rolled, jnp.float32(1e-4), key)


Networks = list[Any]
"""Those of every signal, twice: two of the reward, two of every cost, two of the uncertainty."""


def separate(pairs: Pairs) -> Networks:
    """A network of its own for each signal, which says the same."""

    def alone(pair: Any, twin: int, signal: int) -> Any:
        *hidden, last = jax.tree.map(lambda leaf: leaf[twin], pair)
        return (*hidden, type(last)(last.weights[:, signal : signal + 1], last.bias[signal : signal + 1]))

    outputs = [(pair, signal) for pair in pairs for signal in range(pair[-1].bias.shape[1])]
    return [alone(pair, twin, signal) for twin in range(TWO) for pair, signal in outputs]


class Held(NamedTuple):
    """What the plain one remembers of its critics."""

    networks: Networks
    followers: Networks
    moments: Networks


class Plain:
    """The same, plainly: a program for each network's update, and a gradient of the policy every time."""

    def __init__(self, setting: Round) -> None:
        self.setting = setting
        self.learn = jax.jit(self._learn, static_argnums=4)
        self.targets = jax.jit(self._targets)
        self.policy = jax.jit(self._policy)
        self.applied = jax.jit(self._applied)
        self.chosen = jax.jit(lambda judged, key: updates._batch(judged, setting.sizes.critic_batch, key))

    def begun(self, learned: Learned) -> Held:
        networks = separate(learned.critics.networks)
        return Held(networks, separate(learned.critics.followers), [CRITIC.init(each) for each in networks])

    def _values(self, networks: Networks, x: Any, shares: Any, code: Any) -> Any:
        """The mean of both networks, of every signal."""
        seen = inputs(self.setting.units, x, shares, code)
        found = jnp.concatenate([apply(network, seen) for network in networks], axis=1)
        return jnp.mean(found.reshape(len(x), TWO, -1), axis=1)

    def _learn(self, network: Any, moments: Any, follower: Any, batch: Judged, signal: int) -> Any:
        seen = inputs(self.setting.units, batch.states, batch.shares, batch.code)

        def loss(network: Any) -> Any:
            error = apply(network, seen)[:, 0] - batch.wanted[:, signal]
            return jnp.mean(jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5))

        network, moments = descend(CRITIC, jax.grad(loss)(network), moments, network, self.setting.sizes.critic_rate)
        return network, moments, jax.tree.map(lambda old, new: (1 - TRACKING) * old + TRACKING * new, follower, network)

    def _targets(self, followers: Networks, soft: Any, rolled: Rollout) -> Judged:
        sizes, (steps, n, _) = self.setting.sizes, rolled.signals.shape

        def flat(part: Any) -> Any:
            return part.reshape(steps * n, -1)

        code = jnp.tile(self.setting.code, (steps, 1))
        after = self._values(followers, flat(rolled.states[1:]), flat(rolled.shares[1:]), code).reshape(steps, n, -1)
        warm = jnp.exp(soft.log_temperature)
        wanted = targets(rolled.signals, after, rolled.log_density[1:], warm, sizes.discount, sizes.trace)
        return Judged(flat(rolled.states[:-1]), flat(rolled.shares[:-1]), code, flat(wanted))

    def _policy(self, learned: Learned, networks: Networks, judged: Judged, key: Any) -> Any:
        """Slopes of the policy, and what else its update needs."""
        setting = self.setting
        see_key, pick_key, draw_key = jax.random.split(key, 3)
        seen = updates.foreseen(setting, learned, see_key)
        pushed = pressures(
            setting.problem, seen, learned.trained, setting.weights, setting.bounds, setting.unit, updates.RAMP
        )
        chosen = updates.spread(setting, judged, pick_key)
        noise = jax.random.normal(draw_key, chosen.shares.shape, jnp.float32)

        def loss(parameters: Any) -> Any:
            """All critics at all states, of which what counts is taken."""
            network, log_std = parameters
            drawn = stochastic(network, log_std, setting.units, chosen.states, noise)
            q = self._values(networks, chosen.states, drawn.shares, chosen.code)
            each, samples = updates._counts(setting)[0], setting.models - 1
            sampled, nominal = q[: samples * each].reshape(samples, each, -1), q[samples * each :]
            earned = jnp.mean(q[:, 0]) if setting.sizes.robust else jnp.mean(nominal[:, 0])
            charged = jnp.sum(pushed.costs * jnp.mean(sampled, axis=1)[:, 1:-1])
            value = charged - earned - pushed.information * jnp.mean(nominal[:, -1])
            density = jnp.mean(drawn.log_density)
            x = standardised(setting.units, chosen.states)
            moved = jnp.tanh(apply(network, x)) - jnp.tanh(apply(learned.trained.network, x))
            soft = (1 - setting.sizes.discount) * jnp.exp(learned.soft.log_temperature) * density
            return value + soft + setting.sizes.anchor * jnp.mean(moved**2), density

        slopes, density = jax.grad(loss, has_aux=True)((learned.trained.network, learned.soft.log_std))
        return slopes, density, seen

    def __call__(self, learned: Learned, rolled: Rollout, key: Any, held: Held) -> tuple[Learned, Held]:
        learn_key, act_key = jax.random.split(key)
        judged = self.targets(held.followers, learned.soft, rolled)
        networks, followers, moments = (list(each) for each in held)
        for step_key in jax.random.split(learn_key, self.setting.sizes.critic_updates):
            batch = self.chosen(judged, step_key)
            for i, network in enumerate(networks):
                signal = i % (len(networks) // TWO)
                networks[i], moments[i], followers[i] = self.learn(network, moments[i], followers[i], batch, signal)
            slopes, density, seen = self.policy(learned, networks, judged, act_key)  # thrown away but for the last
        return self.applied(learned, slopes, density, seen), Held(networks, followers, moments)

    def _applied(self, learned: Learned, slopes: Any, density: Any, seen: Any) -> Learned:
        trained, soft, setting = learned.trained, learned.soft, self.setting
        network, moments = descend(OPTIMISER, slopes[0], trained.moments, trained.network, 1e-4)
        surplus = -density - setting.sizes.entropy
        before = (soft.log_std, soft.log_temperature)
        (log_std, warm), soft_moments = descend(
            updates.SOFT, (slopes[1], surplus), soft.moments, before, updates.SOFT_RATE
        )
        trained = followed(setting.problem, trained, seen, setting.weights, setting.bounds)
        return Learned(
            trained._replace(network=network, moments=moments),
            learned.critics,
            updates.Soft(log_std, warm, soft_moments),
        )


def agree(critic_updates: int) -> None:
    """Both make the same policy, multipliers, temperature and deviations to 1e-4 as long as critics are the same."""
    setting, learned, rolled = made(critic_updates)
    setting, key = setting._replace(sizes=setting.sizes._replace(critic_rate=0.0)), jax.random.key(3)
    plain = Plain(setting)
    one, (other, _) = ours(setting)(learned, rolled, key), plain(learned, rolled, key, plain.begun(learned))
    moved = np.abs(np.asarray(one.trained.network[0].weights - learned.trained.network[0].weights)).max()
    assert moved > 5e-5, "nothing was learned, so that nothing was compared"
    for name in ("trained.network", "trained.multipliers", "soft.log_std", "soft.log_temperature"):
        a, b = (attrgetter(name)(each) for each in (one, other))
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=1e-5)


def measured(who: str, critic_updates: int) -> None:
    """Prints the CPU-seconds of an iteration, the least of several, and the most memory, as JSON."""
    setting, learned, rolled = made(critic_updates)
    key, found = jax.random.key(3), []
    plain = Plain(setting)
    work: Any = ours(setting) if who == "ours" else plain
    arguments = (learned, rolled, key) if who == "ours" else (learned, rolled, key, plain.begun(learned))
    jax.block_until_ready(work(*arguments))
    for _ in range(3):
        began = time.process_time()
        jax.block_until_ready(work(*arguments))
        found.append(time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": min(found), "gigabytes": peak}))


def asked(*words: str) -> dict[str, Any]:
    """What a process of its own printed."""
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    lines = [
        "# One iteration of the actor-critic",
        "",
        "`taskset -c 0 python benchmarks/actor_critic.py`, with the paper's samples, batches and width (five samples, "
        "256 states on each, critics 512 wide; its critics are deeper) for the race car: targets, updates of all "
        "critics, one update of the policy and of its temperature. Plain: a network for every signal with a program of "
        "its own, and a gradient of the policy at every update of the critics, of which the last is used, through all "
        "critics at all states. Here costs and uncertainty share a trunk, and critics are asked where they count. Both "
        "make the same policy to 1e-5 as long as their critics say the same. "
        "CPU-seconds, the least of three, each in a process of its own.",
        "",
        f"| critics per policy update | this | plain | ratio | at least {WANTED} | memory | plain |",
        "|---|---|---|---|---|---|---|",
    ]
    for ratio in RATIOS:
        agree(ratio)
        mine, plain = (asked(who, str(ratio)) for who in ("ours", "plain"))
        times = plain["seconds"] / mine["seconds"]
        lines.append(
            f"| {ratio} | {mine['seconds']:.2f} s | {plain['seconds']:.2f} s | {times:.2f} | "
            f"{'yes' if times >= WANTED else '**no**'} | {mine['gigabytes']:.2f} GB | {plain['gigabytes']:.2f} GB |"
        )
    (HERE / "actor_critic.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        measured(sys.argv[1], int(sys.argv[2]))
