"""Every promise of the theory, put to the test: what it says, what happened, whether it held."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from .closeness import Closeness, closeness
from .intervals import Frequency
from .trial import run_trial
from .world import World

__all__ = ["Claim", "Outcome", "WorldReport", "claims", "run_world", "try_world"]


@dataclass(frozen=True)
class Outcome:
    """One run, judged by the truth."""

    ground: str
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
    missed: int
    """Policies of Pi_xi^{*,c} that are not in Pi_safe^n*: the theorem says there are none."""
    gap: float
    """max over Pi_xi^{*,c} of J_r(pi, f*) - J_r(pi_hat, f*), promised to be at most epsilon."""
    regret: float
    """The same over all truly safe policies, of which nothing is promised."""
    reward_error: float
    """max over Pi_safe^n* of |J_r(pi, f*) - J_r(pi, mu_n*)|, promised to be at most epsilon / 2."""
    control_violates: bool
    """Whether the same algorithm with the constraint on the mean dynamics only plays a violating policy."""


def try_world(world: World, seed: int) -> Outcome:
    """One truth, one run, and the control."""
    sled = world.draw_sled(np.random.default_rng(seed))
    costs, rewards = world.true_returns(sled)
    key = jax.random.key(seed)
    trial = run_trial(world.experiment, world.belief(), sled, key)
    control = run_trial(world.trusting, world.belief(), sled, key)
    played, final = np.asarray(trial.played), int(trial.final)
    used = played > 0
    used[final] = True
    at_first, in_the_end = (np.asarray(v) <= 0 for v in (trial.first_violations, trial.final_violations))
    reachable = world.reachable(costs)
    unsafe = costs > world.budget
    controlled = np.asarray(control.played) > 0
    controlled[int(control.final)] = True
    return Outcome(
        ground=world.ground,
        seed=seed,
        weights=np.asarray(sled.weights).tolist(),
        episodes=int(trial.episodes),
        terminated=bool(trial.terminated),
        feasible=bool(trial.feasible),
        calibrated=bool(trial.calibrated),
        violating_episodes=int(played[unsafe].sum()) + int(unsafe[final]),
        largest_cost=float(costs[used].max()),
        unsafe_members=int(np.sum((at_first | in_the_end) & unsafe)),
        safe_at_first=int(at_first.sum()),
        safe_in_the_end=int(in_the_end.sum()),
        truly_safe=int(np.sum(~unsafe)),
        reachable=int(reachable.sum()),
        missed=int(np.sum(reachable & ~in_the_end)),
        gap=float(rewards[reachable].max() - rewards[final]),
        regret=float(rewards[~unsafe].max() - rewards[final]),
        reward_error=float(np.abs(rewards - np.asarray(trial.final_rewards))[in_the_end].max()),
        control_violates=bool(np.any(controlled & unsafe)),
    )


@dataclass(frozen=True)
class WorldReport:
    """All runs of a world."""

    world: World
    outcomes: list[Outcome]
    closeness: Closeness

    def count(self, what: Callable[[Outcome], bool]) -> Frequency:
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
            "Delta_zeta": world.tightening,
            "xi": world.xi,
            "n_bar": world.episode_bound,
            "Delta": world.budget - float(world.worst_costs.min()),
            "policies": len(world.worst_costs),
        }


def run_world(world: World, seeds: Sequence[int], sets: int, pool: Executor) -> WorldReport:
    """Independent runs, in parallel."""
    outcomes = list(pool.map(try_world, [world] * len(seeds), seeds))
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


def _at_most(theorem: str, share: float, seen: Frequency, what: str = "violated") -> Claim:
    low, high = seen.interval()
    return Claim(theorem, f"{what} in at most {share:.0%} of runs", str(seen), high <= share, low > share)


def _at_least(theorem: str, promised: str, share: float, seen: Frequency, more: str = "") -> Claim:
    low, high = seen.interval()
    return Claim(theorem, promised, str(seen) + more, low >= share, high < share)


def _bounded(theorem: str, promised: str, most: float, seen: float) -> Claim:
    return Claim(theorem, f"{promised} = {most:g}", f"{seen:.3f}", seen <= most, seen > most)


def claims(report: WorldReport) -> list[Claim]:
    """Theorem by theorem."""
    world, outcomes, close = report.world, report.outcomes, report.closeness
    delta, single = world.delta, math.exp(-world.exponent)
    stopped = report.count(lambda o: o.terminated and o.episodes < world.episode_bound)
    latest = max(o.episodes for o in outcomes)
    missed, reachable = sum(o.missed for o in outcomes), sum(o.reachable for o in outcomes)
    empty = sum(not o.feasible for o in outcomes)
    return [
        _at_most("Safety: J_c(pi_n, f*) <= d in every episode and in the end", 2 * delta, report.violations),
        _at_most("Safety: every policy of Pi_safe is safe", 2 * delta, report.count(lambda o: o.unsafe_members > 0)),
        _at_most(
            "Confidence sets contain f* after every episode (lemma confidence_gp)",
            delta,
            report.count(lambda o: not o.calibrated),
            "missed",
        ),
        _at_least(
            f"One of M = {world.samples} samples is zeta-close (lemma sampling)",
            f"in at least {1 - delta:.0%} of sets",
            1 - delta,
            close.some,
        ),
        _at_least("A single sample is zeta-close", f"with probability {single:.2%} or more", single, close.single),
        Claim("The safe set is never empty (appendix A)", "never", f"{empty} times", empty == 0, empty > 0),
        _at_least(
            "Termination before n_bar (theorem complexity)",
            f"within {world.episode_bound:.3g} episodes in {1 - 2 * delta:.0%} of runs",
            1 - 2 * delta,
            stopped,
            f", the last after {latest} episodes",
        ),
        _bounded(
            "Optimality: reward lost to the best of Pi_xi^{*,c}",
            "at most epsilon",
            world.epsilon,
            max(o.gap for o in outcomes),
        ),
        _bounded(
            "Rewards of safe policies are known in the end",
            "to epsilon / 2",
            world.epsilon / 2,
            max(o.reward_error for o in outcomes),
        ),
        Claim(
            "Pi_xi^{*,c} lies in Pi_safe in the end (lemma pi_eps_subset_pi_safe)",
            "no policy is missed",
            f"{missed} of {reachable} missed",
            missed == 0,
            missed > 0,
        ),
    ]
