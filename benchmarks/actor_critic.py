"""An iteration of the actor-critic at the paper's sizes against a plain one of the same; writes `actor_critic.md`.

taskset -c 0 python benchmarks/actor_critic.py

The plain one updates the networks one after the other, each with a program of its own, computes the gradient of the
policy at every update of the critics and uses the last one, and compiles nothing together: as public code does. Both
end with the same numbers, which is checked.
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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.networks import apply
from sbsrl.optimisation import descend
from sbsrl.solve.actor_critic import updates
from sbsrl.solve.actor_critic.critics import CRITIC, TRACKING, TWO, Critics, Judged
from sbsrl.solve.actor_critic.rollouts import Rollout, roll
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
    from sbsrl.loop import context_of  # noqa: PLC0415

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


class Plain:
    """The same, plainly: a program for each network's update, and a gradient of the policy every time."""

    def __init__(self, setting: Round) -> None:
        self.setting = setting
        self.value = jax.jit(self._value)
        self.learn = jax.jit(self._learn, static_argnums=4)
        self.targets = jax.jit(self._targets)
        self.policy = jax.jit(self._policy)
        self.applied = jax.jit(self._applied)
        self.chosen = jax.jit(lambda judged, key: updates._chosen(judged, setting.sizes.critic_batch, key)[0])

    def _value(self, network: Any, x: Any, shares: Any, code: Any) -> Any:
        inputs = jnp.concatenate([standardised(self.setting.units, x), shares, code], axis=1)
        return apply(network, inputs)[:, 0]

    def _learn(self, network: Any, moments: Any, follower: Any, batch: Judged, signal: int) -> Any:
        def loss(network: Any) -> Any:
            error = self._value(network, batch.states, batch.shares, batch.code) - batch.wanted[:, signal]
            return jnp.mean(jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5))

        network, moments = descend(CRITIC, jax.grad(loss)(network), moments, network, self.setting.sizes.critic_rate)
        return network, moments, jax.tree.map(lambda old, new: (1 - TRACKING) * old + TRACKING * new, follower, network)

    def _targets(self, learned: Learned, rolled: Rollout) -> Judged:
        return updates._judged(self.setting, learned, rolled)

    def _policy(self, learned: Learned, anchor: Any, judged: Judged, key: Any) -> Any:
        """Slopes of the policy, and what else its update needs."""
        setting = self.setting
        see_key, pick_key, draw_key = jax.random.split(key, 3)
        seen = updates.foreseen(setting, learned, see_key)
        pushed = pressures(
            setting.problem, seen, learned.trained, setting.weights, setting.bounds, setting.unit, updates.RAMP
        )
        chosen, rows = updates._chosen(judged, setting.sizes.actor_batch, pick_key)
        model = rows % (setting.models * setting.sizes.each) // setting.sizes.each
        parameters = (learned.trained.network, learned.soft.log_std)
        slopes, density = jax.grad(updates._objective, has_aux=True)(
            parameters, setting, learned, anchor, pushed, chosen, model, draw_key
        )
        return slopes, density, seen

    def __call__(self, learned: Learned, rolled: Rollout, key: Any) -> Learned:
        setting, anchor = self.setting, learned.trained.network
        learn_key, act_key = jax.random.split(key)
        judged = self.targets(learned, rolled)
        count = len(learned.critics.networks[0].weights)
        nets, follow = (
            [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(count)] for tree in learned.critics[:2]
        )
        moments = [
            jax.tree.map(lambda leaf, i=i: leaf[i] if leaf.ndim else leaf, learned.critics.moments)
            for i in range(count)
        ]
        for step_key in jax.random.split(learn_key, setting.sizes.critic_updates):
            batch = self.chosen(judged, step_key)
            for i in range(count):
                nets[i], moments[i], follow[i] = self.learn(nets[i], moments[i], follow[i], batch, i % (count // TWO))
            now = learned._replace(critics=Critics(stacked(nets), learned.critics.followers, learned.critics.moments))
            slopes, density, seen = self.policy(now, anchor, judged, act_key)  # thrown away but for the last
        critics = Critics(stacked(nets), stacked(follow), stacked(moments))
        return self.applied(learned._replace(critics=critics), slopes, density, seen)

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


@jax.jit
def stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def agree(one: Learned, other: Learned) -> None:
    """Both are the same update: networks, followers, multipliers, temperature and deviations to 1e-4."""
    for name in ("critics.networks", "critics.followers", "trained.network", "trained.multipliers", "soft.log_std"):
        a, b = (attrgetter(name)(each) for each in (one, other))
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=1e-4)
    np.testing.assert_allclose(float(one.soft.log_temperature), float(other.soft.log_temperature), atol=1e-4)


def measured(who: str, critic_updates: int) -> None:
    """Prints the CPU-seconds of an iteration, the least of several, and the most memory, as JSON."""
    setting, learned, rolled = made(critic_updates)
    work = {"ours": ours, "plain": Plain}[who](setting)
    key, found = jax.random.key(3), []
    jax.block_until_ready(work(learned, rolled, key))
    for _ in range(3):
        began = time.process_time()
        jax.block_until_ready(work(learned, rolled, key))
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
        "critics, one update of the policy and of its temperature. Plain: a program per network, and a gradient of the "
        "policy at every update of the critics, of which the last is used; both end with the same numbers to 1e-4. "
        "CPU-seconds, the least of three, each in a process of its own.",
        "",
        f"| critics per policy update | this | plain | ratio | at least {WANTED} | memory | plain |",
        "|---|---|---|---|---|---|---|",
    ]
    for ratio in RATIOS:
        setting, learned, rolled = made(ratio)
        key = jax.random.key(3)
        agree(ours(setting)(learned, rolled, key), Plain(setting)(learned, rolled, key))
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
