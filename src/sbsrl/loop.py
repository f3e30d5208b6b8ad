"""Algorithm 1 of the paper, the same for every belief, every solver and every method."""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import jax

from .belief.protocol import Belief, Calibrated, Comparing, Prepared, Tested
from .choice import Chosen, Shortfall, choose, solve
from .errors import UserError
from .learner import (
    OFFLINE,
    STARTS,
    Experiment,
    Learner,
    Turn,
    calibration_warning,
    changed,
    context_of,
    keys_of,
    offline_key,
    turn_of,
)
from .leaves import check_form
from .ledger import Judgement, make_record
from .methods import DEFAULT, Context
from .policy import Metrics, Policy
from .record import Record
from .solve.protocol import Attentive, Preparing, Solver
from .starts import draw_starts
from .systems.episode import Played
from .transitions import Episode
from .types import PRNGKey

__all__ = ["Outcome", "Play", "algorithm_1", "concluded", "final_episode", "greedy_policy", "prepared"]


Play = Callable[[Policy, Turn], Played]
"""Plays one episode: on the true system, or from a record of it."""


class Outcome(NamedTuple):
    """An episode, its line in the log, and the learner after it."""

    record: Record
    episode: Episode
    learner: Learner
    policy: Policy
    """pi_n, the policy that was run."""
    shortfall: Shortfall | None
    """If exploration was found to be infeasible before this episode: by how much."""


def algorithm_1(experiment: Experiment, learner: Learner, play: Play) -> Iterator[Outcome]:
    """Learns safely from `learner` on and ends with the greedy policy. Numbers are lines of the paper's Algorithm 1.

    Stops without the final policy if an episode was cut short by a fault, or if the confidence sets have no common
    point and no prior policy is to be played then.
    """
    shortfall = None
    learner, _ = prepared(experiment, learner)
    while _goes_on(experiment, learner):
        started, keys = perf_counter(), keys_of(learner)
        chosen = choose(experiment, learner, context_of(experiment, learner))  # 6, 7
        if learner.exploring and not chosen.explores(experiment.settings.method.exploration_tolerance):
            shortfall = chosen.shortfall()
            learner = changed(learner, exploring=False, solver=chosen.memory)  # 5: no longer feasible
            continue
        played = play(chosen.policy, turn_of(learner))  # 8
        tested, tests = _tested(learner.belief, chosen, played, keys.test)
        belief = _updated(tested, played.episode, keys.update)  # 9
        warning = calibration_warning(belief)
        tests = {**tests, **_compared(belief)}
        judgement = Judgement(chosen.phase, chosen.problem, chosen.solution, warning, perf_counter() - started, tests)
        record = make_record(experiment.task, int(learner.episode), played, judgement)
        learner = changed(
            learner,
            belief=belief,
            solver=_observed(experiment.solver, chosen, played),
            episode=learner.episode + 1,
            contradicted=warning is not None,
        )  # 10
        yield Outcome(record, played.episode, learner, chosen.policy, shortfall)
        shortfall = None
        if record.ended == "fault":
            return

    if not (learner.finished or learner.contradicted):
        yield final_episode(experiment, learner, play)  # 12


def final_episode(experiment: Experiment, learner: Learner, play: Play) -> Outcome:
    """One episode of the greedy policy, from which nothing is learned."""
    started = perf_counter()
    chosen = solve(experiment, learner, context_of(experiment, learner, final=True))
    played = play(chosen.policy, turn_of(learner))
    judgement = Judgement("final", chosen.problem, chosen.solution, None, perf_counter() - started)
    record = make_record(experiment.task, int(learner.episode), played, judgement)
    finished = changed(learner, finished=record.ended != "fault")
    return Outcome(record, played.episode, finished, chosen.policy, None)


def greedy_policy(experiment: Experiment, learner: Learner) -> Policy:
    """Problem (1) without the exploration constraint: the policy that is returned in the end."""
    return concluded(experiment, learner).policy


def concluded(experiment: Experiment, learner: Learner) -> Chosen:
    """The greedy policy, and why.

    Where the data contradict the belief this is the prior's policy; without one there is none to return.
    """
    if learner.contradicted and experiment.task.prior.policy is None:
        raise UserError(
            f"there is no policy to return: {calibration_warning(learner.belief)}. Start anew with a prior that claims "
            "less."
        )
    return choose(experiment, learner, context_of(experiment, learner, final=True))


def _goes_on(experiment: Experiment, learner: Learner) -> bool:
    run = experiment.settings.run
    learned = experiment.explores and not learner.exploring
    unfinished = not learner.finished and int(learner.episode) < run.episodes
    stopped = run.inconsistent == "stop" and bool(learner.contradicted)
    return unfinished and not stopped and not (learned and run.stop_when_learned)


def prepared(experiment: Experiment, learner: Learner) -> tuple[Learner, Metrics]:
    """The learner after the offline phase, and numbers about it; the learner itself if it has none, or had it.

    The belief learns from the offline data; then the solver from the belief, with the problem of the default method and
    nothing to explore: whatever is done with it later, what is learned offline is the same.
    """
    if learner.prepared:
        return learner, {}
    keys = jax.random.split(jax.random.fold_in(offline_key(experiment.settings, learner.key), OFFLINE), 5)
    belief, solver = learner.belief, learner.solver
    metrics: dict[str, Any] = {}
    if isinstance(belief, Prepared):
        belief, learned = belief.prepared(keys[0])
        metrics |= {f"belief/{name}": value for name, value in learned.items()}
        check_form("the belief", learner.belief, belief)
    if isinstance(experiment.solver, Preparing):
        context = Context(
            task=experiment.task,
            belief=belief,
            settings=experiment.settings,
            episode=0,
            exploring=False,
            final=False,
            key=keys[1],
            noise=keys[2],
            starts=draw_starts(experiment.task.start, STARTS, keys[3]),
        )
        solver, learned = experiment.solver.prepare(DEFAULT.problem(context), solver, keys[4])
        metrics |= {f"solver/{name}": value for name, value in learned.items()}
        check_form("the solver's state", learner.solver, solver)
    return changed(learner, belief=belief, solver=solver, prepared=True), metrics


def _tested(belief: Belief, chosen: Chosen, played: Played, key: PRNGKey) -> tuple[Belief, Metrics]:
    """The belief after a comparison of what it predicted for the policy with what happened, if it makes one.

    A policy under watch is compared for as long as it acted itself.
    """
    if not isinstance(belief, Tested):
        return belief, {}
    after, metrics = belief.tested(chosen.unwatched, chosen.own(played), key)
    check_form("the belief", belief, after)
    return after, metrics


def _compared(belief: Belief) -> Metrics:
    """How all data so far compare with what the confidence sets of a belief that has any let them be."""
    found = belief.misfit() if isinstance(belief, Calibrated) else None
    apart = belief.disagreement() if isinstance(belief, Comparing) else None
    misfit = {} if found is None else {f"misfit/{name}": value for name, value in found._asdict().items()}
    return misfit if apart is None else {**misfit, "disagreement": apart}


def _observed(solver: Solver, chosen: Chosen, played: Played) -> Any:
    """What the solver remembers, after it was told of the episode of its policy, if it wants to know."""
    if chosen.solution is None or not isinstance(solver, Attentive):
        return chosen.memory
    after = solver.observed(chosen.memory, chosen.own(played))
    check_form("the solver's state", chosen.memory, after)
    return after


def _updated(belief: Belief, episode: Episode, key: PRNGKey) -> Belief:
    """What is believed after an episode."""
    after = belief.update(episode.transitions, key)
    check_form("the belief", belief, after)
    return after
