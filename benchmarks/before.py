"""An earlier commit against this tree, in turns in one run; writes `before.md`.

    python benchmarks/before.py [REVISION [plan] [build] [append] [run]]

Each has a process of its own that imports its own sources and benchmarks, and is asked for one piece of work at a time.
What was learned is compared as well: equal episodes are equal to the last bit.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

HERE = Path(__file__).parent
TOP = HERE.parent
REVISION = "267cda6"
"""The last commit before distances were summed where they are used and centres were handled by themselves."""
ROUNDS = 3
PATIENCE = 10.0
"""Seconds: what took longer is measured once."""
LIMIT = 1.05

PLANS = {
    "a plan, 50 points": ("plan", 50, False, 30),
    "a plan, 200 points": ("plan", 200, False, 30),
    "a plan, 450 points": ("plan", 450, False, 30),
    "a plan that explores, 200 points": ("plan", 200, True, 30),
}
DEAR_PLANS = {
    "a plan on 300 samples, 450 points": ("plan", 450, False, 300),
    "a plan on truncated samples, 450 points": ("plan", 450, False, 30, "truncated"),
}
BUILDS = {f"the problem of an episode, {n} points": ("build", n) for n in (1000, 2000, 5000)}
APPENDS = {f"an episode appended to {n} points": ("append", n) for n in (1000, 2000, 5000)}
RUNS = {
    f"{episodes + 1} episodes of {task} by {method}": ("run", task, method, episodes)
    for task, method, episodes in (
        ("pendulum", "sbsrl", 1),
        ("pendulum", "mean", 3),
        ("pendulum", "actsafe", 1),
        ("pendulum", "unsafe", 3),
        ("ledge", "sbsrl", 30),
        ("cartpole", "sbsrl", 1),
    )
}
WORK: dict[str, tuple[Any, ...]] = {**PLANS, **BUILDS, **APPENDS, **DEAR_PLANS, **RUNS}


class Done(NamedTuple):
    """What a piece of work took, and what came of it: rewards and costs of episodes."""

    seconds: float
    """Of the processor."""
    wall: float
    outcome: list[Any]


# in the process of one tree ----------------------------------------------------------------------------------------


def plan(points: int, explores: bool, samples: int, sampler: str = "pathwise") -> Callable[[], list[Any]]:
    """Three plans of the size of the paper's public code, as `planning.py` of that tree makes them."""
    from common import belief_at, paper_size, problem_of  # noqa: PLC0415
    from planning import planner_of, plans  # noqa: PLC0415

    from sbsrl.belief.choices import GPChoices  # noqa: PLC0415

    experiment = paper_size()
    method = replace(experiment.settings.method, samples=samples)
    experiment = replace(experiment, settings=replace(experiment.settings, method=method))
    belief = belief_at(experiment, points, 500, GPChoices(sampler=sampler))
    timed, _ = plans(planner_of(experiment), problem_of(experiment, belief, exploring=explores))

    def work() -> list[Any]:
        return [float(each.evaluation.value) for each in jax.block_until_ready(timed())]

    return work


def drawn_episodes(count: int) -> Any:
    """So many episodes of the pendulum under torques that vary slowly, as transitions."""
    import numpy as np  # noqa: PLC0415

    from sbsrl import make_task  # noqa: PLC0415
    from sbsrl.transitions import Transitions  # noqa: PLC0415

    equations, rng = make_task("pendulum").equations, np.random.default_rng(0)
    assert equations is not None
    key = jax.random.key(0)
    step = jax.jit(jax.vmap(lambda x, a: equations.step(x, a, key)))
    x, a, seen = np.tile([-1.0, 0.0, 0.0], (count, 1)), np.zeros((count, 1)), []
    for _ in range(50):
        a = np.clip(0.8 * a + 0.6 * rng.normal(size=a.shape), -1, 1)
        y = np.asarray(step(x, a))
        seen.append((x, a, y))
        x = y
    x, a, y = (np.stack(part, axis=1).reshape(50 * count, -1) for part in zip(*seen, strict=True))
    rest = np.zeros(len(x)), np.zeros((len(x), 1)), np.zeros(len(x), bool)
    return Transitions(x, a, y, *rest)


