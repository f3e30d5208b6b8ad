"""An iteration of the actor-critic at the paper's sizes against a plain one of the same; writes `actor_critic.md`.

taskset -c 0 python benchmarks/actor_critic.py

The plain one updates networks one after the other, each with a program of its own, computes the gradient of the policy
at every update of the critics and uses the last one, asks all critics at all states where the policy is updated, and
compiles nothing together. It is measured with a pair of networks for every signal, and with the critics of this
package, whose costs and uncertainty share a trunk. With these both end with the same numbers, which is checked.
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


Signals = tuple[int, ...]
"""The signals that a network is a critic of: its outputs."""


def separate(pairs: Pairs) -> dict[tuple[int, Signals], Any]:
    """Two networks of its own for each signal, which say the same."""

    def alone(pair: Any, twin: int, output: int) -> Any:
        *hidden, last = jax.tree.map(lambda leaf: leaf[twin], pair)
        return (*hidden, type(last)(last.weights[:, output : output + 1], last.bias[output : output + 1]))

    outputs = [(pair, output) for pair in pairs for output in range(pair[-1].bias.shape[1])]
    return {
        (twin, (signal,)): alone(pair, twin, output)
        for twin in range(TWO)
        for signal, (pair, output) in enumerate(outputs)
    }


def shared(pairs: Pairs) -> dict[tuple[int, Signals], Any]:
    """Those of this package: two of the reward, two of all other signals."""
    signals = 1 + pairs.others[-1].bias.shape[1]
    return {
        (twin, which): jax.tree.map(lambda leaf, twin=twin: leaf[twin], pair)
        for twin in range(TWO)
        for pair, which in zip(pairs, ((0,), tuple(range(1, signals))), strict=True)
    }


def is_net(tree: Any) -> bool:
    return isinstance(tree, tuple)


class Held(NamedTuple):
    """What the plain one remembers of its critics."""

    networks: Any
    followers: Any
    moments: Any


class Plain:
    """The same, plainly: a program for each network's update, and a gradient of the policy every time."""

    def __init__(self, setting: Round, made: Any) -> None:
        """`made`: of the networks of this package those of the plain one, by twin and signals."""
        self.setting, self.made = setting, made
        self.learn = jax.jit(self._learn, static_argnums=4)
        self.targets = jax.jit(self._targets)
        self.policy = jax.jit(self._policy)
        self.applied = jax.jit(self._applied)
        self.chosen = jax.jit(lambda judged, key: updates._batch(judged, setting.sizes.critic_batch, key))

    def begun(self, learned: Learned) -> Held:
        networks = self.made(learned.critics.networks)
        return Held(networks, self.made(learned.critics.followers), jax.tree.map(CRITIC.init, networks, is_leaf=is_net))

    def _values(self, networks: Any, x: Any, shares: Any, code: Any) -> Any:
        """The mean of both networks, of every signal."""
        seen = inputs(self.setting.units, x, shares, code)
        found = jnp.concatenate([apply(networks[name], seen) for name in sorted(networks)], axis=1)
        return jnp.mean(found.reshape(len(x), TWO, -1), axis=1)

    def _learn(self, network: Any, moments: Any, follower: Any, batch: Judged, signals: Signals) -> Any:
        seen = inputs(self.setting.units, batch.states, batch.shares, batch.code)

        def loss(network: Any) -> Any:
            error = apply(network, seen) - batch.wanted[:, jnp.array(signals)]
            return jnp.sum(jnp.mean(jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5), axis=0))

        network, moments = descend(CRITIC, jax.grad(loss)(network), moments, network, self.setting.sizes.critic_rate)
        return network, moments, jax.tree.map(lambda old, new: (1 - TRACKING) * old + TRACKING * new, follower, network)

    def _targets(self, followers: Any, soft: Any, rolled: Rollout) -> Judged:
        sizes, (steps, n, _) = self.setting.sizes, rolled.signals.shape

        def flat(part: Any) -> Any:
            return part.reshape(steps * n, -1)

        code = jnp.tile(self.setting.code, (steps, 1))
        after = self._values(followers, flat(rolled.states[1:]), flat(rolled.shares[1:]), code).reshape(steps, n, -1)
        warm = jnp.exp(soft.log_temperature)
        wanted = targets(rolled.signals, after, rolled.log_density[1:], warm, sizes.discount, sizes.trace)
        return Judged(flat(rolled.states[:-1]), flat(rolled.shares[:-1]), code, flat(wanted))

    def _policy(self, learned: Learned, networks: Any, judged: Judged, key: Any) -> Any:
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
        networks, followers, moments = (dict(each) for each in held)
        for step_key in jax.random.split(learn_key, self.setting.sizes.critic_updates):
            batch = self.chosen(judged, step_key)
            for each in networks:
                now = networks[each], moments[each], followers[each]
                networks[each], moments[each], followers[each] = self.learn(*now, batch, each[1])
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
    """Both do the same with the same networks: policy, multipliers, deviations, temperature, and critics, to 1e-5.

    The forecast that the plain one shares with this package is of critics as they were, so that these rest for it.
    """
    setting, learned, rolled = made(critic_updates)
    key = jax.random.key(3)
    plain = Plain(setting, shared)
    one, (_, held) = ours(setting)(learned, rolled, key), plain(learned, rolled, key, plain.begun(learned))
    same(shared(one.critics.networks), held.networks)
    same(shared(one.critics.followers), held.followers)
    moved(one.critics.networks, learned.critics.networks)
    resting = setting._replace(sizes=setting.sizes._replace(critic_rate=0.0))
    one = ours(resting)(learned, rolled, key)
    moved(one.trained.network, learned.trained.network)
    for kind in (shared, separate):
        plain = Plain(resting, kind)
        other, _ = plain(learned, rolled, key, plain.begun(learned))
        for name in ("trained.network", "trained.multipliers", "soft.log_std", "soft.log_temperature"):
            same(*(attrgetter(name)(each) for each in (one, other)))


