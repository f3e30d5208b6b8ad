"""What gradient steps add to iCEM, side by side: `python benchmarks/refinement.py [task]` writes `refinement.md`.

Plans: Problem (1) of episodes 0, 2 and 5 of `sbsrl`, from states along them, with the memory of the step before.
Returns: episodes on the true system, of the `oracle` and of the greedy policy after five episodes.
All variants take turns at every state, so that noise of the machine hits all alike.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from common import table
from jaxtyping import Float

from sbsrl.learner import Experiment, Learner, Turn
from sbsrl.loop import Play, algorithm_1, final_episode
from sbsrl.policy import Policy
from sbsrl.problem import Problem, feasible
from sbsrl.report.statistics import summarise
from sbsrl.solve.icem import ICEM, Memory
from sbsrl.solve.receding import RecedingHorizon, ReplanningSolver
from sbsrl.specification import Specification
from sbsrl.systems.episode import Guard, Played, run_episode
from sbsrl.task import Task
from sbsrl.types import State

EPISODES = (0, 2, 5)
STEPS_PER_EPISODE = 10
RUNS = (0, 1)
"""Seeds of the learning runs whose problems are solved."""
KEYS = (0, 1)
"""Seeds of the plans from each state."""
RETURN_SEEDS = range(20)
GRADIENT_ELITES = 4

VARIANTS: dict[str, dict[str, Any]] = {
    f"{candidates} candidates{', gradients' * (elites > 0)}": {"candidates": candidates, "gradient_elites": elites}
    for candidates in (504, 252, 126)
    for elites in (0, GRADIENT_ELITES)
}
BASE = next(iter(VARIANTS))


class Case(NamedTuple):
    """A problem, where it is solved from, and what the planner remembers."""

    episode: int
    problem: Problem
    x: State
    memory: Memory


class Solved(NamedTuple):
    """Of one plan."""

    value: float
    violation: float
    seconds: float


def start(task: str, method: str, seed: int, changes: dict[str, Any]) -> tuple[Experiment, Learner]:
    return Specification.make(task, method, seed, "cpu", changes).start()


def planner_of(experiment: Experiment) -> ICEM:
    assert isinstance(experiment.solver, ReplanningSolver)
    return experiment.solver.planner


def player(task: Task) -> Play:
    """Plays on the true system."""
    env, guard = task.open(), Guard.of(task)

    def play(policy: Policy, turn: Turn) -> Played:
        return run_episode(env, policy, turn.seed, turn.key, task.horizon, guard=guard)

    return play


def learn(task: str, seed: int) -> tuple[list[Case], Learner]:
    """The problems of a run, and the learner after its last episode here."""
    experiment, learner = start(task, "sbsrl", seed, {"episodes": max(EPISODES) + 2})
    planner, cases, before = planner_of(experiment), [], learner
    outcomes = algorithm_1(experiment, learner, player(experiment.task))
    for n in range(max(EPISODES) + 1):
        outcome = next(outcomes)
        if n in EPISODES:
            assert isinstance(outcome.policy, RecedingHorizon)
            cases += list(along(n, planner, outcome.policy.problem, outcome.episode.states))
        if n == max(EPISODES) - 1:
            before = outcome.learner
    return cases, before


def along(episode: int, planner: ICEM, problem: Problem, states: Float[np.ndarray, "T1 dx"]) -> Iterator[Case]:
    """Problems from states of an episode; what is demanded is a plan's share of the episode's information."""
    length = len(states) - 1
    nothing = planner.init(problem.constraint_count)
    for t in np.linspace(1, length - 1, STEPS_PER_EPISODE).astype(int):
        share = problem.threshold * min(1.0, planner.horizon / length)
        here = problem.demanding(share, length - int(t))
        _, memory = planner.plan(here, jnp.asarray(states[t - 1]), nothing, jax.random.key(t))
        yield Case(episode, here, jnp.asarray(states[t]), memory)


def solve(planner: ICEM, case: Case, seed: int) -> Solved:
    began = time.process_time()
    plan, _ = planner.plan(case.problem, case.x, case.memory, jax.random.key(1000 + seed))
    evaluation = jax.block_until_ready(plan.evaluation)
    spent = time.process_time() - began
    assert bool(feasible(evaluation)) == (float(evaluation.violation) <= 0)
    return Solved(float(evaluation.value), float(evaluation.violation), spent)


def better(new: Solved, old: Solved) -> bool:
    """By the planner's rule: feasible first, then value; among infeasible plans the least violation."""
    if new.violation > 0 or old.violation > 0:
        return new.violation < old.violation
    return new.value > old.value


def mean_interval(values: Float[np.ndarray, " n"]) -> str:
    """The mean with its 95 % bootstrap interval."""
    found = summarise(list(values))
    return f"{found.mean:+.2f} [{found.mean_low:+.2f}, {found.mean_high:+.2f}]"


