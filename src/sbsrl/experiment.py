"""From names and settings to an experiment that can run."""

from collections.abc import Callable

from .belief import Belief, GPBelief, GPOptions, WeightBelief
from .belief.uncertainty import UNCERTAINTIES, largest_uncertainty
from .errors import UserError, unknown
from .loop import Experiment, Learner
from .methods import Method, make_method, threshold_at_width_one
from .offline import MOST_TRANSITIONS
from .policies import PolicyClass
from .settings import Settings
from .solve import ICEM, EvolutionSearch, ExactSearch, GradientSearch, ReplanningSolver, Solver, expectation
from .solve.refine import Refinement
from .task import Task
from .tasks import make_task

__all__ = ["MOST_POINTS", "make_experiment", "make_learner"]

MOST_POINTS = 10_000
"""An exact posterior of so many points takes about 4 GB."""


def make_experiment(task: str | Task, method: str, settings: Settings) -> Experiment:
    """Puts the parts together; refuses what cannot work."""
    chosen: Method = make_method(method)
    if isinstance(task, str):
        task = make_task(task, settings.prior, settings.budget, settings.data)
    if task.budget - settings.tightening < task.least_cost:
        raise UserError(
            f"no policy can meet the tightened budget {task.budget:g} - {settings.tightening:g}: the cost of "
            f"{task.name} is never below {task.least_cost:g}; raise budget or lower tightening."
        )
    if settings.solver not in SOLVERS:
        raise unknown("solver", settings.solver, SOLVERS)
    _check_exploration(task, chosen, settings)
    return Experiment(task, chosen, SOLVERS[settings.solver](task, settings), settings)


def _check_exploration(task: Task, method: Method, settings: Settings) -> None:
    """Refuses exploration that never ends, and a threshold that no policy could ever meet."""
    if method.name == "actsafe" and settings.episodes < settings.actsafe_episodes:
        raise UserError(
            f"actsafe would explore for {settings.actsafe_episodes} episodes and the run has {settings.episodes}; use "
            f"at least {settings.actsafe_episodes} episodes, or set actsafe_episodes to {settings.episodes} or less."
        )
    if not method.explores:
        return
    threshold_at_width_one(task, settings)  # refuses what means nothing
    if settings.accuracy or settings.uncertainty not in UNCERTAINTIES:
        return
    most = task.horizon * largest_uncertainty(task.prior, task.input_limits, settings.uncertainty)
    if settings.exploration_threshold > most:
        raise UserError(
            f"no episode can meet exploration_threshold={settings.exploration_threshold:g}: {task.horizon} steps give "
            f"at most {most:.4g}, even where nothing is known; use less."
        )


def _replanning(task: Task, settings: Settings) -> Solver:
    if task.aggregation != "statewise":
        raise UserError(
            f"{task.name} sums its cost over the episode, which a planner that looks {settings.horizon} steps ahead "
            "cannot keep within a budget; search its policies instead, with solver=exact."
        )
    return ReplanningSolver(_planner(task, settings), task.horizon)


def _exact(task: Task, settings: Settings) -> Solver:
    return ExactSearch(_policies(task), expectation(task))


def _evolution(task: Task, settings: Settings) -> Solver:
    return EvolutionSearch.create(
        _policies(task), expectation(task), settings.candidates, settings.elites, settings.iterations
    )


def _gradient(task: Task, settings: Settings) -> Solver:
    return GradientSearch(_policies(task), expectation(task))


def _policies(task: Task) -> PolicyClass:
    if task.policies is None:
        raise UserError(f"{task.name} has no class of policies to search; use solver=icem, which plans actions.")
    return task.policies


SOLVERS: dict[str, Callable[[Task, Settings], Solver]] = {
    "icem": _replanning,
    "exact": _exact,
    "evolution": _evolution,
    "gradient": _gradient,
}


def _planner(task: Task, settings: Settings) -> ICEM:
    planner = ICEM(
        low=task.action_low,
        high=task.action_high,
        horizon=settings.horizon,
        candidates=settings.candidates,
        elites=settings.elites,
        iterations=settings.iterations,
        patience=settings.patience,
        decay=settings.decay,
        colour=settings.colour,
        momentum=settings.momentum,
        spread=settings.spread,
        keep=settings.keep,
        refinement=Refinement(settings.gradient_elites) if settings.gradient_elites else None,
    )
    if settings.gradient_elites > planner.kept_elites:
        raise UserError(
            f"gradient_elites={settings.gradient_elites} are more than the {planner.kept_elites} elites that are kept; "
            "use fewer, or raise elites or keep."
        )
    return planner


def make_learner(experiment: Experiment, seed: int) -> Learner:
    """The learner before the first episode."""
    task, settings = experiment.task, experiment.settings
    options = GPOptions(
        sampler=settings.sampler,
        features=settings.features,
        estimator=settings.estimator,
        uncertainty=settings.uncertainty,
        delta=settings.delta,
        convention=settings.convention,
        fitted=settings.fitted,
    )
    inputs, points = task.state_size + task.action_size, task.horizon * settings.episodes
    belief: Belief
    if WeightBelief.fits(task.prior, options):
        belief = WeightBelief.create(task.prior, inputs, settings.episodes, options)
    else:
        _check_points(task, settings)
        belief = GPBelief.create(task.prior, inputs, points, settings.episodes, options)
    return Learner.create(belief, experiment.explores, seed)


def _check_points(task: Task, settings: Settings) -> None:
    offline = 0 if task.prior.data is None else len(task.prior.data.actions)
    if offline > MOST_TRANSITIONS:
        raise UserError(
            f"{offline} offline transitions are too many for an exact Gaussian process; use {MOST_TRANSITIONS} or less."
        )
    points = task.horizon * settings.episodes + offline
    if points > MOST_POINTS:
        raise UserError(
            f"episodes={settings.episodes} would give an exact Gaussian process {points} points, which do not fit into "
            f"memory; use at most {(MOST_POINTS - offline) // task.horizon} episodes."
        )
