"""An earlier commit against this tree, in turns in one run; writes `before.md`.

    python benchmarks/before.py [REVISION]

Each has a process of its own that imports its own sources and benchmarks, and is asked for one piece of work at a time.
What was learned is compared as well: equal episodes are equal to the last bit.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TOP = HERE.parent
REVISION = "c40c0e3"
"""The last commit before the true system became an environment of Gymnasium."""
ROUNDS = 4
LIMIT = 1.05

PLANS = {f"a plan, {n} points": ("plan", n, explores) for n, explores in ((50, False), (200, False), (450, False))}
PLANS["a plan that explores, 200 points"] = ("plan", 200, True)
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
WORK: dict[str, tuple[Any, ...]] = {**PLANS, **RUNS}


class Done(NamedTuple):
    """What a piece of work took, and what came of it: rewards and costs of episodes."""

    seconds: float
    outcome: list[Any]


# in the process of one tree ----------------------------------------------------------------------------------------


def plan(points: int, explores: bool) -> Callable[[], list[Any]]:
    """Three plans of the size of the paper's public code, as `planning.py` of that tree makes them."""
    import jax  # noqa: PLC0415
    from common import belief_at, paper_size, problem_of  # noqa: PLC0415
    from planning import planner_of, plans  # noqa: PLC0415

    experiment = paper_size()
    problem = problem_of(experiment, belief_at(experiment, points, 500), exploring=explores)
    timed, _ = plans(planner_of(experiment), problem)

    def work() -> list[Any]:
        return [float(each.evaluation.value) for each in jax.block_until_ready(timed())]

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


def serve(tree: str) -> None:
    """Reads the names of pieces of work and answers each with a line."""
    sys.path[:0] = [f"{tree}/src", f"{tree}/benchmarks"]
    prepared: dict[str, Callable[[], list[Any]]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            kind, *arguments = WORK[name]
            prepared[name] = plan(*arguments) if kind == "plan" else run(*arguments)
            prepared[name]()  # compiles
        began = time.process_time()
        outcome = prepared[name]()
        print(json.dumps([time.process_time() - began, outcome]), flush=True)


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
    pairs = [(before.do(name), now.do(name)) for _ in range(ROUNDS)]
    old, new = (min(pair[i].seconds for pair in pairs) for i in (0, 1))
    equal = all(a.outcome == b.outcome for a, b in pairs)
    verdict = (
        "equal" if equal else f"differs by up to {largest_difference(pairs[0][0].outcome, pairs[0][1].outcome):.2g}"
    )
    return [name, f"{1000 * old:.0f} ms", f"{1000 * new:.0f} ms", f"{new / old:.3f}", verdict]


def largest_difference(one: list[Any], other: list[Any]) -> float:
    if len(one) != len(other):
        return float("inf")
    each = [largest_difference(a, b) if isinstance(a, list) else abs(a - b) for a, b in zip(one, other, strict=True)]
    return max(each, default=0.0)


def main(revision: str) -> None:
    from common import table  # noqa: PLC0415

    before, now = Tree(checked_out(revision)), Tree(TOP)
    rows = []
    for name in WORK:
        rows.append(compare(name, before, now))
        print(" | ".join(rows[-1]), flush=True)
    slow = [row[0] for row in rows if float(row[3]) > LIMIT]
    lines = [
        f"# Before and now (`python benchmarks/before.py {revision}`)",
        "",
        f"Commit {revision} against this tree: processor time of two processes that take turns, the shortest of",
        f"{ROUNDS} rounds, nothing compiled in them. Plans have the size of the paper's public code, at three states",
        "of an episode. Runs are whole, from the first episode to the final policy; rewards, costs and feasibility are",
        "compared bit for bit.",
        "",
        *table(["what", "before", "now", "ratio", "outcome"], rows),
        "",
        f"Slower than {LIMIT} of before: {', '.join(slow) or 'nothing'}.",
    ]
    (HERE / "before.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else REVISION)