def same(one: Any, other: Any) -> None:
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=1e-5)


def moved(after: Any, before: Any) -> None:
    changes = jax.tree.map(lambda x, y: float(np.abs(np.asarray(x) - np.asarray(y)).max()), after, before)
    assert max(jax.tree.leaves(changes)) > 5e-5, "nothing was learned, so that nothing was compared"


def measured(who: str, critic_updates: int) -> None:
    """Prints the CPU-seconds of an iteration, the least of several, and the most memory, as JSON."""
    setting, learned, rolled = made(critic_updates)
    key, found = jax.random.key(3), []
    plain = Plain(setting, shared if who == "shared" else separate)
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
        "critics at all states. Here costs and uncertainty share a trunk, and critics are asked where they count; "
        "plain, shared: the plain one with that trunk, which does the same as this one to 1e-5. CPU-seconds, the least "
        "of three, each in a process of its own.",
        "",
        f"| critics per policy update | this | plain | ratio | at least {WANTED} | plain, shared | ratio | memory | "
        "plain |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for ratio in RATIOS:
        agree(ratio)
        mine, plain, trunk = (asked(who, str(ratio)) for who in ("ours", "plain", "shared"))
        times, alike = (each["seconds"] / mine["seconds"] for each in (plain, trunk))
        lines.append(
            f"| {ratio} | {mine['seconds']:.2f} s | {plain['seconds']:.2f} s | {times:.2f} | "
            f"{'yes' if times >= WANTED else '**no**'} | {trunk['seconds']:.2f} s | {alike:.2f} | "
            f"{mine['gigabytes']:.2f} GB | {plain['gigabytes']:.2f} GB |"
        )
    lines += [
        "",
        "With one update of the critics per update of the policy no gradient is thrown away, and what is left to gain "
        "is the trunk: four networks in place of six. If all time went into their matrix products, that were 1.5.",
    ]
    (HERE / "actor_critic.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        measured(sys.argv[1], int(sys.argv[2]))