def plan_rows(found: dict[str, list[Solved]], against: dict[str, str]) -> list[list[str]]:
    """Each variant against another; values are compared where both plans are feasible, per state."""
    rows = []
    for name, other in against.items():
        pairs = list(zip(found[name], found[other], strict=True))
        gained = np.array([a.value - b.value if max(a.violation, b.violation) <= 0 else np.nan for a, b in pairs])
        each = np.nanmean(gained.reshape(-1, len(KEYS))[~np.isnan(gained).reshape(-1, len(KEYS)).any(axis=1)], axis=1)
        rows.append(
            [
                name,
                other,
                mean_interval(each),
                f"{np.median(each):+.2f}",
                f"{np.mean([better(a, b) for a, b in pairs]):.0%}",
                f"{np.mean([better(b, a) for a, b in pairs]):.0%}",
                f"{np.median([a.seconds / b.seconds for a, b in pairs]):.2f}",
                f"{sum(a.violation > 0 for a, _ in pairs)} of {len(pairs)}",
            ]
        )
    return rows


PLAN_HEAD = ["variant", "against", "gain in value", "median", "better", "worse", "time ratio", "infeasible"]


def comparisons() -> dict[str, str]:
    return {name: BASE for name in VARIANTS if name != BASE}


def plans(task: str, cases: list[Case]) -> list[str]:
    planners = {name: planner_of(start(task, "sbsrl", 0, changes)[0]) for name, changes in VARIANTS.items()}
    found: dict[str, list[Solved]] = {name: [] for name in planners}
    for planner in planners.values():
        solve(planner, cases[0], 0)  # compiles
    for case in cases:
        for seed in KEYS:
            for name, planner in planners.items():
                found[name].append(solve(planner, case, seed))
    lines: list[str] = []
    numbers = np.repeat([case.episode for case in cases], len(KEYS))
    for n in (*EPISODES, None):
        chosen = np.flatnonzero((numbers == n) | (n is None))
        part = {name: [results[i] for i in chosen] for name, results in found.items()}
        title = "All" if n is None else f"After {n} episodes"
        states = len(chosen) // len(KEYS)
        text = [f"{title}, {states} states x {len(KEYS)} seeds:", "", *table(PLAN_HEAD, plan_rows(part, comparisons()))]
        lines += [*text, ""]
    return lines


def returns(task: str, method: str, seeds: list[int], learners: dict[int, Learner]) -> list[str]:
    """Episodes on the true system; without a learner, of a run that has seen nothing."""
    rewards: dict[str, list[float]] = {name: [] for name in VARIANTS}
    spent: dict[str, list[float]] = {name: [] for name in VARIANTS}
    unsafe: dict[str, int] = dict.fromkeys(VARIANTS, 0)
    for i, seed in enumerate([seeds[0], *seeds]):
        for name, changes in VARIANTS.items():
            experiment, fresh = start(task, method, seed, {**changes, "episodes": max(EPISODES) + 2})
            play = player(experiment.task)
            began = time.process_time()
            run = final_episode(experiment, learners.get(seed, fresh), play)
            if i == 0:
                continue  # compiles
            spent[name].append(time.process_time() - began)
            rewards[name].append(float(run.episode.rewards.sum()))
            unsafe[name] += not run.record.safe
    rows = []
    for name in VARIANTS:
        reward, difference = np.array(rewards[name]), np.array(rewards[name]) - np.array(rewards[BASE])
        ratio = np.median(np.array(spent[name]) / np.array(spent[BASE]))
        gain = "" if name == BASE else mean_interval(difference)
        rows.append([name, f"{reward.mean():.2f} ± {reward.std():.2f}", gain, f"{ratio:.2f}", str(unsafe[name])])
    return table(["variant", "return", f"gain over {BASE}", "time ratio", "unsafe episodes"], rows)


def section(name: str, lines: list[str]) -> list[str]:
    text = [f"## {name}", "", *lines, ""]
    print("\n".join(text), flush=True)
    return text


def main(task: str) -> None:
    page = [
        f"# Gradient steps in iCEM: {task} (`python benchmarks/refinement.py {task}`)",
        "",
        f"24 elites, 4 iterations; with gradients, the best {GRADIENT_ELITES} kept elites are improved in each. Gains",
        "are means with 95 % bootstrap intervals, over states or, of returns, over seeds. Times are processor times.",
        "",
    ]
    oracle = returns(task, "oracle", list(RETURN_SEEDS), {})
    page += section(f"Return of the oracle, {len(RETURN_SEEDS)} seeds", oracle)
    learned = {seed: learn(task, seed) for seed in RUNS}
    cases = [case for each, _ in learned.values() for case in each]
    page += section("Plans", plans(task, cases))
    policies = returns(task, "sbsrl", list(RUNS), {seed: learner for seed, (_, learner) in learned.items()})
    page += section(f"Return of the greedy policy after {max(EPISODES)} episodes, {len(RUNS)} seeds", policies)
    name = "refinement.md" if task == "pendulum" else f"refinement-{task}.md"
    (Path(__file__).parent / name).write_text("\n".join(page))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "pendulum")