def knowing(points: int) -> Any:
    """The experiment, and what is believed after so many points of drawn episodes."""
    from common import belief_at, paper_size  # noqa: PLC0415

    experiment = paper_size()
    return experiment, belief_at(experiment, 0, points + 100).condition_on(drawn_episodes(points // 50))


def build(points: int) -> Callable[[], list[Any]]:
    """Samples, nominal model and uncertainty: all that is made of the belief before an episode."""
    from common import problem_of  # noqa: PLC0415

    experiment, belief = knowing(points)

    def work() -> list[Any]:
        jax.block_until_ready(jax.tree.leaves(problem_of(experiment, belief)))
        return []

    return work


def append(points: int) -> Callable[[], list[Any]]:
    """An episode more."""
    _, belief = knowing(points)
    episode = drawn_episodes(1)

    def work() -> list[Any]:
        jax.block_until_ready(belief.update(episode, jax.random.key(0)).beta)
        return []

    return work


def run(task: str, method: str, episodes: int) -> Callable[[], list[Any]]:
    """A run from its first episode to its final policy."""
    import sbsrl  # noqa: PLC0415

    def work() -> list[Any]:
        changes: dict[str, Any] = {"actsafe_episodes": 1} if method == "actsafe" else {}
        if task == "cartpole":
            changes["exploration_threshold"] = 1200.0  # the default has changed since
        result = sbsrl.learn(task, method, seed=3, episodes=episodes, **changes)
        return [[record.reward, record.cost, record.feasible] for record in result.records]

    return work


KINDS: dict[str, Callable[..., Callable[[], list[Any]]]] = {"plan": plan, "build": build, "append": append, "run": run}


def serve(tree: str) -> None:
    """Reads the names of pieces of work and answers each with a line."""
    sys.path[:0] = [f"{tree}/src", f"{tree}/benchmarks"]
    prepared: dict[str, Callable[[], list[Any]]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            kind, *arguments = WORK[name]
            prepared[name] = KINDS[kind](*arguments)
            prepared[name]()  # compiles
        began, waited = time.process_time(), time.perf_counter()
        outcome = prepared[name]()
        print(json.dumps([time.process_time() - began, time.perf_counter() - waited, outcome]), flush=True)


# in the process that compares --------------------------------------------------------------------------------------


class Tree:
    """A tree of sources, and a process that works with it."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, __file__, "serve", str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, name: str) -> Done:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        return Done(*json.loads(self.process.stdout.readline()))


def checked_out(revision: str) -> Path:
    """The files of a commit, below `build/`."""
    folder = TOP / "build" / f"before-{revision}"
    if not folder.exists():
        folder.mkdir(parents=True)
        files = subprocess.run(["git", "archive", revision], cwd=TOP, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=files, check=True)
    return folder


def compare(name: str, before: Tree, now: Tree) -> list[str]:
    """A row of the table: the shortest times of both, which the rest of the machine disturbs least, and their ratio."""
    pairs = [(before.do(name), now.do(name))]
    while len(pairs) < ROUNDS and pairs[0][0].seconds < PATIENCE:
        pairs.append((before.do(name), now.do(name)))
    old, new = (min(pair[i].seconds for pair in pairs) for i in (0, 1))
    waits = [min(pair[i].wall for pair in pairs) for i in (0, 1)]
    equal = all(a.outcome == b.outcome for a, b in pairs)
    verdict = (
        "equal" if equal else f"differs by up to {largest_difference(pairs[0][0].outcome, pairs[0][1].outcome):.2g}"
    )
    spent = [f"{1000 * time:.0f} ms" for time in (old, new)]
    waited = [f"{1000 * wait:.0f} ms" for wait in waits]
    return [name, *spent, f"{new / old:.3f}", *waited, verdict]


def largest_difference(one: list[Any], other: list[Any]) -> float:
    if len(one) != len(other):
        return float("inf")
    each = [largest_difference(a, b) if isinstance(a, list) else abs(a - b) for a, b in zip(one, other, strict=True)]
    return max(each, default=0.0)


def main(revision: str, kinds: list[str]) -> None:
    before, now = Tree(checked_out(revision)), Tree(TOP)
    rows: list[list[str]] = []
    for name, (kind, *_) in WORK.items():
        if kind in kinds:
            rows.append(compare(name, before, now))
            print(" | ".join(rows[-1]), flush=True)
            write(revision, rows)


def write(revision: str, rows: list[list[str]]) -> None:
    """The page, as far as it is measured."""
    from common import table  # noqa: PLC0415

    slow = [row[0] for row in rows if float(row[3]) > LIMIT]
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    lines = [
        f"# Before and now (`python benchmarks/before.py {revision}`)",
        "",
        f"Commit {revision} against this tree: processor time of two processes that take turns, the shortest of",
        f"{ROUNDS} rounds (one, where it took more than {PATIENCE:g} s), nothing compiled in them; and the shortest",
        f"time one had to wait, with {cores} cores and {load:.1f} processes that wanted them when this ended.",
        "Plans are three each, of the size of the paper's public code, at three states of an episode. Runs are whole,",
        "from the first episode to the final policy; rewards, costs and feasibility are compared bit for bit.",
        "",
        *table(["what", "before", "now", "ratio", "waited before", "now", "outcome"], rows),
        "",
        f"Slower than {LIMIT} of before: {', '.join(slow) or 'nothing'}.",
    ]
    (HERE / "before.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else REVISION, sys.argv[2:] or list(KINDS))
