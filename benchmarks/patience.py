"""Whether a longer search finds a safe plan where a normal one does not; writes `patience.md`.

Plans are made along episodes of a committed run: with what was known before that episode, where the run itself planned,
and with what was known after its first episodes, where later ones go too far. Each search takes three rounds of
iterations, and it is asked afterwards what one that ends earlier would have found.
"""

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from common import EPISODE, belief_at, episodes, problem_of, table
from planning import planner_of

from sbsrl.problem import Problem
from sbsrl.solve.icem import ICEM, WORTHWHILE, Memory
from sbsrl.specification import Specification
from sbsrl.types import PRNGKey, State

ROUNDS = 3
OWN = [(number, number) for number in (2, 4, 6, 8, 10)]
"""Episodes that were planned with what was known: after how many episodes, and which one."""
TOO_FAR = [(known, later) for known in (1, 2, 3, 4) for later in (7, 9, 10)]


class Found(NamedTuple):
    """After each iteration, the violation of the best plan."""

    violations: list[np.ndarray]

    def with_patience(self, first: int, most: int, share: float = 0.0) -> tuple[int, int, float]:
        """Iterations, safe plans and mean violation of the others, if a search goes on up to so many iterations.

        It ends when as many as there are in a round lowered the violation by less than this share.
        """
        spent, safe, left = 0, 0, []
        for v in self.violations:
            i = first
            while i < most and v[i - 1] > 0 and (i == first or v[i - 1] <= (1 - share) * v[i - 1 - first]):
                i += 1
            spent += i
            safe += v[i - 1] <= 0
            left += [v[i - 1]] if v[-1] > 0 else []
        return spent, safe, float(np.mean(left)) if left else 0.0


@eqx.filter_jit
def search(planner: ICEM, problem: Problem, x: State, memory: Memory, key: PRNGKey) -> tuple[jax.Array, Memory]:
    """The violation of the best plan after each iteration of all rounds, and what is remembered."""
    start_key, search_key = jax.random.split(key)
    x, begun = x.astype(jnp.float32), planner._start(memory, start_key)

    def iterate(state: Any, i: jax.Array) -> tuple[Any, jax.Array]:
        def on() -> Any:
            return planner._iterate(problem, x, memory.warm, i, state, jax.random.fold_in(search_key, i))

        done = (i >= planner.iterations) & (state.best_evaluation.violation <= 0)
        new = jax.lax.cond(done, lambda: state, on)
        return new, new.best_evaluation.violation

    last, violations = jax.lax.scan(iterate, begun, jnp.arange(ROUNDS * planner.iterations, dtype=jnp.int32))
    elites = jnp.concatenate([last.best[None], last.kept[:-1]])
    return violations, Memory(last.mean, elites, jnp.ones((), bool), last.binding)


def along(pairs: list[tuple[int, int]]) -> tuple[int, Found]:
    """The iterations of a round, and what was found in these episodes, exploring and not."""
    experiment = Specification.make("pendulum", "sbsrl", 0, "cpu", {}).start()[0]
    planner, found = planner_of(experiment), []
    for known, number in pairs:
        states = episodes(11)[number].states
        for exploring in (True, False):
            problem = problem_of(experiment, belief_at(experiment, EPISODE * known, 550), exploring=exploring)
            memory = planner.init(problem.constraint_count)
            for t, x in enumerate(states):
                key = jax.random.key(100 * known + t)
                violations, memory = search(planner, problem, jnp.asarray(x), memory, key)
                found.append(np.asarray(violations))
    return planner.iterations, Found(found)


def main() -> None:
    lines = ["# Patience (`python benchmarks/patience.py`)", ""]
    lines += ["Plans along episodes of a committed run of the pendulum, with the settings of a run.", ""]
    for name, pairs in (("with what the run knew then", OWN), ("with what it knew after 1 to 4 episodes", TOO_FAR)):
        first, found = along(pairs)
        late = sum(v[first - 1] > 0 for v in found.violations)
        lines += [
            f"## Episodes planned {name}",
            "",
            f"{len(found.violations)} plans, {late} not safe after a round.",
            "",
        ]
        rules: dict[str, tuple[int, float]] = {
            "one round": (first, 0.0),
            f"while a round lowers the violation by {WORTHWHILE:.0%}": (ROUNDS * first, WORTHWHILE),
            "three rounds": (ROUNDS * first, -1.0),
        }
        rows = []
        for rule, (most, share) in rules.items():
            spent, safe, left = found.with_patience(first, most, share)
            rows.append([rule, str(spent), str(safe), f"{left:.4f}"])
        lines += [*table(["search", "iterations", "safe plans", "mean violation of the others"], rows), ""]
    (Path(__file__).parent / "patience.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
