"""Every promise of the theory, put to the test: what it says, what happened, whether it held."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from ..tasks.ledge import Sled
from .closeness import Closeness, closeness
from .intervals import Frequency
from .trial import Trial, run_trial
from .world import World

__all__ = ["Claim", "JudgedRun", "WorldReport", "claims", "judge_run", "run_world", "try_world"]


@dataclass(frozen=True)
class JudgedRun:
    """One run, judged by the truth."""

    ground: str
    bound: float
    seed: int
    weights: list[float]
    """w* of the true system."""
    episodes: int
    """n*."""
    terminated: bool
    feasible: bool
    calibrated: bool
    violating_episodes: int
    """Episodes whose policy has J_c(pi_n, f*) > d; the returned policy counts as one."""
    largest_cost: float
    """The largest J_c(pi, f*) among the policies that were played or returned."""
    unsafe_members: int
    """Policies in Pi_safe^0 or Pi_safe^n* with J_c(pi, f*) > d: the theorem says there are none."""
    safe_at_first: int
    safe_in_the_end: int
    truly_safe: int
    reachable: int
    """Size of Pi_xi^{*,c}."""
    to_be_learned: int
    """Policies of Pi_xi^{*,c} that are not in Pi_safe^0."""
    missed: int
    """Policies of Pi_xi^{*,c} that are not in Pi_safe^n*: the theorem says there are none."""
    gap: float
    """max over Pi_xi^{*,c} of J_r(pi, f*) - J_r(pi_hat, f*), promised to be at most epsilon."""
    gap_at_first: float
    """The same for the greedy policy before any episode, of which nothing is promised."""
    regret: float
    """The same over all truly safe policies, of which nothing is promised."""
    reward_error: float
    """max over Pi_safe^n* of |J_r(pi, f*) - J_r(pi, mu_n*)|, promised to be at most epsilon / 2."""
    error_at_first: float
    """The same over Pi_safe^0 with the prior mean, of which nothing is promised."""
    control_violates: bool
    """Whether the same algorithm with the constraint on the mean dynamics only plays a violating policy."""


def try_world(world: World, seed: int) -> JudgedRun:
    """One truth, one run, and the control."""
    world = _kept(world)
    return judge_run(world, world.draw_sled(np.random.default_rng(seed)), seed)


@cache
def _kept(world: World) -> World:
    """The first of all worlds that are equal to this one: what a process has compiled for it serves all its runs."""
    return world


def judge_run(world: World, sled: Sled, seed: int) -> JudgedRun:
    """Algorithm 1 on this truth, which it does not know and by which it is judged."""
    costs, rewards = world.true_returns(sled)
    start, trial = (_run(world, sled, seed, most) for most in (0, world.episodes))
    control = run_trial(world.trusting, world.belief(), sled, jax.random.key(seed))
    at_first, in_the_end = (np.asarray(t.final_violations) <= 0 for t in (start, trial))
    errors = [np.abs(rewards - np.asarray(t.final_rewards)) for t in (start, trial)]
    earned = [rewards[int(t.final)] for t in (start, trial)]
    reachable = world.reachable(costs)
    best = np.max(rewards[reachable], initial=-np.inf)  # nothing is promised of nothing
    unsafe = costs > world.budget
    return JudgedRun(
        ground=world.ground,
        bound=world.bound,
        seed=seed,
        weights=np.asarray(sled.weights).tolist(),
        episodes=int(trial.episodes),
        terminated=bool(trial.terminated),
        feasible=bool(trial.feasible),
        calibrated=bool(trial.calibrated),
        violating_episodes=int(np.asarray(trial.played)[unsafe].sum()) + int(unsafe[int(trial.final)]),
        largest_cost=float(costs[_used(trial)].max()),
        unsafe_members=int(np.sum((at_first | in_the_end) & unsafe)),
        safe_at_first=int(at_first.sum()),
        safe_in_the_end=int(in_the_end.sum()),
        truly_safe=int(np.sum(~unsafe)),
        reachable=int(reachable.sum()),
        to_be_learned=int(np.sum(reachable & ~at_first)),
        missed=int(np.sum(reachable & ~in_the_end)),
        gap=float(best - earned[1]),
        gap_at_first=float(best - earned[0]),
        regret=float(np.max(rewards[~unsafe], initial=-np.inf) - earned[1]),
        reward_error=float(np.max(errors[1][in_the_end], initial=0)),
        error_at_first=float(np.max(errors[0][at_first], initial=0)),
        control_violates=bool(np.any(unsafe[_used(control)])),
    )


def _run(world: World, sled: Sled, seed: int, most: int) -> Trial:
    """Up to so many episodes; 0 tells what is known without any."""
    return run_trial(world.experiment, world.belief(), sled, jax.random.key(seed), jnp.asarray(most, jnp.int32))


def _used(trial: Trial) -> Bool[np.ndarray, " P"]:
    """The policies that were played or returned."""
    used = np.asarray(trial.played) > 0
    used[int(trial.final)] = True
    return used


@dataclass(frozen=True)
class WorldReport:
    """All runs of a world."""

    world: World
    outcomes: list[JudgedRun]
    closeness: Closeness

    def count(self, what: Callable[[JudgedRun], bool]) -> Frequency:
        return Frequency(sum(map(what, self.outcomes)), len(self.outcomes))

    @property
    def violations(self) -> Frequency:
        """Runs in which some policy that was played or returned violates."""
        return self.count(lambda o: o.violating_episodes > 0)

    @property
    def control(self) -> Frequency:
        return self.count(lambda o: o.control_violates)

    def constants(self) -> dict[str, Any]:
        """All that was derived."""
        world = self.world
        return {
            **asdict(world),
            "M": world.samples,
            "exponent": world.exponent,
            "Delta_zeta": world.closeness_tightening,
            "tightening": world.tightening,
            "xi": world.xi,
            "n_bar": world.episode_bound,
            "Delta": world.budget - float(world.worst_costs.min()),
            "policies": len(world.worst_costs),
        }


def run_world(
    world: World, seeds: Sequence[int], sets: int, pool: Executor, done: Callable[[], None] = lambda: None
) -> WorldReport:
    """Independent runs, in parallel; `done` hears of each."""
    outcomes = []
    for outcome in pool.map(try_world, [world] * len(seeds), seeds):
        outcomes.append(outcome)
        done()
    return WorldReport(world, outcomes, closeness(world, sets, np.random.default_rng(seeds[0])))


@dataclass(frozen=True)
class Claim:
    """A promise and its fate."""

    theorem: str
    promised: str
    measured: str
    holds: bool
    """Whether the measurement shows it."""
    contradicted: bool
    """Whether it shows the opposite; a frequency may do neither."""

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "FAILS" if self.contradicted else "consistent"


def _at_most(theorem: str, promised: str, share: float, seen: Frequency, more: str = "") -> Claim:
    """A failure that is promised to have at most this probability."""
    low, high = seen.interval()
    return Claim(theorem, f"{promised} in at most {share:.0%} of runs", str(seen) + more, high <= share, low > share)


def _at_least(theorem: str, promised: str, share: float, seen: Frequency) -> Claim:
    """A success that is promised to have at least this probability."""
    low, high = seen.interval()
    return Claim(theorem, promised, str(seen), low >= share, high < share)


def claims(report: WorldReport) -> list[Claim]:
    """Theorem by theorem."""
    return [*_safety(report), *_samples(report), _termination(report), *_optimality(report)]


def _safety(report: WorldReport) -> Iterator[Claim]:
    delta = report.world.delta
    yield _at_most(
        "Safety: J_c(pi_n, f*) <= d in every episode and in the end", "violated", 2 * delta, report.violations
    )
    yield _at_most(
        "Safety: every policy of Pi_safe, at first and in the end, is safe",
        "violated",
        2 * delta,
        report.count(lambda o: o.unsafe_members > 0),
    )
    yield _at_most(
        "Confidence sets contain f* after every episode (lemma confidence_gp)",
        "missed",
        delta,
        report.count(lambda o: not o.calibrated),
    )
    yield _at_most(
        "The safe set is never empty where they do (appendix A)", "empty", delta, report.count(lambda o: not o.feasible)
    )


def _samples(report: WorldReport) -> Iterator[Claim]:
    world, single = report.world, math.exp(-report.world.exponent)
    yield _at_least(
        f"One of M = {world.samples} samples is zeta-close (lemma sampling)",
        f"in at least {1 - world.delta:.0%} of sets",
        1 - world.delta,
        report.closeness.some,
    )
    yield _at_least(
        "A single sample is zeta-close",
        f"with probability {single:.2%} or more",
        single,
        report.closeness.single,
    )


def _termination(report: WorldReport) -> Claim:
    """A run that was cut short while n_bar was far is no success, but does not contradict the theorem either."""
    bound, failure = report.world.episode_bound, 2 * report.world.delta
    stopped = report.count(lambda o: o.terminated and o.episodes <= bound)
    beyond = report.count(lambda o: o.episodes > bound)
    latest = max(o.episodes for o in report.outcomes)
    return Claim(
        "Termination before n_bar (theorem complexity)",
        f"within {bound:.3g} episodes in {1 - failure:.0%} of runs",
        f"{stopped}, the last after {latest} episodes",
        stopped.interval()[0] >= 1 - failure,
        beyond.interval()[0] > failure,
    )


def _optimality(report: WorldReport) -> Iterator[Claim]:
    """Of the runs that terminated; what the numbers were before any episode tells how much had to be learned."""
    epsilon, delta = report.world.epsilon, report.world.delta
    ended = [o for o in report.outcomes if o.terminated]

    def share(wrong: Callable[[JudgedRun], bool]) -> Frequency:
        return Frequency(sum(map(wrong, ended)), len(ended))

    def most(name: str) -> float:
        return max((getattr(o, name) for o in ended), default=math.nan)

    yield _at_most(
        "Optimality: reward lost to the best of Pi_xi^{*,c}",
        f"more than epsilon = {epsilon:g}",
        2 * delta,
        share(lambda o: o.gap > epsilon),
        f", at most {most('gap'):.3f}; before any episode {most('gap_at_first'):.3f}",
    )
    yield _at_most(
        "Rewards of safe policies are known in the end",
        f"not to epsilon / 2 = {epsilon / 2:g}",
        delta,
        share(lambda o: o.reward_error > epsilon / 2),
        f", to {most('reward_error'):.3f}; before any episode {most('error_at_first'):.3f}",
    )
    missed, new, all_of_it = (sum(getattr(o, n) for o in ended) for n in ("missed", "to_be_learned", "reachable"))
    yield _at_most(
        "Pi_xi^{*,c} lies in Pi_safe in the end (lemma pi_eps_subset_pi_safe)",
        "some policy is missed",
        2 * delta,
        share(lambda o: o.missed > 0),
        f", {missed} of {all_of_it} policies; before any episode {new}",
    )
