"""The planner on a point that moves by its action: the best plan is known in closed form."""

import logging
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.model import KnownModel, Signals
from sbsrl.problem import Only, Penalties, Problem, feasible
from sbsrl.solve.icem import ICEM, Memory, check_population
from sbsrl.solve.scoring import OpenLoop


def point(x, a):
    return x + a


def signals(target=0.0):
    """Move to the target; the cost is how far right the point gets."""
    return Signals(lambda x, a, y: -jnp.sum((y - target) ** 2), lambda x, a, y: y)


def problem(target=0.0, bound=10.0, samples=True, threshold=0.0, **changes):
    model = KnownModel(point, signals(target))
    fields = {
        "objective": None,
        "nominal": model,
        "samples": Only(model) if samples else None,
        "bounds": jnp.array([bound], jnp.float32),
        "aggregations": ("statewise",),
        "uncertainty": lambda x, a: jnp.abs(a[0]),
        "threshold": jnp.array(threshold, jnp.float32),
        "steps": jnp.array(6, jnp.int32),
        "exploring": jnp.array(threshold > 0),
        "starts": jnp.zeros((1, 1)),
        "key": jax.random.key(0),
    }
    return Problem(**{**fields, **changes})


WEIGHTS = Penalties(cost=1000.0, exploration=100.0)


def planner(**changes):
    options = {
        "low": (-1.0,),
        "high": (1.0,),
        "horizon": 6,
        "candidates": 200,
        "elites": 20,
        "iterations": 5,
        "penalties": WEIGHTS,
    }
    return ICEM(**{**options, **changes})


X = jnp.array([0.0])


def plan(problem, key, icem=None, x=X, memory=None):
    icem = icem or planner()
    return icem.plan(problem, x, icem.init(problem.constraint_count) if memory is None else memory, key)


def test_population_shrinks_by_the_decay_down_to_twice_the_elites():
    assert planner(candidates=100, elites=30, iterations=5, decay=1.25).population == (100, 80, 64, 60, 60)


def test_it_finds_the_best_plan(getkey):
    """From 0 to 2.5 with steps of at most 1: 1, 1, 0.5 and then still. Errors are one tenth of a full step."""
    found, _ = plan(problem(target=2.5), getkey(), planner(iterations=12, colour=0.5))
    np.testing.assert_allclose(found.actions[:, 0], [1, 1, 0.5, 0, 0, 0], atol=0.1)
    assert feasible(found.evaluation)


def test_more_iterations_never_give_a_worse_plan_from_the_same_key(getkey):
    key = getkey()
    values = [
        float(plan(problem(target=2.5), key, planner(iterations=n, decay=1.0, candidates=40))[0].evaluation.value)
        for n in (1, 2, 4, 8)
    ]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_the_constraint_binds(getkey):
    """The target is beyond the bound: the point goes to the bound and no further."""
    found, _ = plan(problem(target=2.5, bound=1.2), getkey(), planner(iterations=12))
    reached = np.cumsum(found.actions[:, 0])
    assert reached.max() <= 1.2
    assert reached[-1] > 1.0
    assert found.evaluation.violation == 0


def test_when_nothing_is_feasible_the_least_violating_plan_is_returned_and_says_so(getkey):
    """From 0 no plan stays left of -3 at its first step; fleeing left at full speed violates least."""
    found, _ = plan(problem(target=2.5, bound=-3.0), getkey())
    assert not feasible(found.evaluation)
    np.testing.assert_allclose(found.evaluation.violation, 2.0, atol=0.05)
    np.testing.assert_allclose(found.actions[0, 0], -1.0, atol=0.05)


class Counted(OpenLoop):
    """Counts the iterations of a search."""

    seen: list = eqx.field(static=True)

    def __hash__(self):
        return id(self.seen)

    def score(self, problem, weights, x, pool, alive):
        jax.debug.callback(lambda: self.seen.append(1))
        return super().score(problem, weights, x, pool, alive)


def test_an_unsafe_plan_is_worth_a_longer_search_and_not_an_endless_one():
    """Everything is safe: two iterations. Nothing is, by far: it is soon given up.

    In between the first step must go left by 0.25 and candidates begin with a tenth: as many as it takes to get there.
    """
    seen: list[int] = []
    icem = planner(iterations=2, patience=10, spread=0.1, candidates=40, elites=5, momentum=0.5, scoring=Counted(seen))
    easy = problem()
    for bound, least, most in ((10.0, 2, 2), (-3.0, 3, 6), (-0.25, 3, 19)):
        seen.clear()
        found, _ = plan(eqx.tree_at(lambda p: p.bounds, easy, jnp.full(1, bound, jnp.float32)), jax.random.key(1), icem)
        jax.effects_barrier()
        assert least <= len(seen) <= most
        assert feasible(found.evaluation) == (bound > -1)


def test_patience_changes_nothing_about_a_search_that_finds_a_safe_plan(getkey):
    key, crowd = getkey(), problem(target=2.5, bound=1.2)
    (hasty, memory), (patient, same) = (plan(crowd, key, planner(patience=n)) for n in (1, 4))
    assert feasible(hasty.evaluation)
    for one, other in zip(jax.tree.leaves((hasty, memory)), jax.tree.leaves((patient, same)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_share_that_was_evaluated_counts_the_longer_search(getkey):
    """Full evaluation leaves out the six elites of before, which there are none of: 400 + 400 of 806."""
    options = {"candidates": 400, "elites": 20, "iterations": 1, "patience": 2, "lazy": False}
    found, _ = plan(problem(bound=-3.0), getkey(), planner(**options))
    np.testing.assert_allclose(found.evaluated, 800 / 806, rtol=1e-6)


def test_a_feasible_plan_is_preferred_to_a_more_valuable_one_that_violates(getkey):
    """With a penalty far too small, violating pays; it is not done all the same."""
    weak = planner(penalties=Penalties(cost=1e-3, exploration=0.0))
    found, _ = plan(problem(target=2.5, bound=0.5), getkey(), weak)
    assert feasible(found.evaluation)


def test_without_samples_every_plan_is_feasible(getkey):
    found, _ = plan(problem(target=2.5, bound=-3.0, samples=False), getkey())
    assert feasible(found.evaluation)


def test_exploration_is_demanded_up_to_the_threshold(getkey):
    """The uncertainty is |a|: standing still is best, but 3 nats must be gathered."""
    found, _ = plan(problem(threshold=3.0), getkey(), planner(iterations=12))
    assert found.evaluation.information > 2.9
    np.testing.assert_allclose(found.evaluation.information, np.sum(np.abs(found.actions)), rtol=1e-5)
    still, _ = plan(problem(threshold=0.0), getkey(), planner(iterations=12))
    assert np.sum(np.abs(still.actions)) < 1.0


def test_a_trajectory_that_is_not_a_number_is_neither_safe_nor_chosen(getkey):
    """Full speed to the right breaks the model; the planner must not mistake that for the best there is."""

    def broken(x, a):
        return jnp.where(a > 0.9, jnp.nan, x + a)

    model = KnownModel(broken, signals(2.5))
    for fragile in ({"samples": Only(model)}, {"nominal": model}):
        found, _ = plan(Problem(**{**vars(problem(target=2.5)), **fragile}), getkey())
        assert feasible(found.evaluation)
        assert np.isfinite(found.evaluation.value)
        assert np.all(found.actions <= 0.9)


def test_actions_stay_within_their_bounds(getkey):
    icem = planner(low=(-0.2,), high=(1.0,))
    found, memory = plan(problem(target=100.0), getkey(), icem)
    for actions in (found.actions, memory.elites):
        assert np.all(actions >= -0.2 - 1e-6)
        assert np.all(actions <= 1.0 + 1e-6)


def test_memory_is_shifted_by_one_step(getkey):
    """With fresh candidates too timid to win, the remembered plan, shifted, must be found again."""
    icem = planner(candidates=40, elites=20, iterations=1, spread=1e-3)
    good = jnp.array([[9.0], [1.0], [1.0], [0.5], [0.0], [0.0]], jnp.float32)  # the first action is in the past
    elites, unasked = jnp.broadcast_to(good, (6, 6, 1)), jnp.zeros(1, jnp.float32)
    memory = Memory(jnp.zeros((6, 1), jnp.float32), elites, jnp.array(True), unasked)
    found, _ = plan(problem(target=2.5), getkey(), icem, memory=memory)
    np.testing.assert_allclose(found.actions[:5, 0], good[1:, 0])
    forgotten, _ = plan(problem(target=2.5), getkey(), icem)
    assert forgotten.evaluation.value < found.evaluation.value


def test_a_new_episode_forgets(getkey):
    icem = planner()
    assert not icem.init(1).warm
    _, memory = plan(problem(target=2.5), getkey(), icem)
    assert memory.warm
    np.testing.assert_array_equal(icem.init(1).mean, np.zeros((6, 1)))


def test_the_executed_plan_leads_the_remembered_elites(getkey):
    found, memory = plan(problem(target=2.5), getkey())
    np.testing.assert_array_equal(memory.elites[0], found.actions)


def test_the_same_key_gives_the_same_plan_and_another_key_another(getkey):
    key = getkey()
    first, again = plan(problem(target=2.5), key)[0], plan(problem(target=2.5), key)[0]
    assert np.array_equal(first.actions, again.actions)
    assert not np.array_equal(first.actions, plan(problem(target=2.5), getkey())[0].actions)


@pytest.mark.parametrize("chunk", [7, 64, 1000])
def test_the_chunk_size_does_not_change_the_plan(chunk, getkey):
    key = getkey()
    reference, _ = plan(problem(target=2.5, bound=1.2), key, planner(chunk=128))
    found, _ = plan(problem(target=2.5, bound=1.2), key, planner(chunk=chunk))
    np.testing.assert_array_equal(found.actions, reference.actions)


class Walls(eqx.Module):
    """Points that are pushed to the right: the last sample most."""

    push: jnp.ndarray

    def __len__(self):
        return len(self.push)

    def member(self, m):
        return KnownModel(lambda x, a: x + a + self.push[m], signals())


def test_the_most_binding_sample_is_remembered_and_asked_first(getkey):
    base = problem(target=2.5, bound=1.2)
    crowd = Problem(**{**vars(base), "samples": Walls(jnp.asarray([0.0, 0.0, 0.0, 0.05], jnp.float32))})
    _, memory = plan(crowd, getkey())
    assert np.argmax(memory.binding) == 3
    second, _ = plan(crowd, getkey(), memory=memory)
    assert feasible(second.evaluation)
    assert 0 < second.evaluated < 1


@pytest.mark.parametrize("bound", [3.0, 1.2, -3.0])
def test_lazy_and_full_evaluation_give_the_same_plan(bound, getkey):
    """A bound that does not bind, one that does, and one that cannot be met."""
    key = getkey()
    base = problem(target=2.5, bound=bound)
    crowd = Problem(**{**vars(base), "samples": Walls(jnp.asarray([0.0, 0.01, 0.02, 0.05], jnp.float32))})
    (lazy, memory), (full, same) = (plan(crowd, key, planner(lazy=lazy)) for lazy in (True, False))
    np.testing.assert_array_equal(lazy.actions, full.actions)
    np.testing.assert_array_equal(memory.elites, same.elites)
    assert lazy.evaluation == full.evaluation
    assert lazy.evaluated < full.evaluated


def test_a_bound_on_the_mean_lets_through_what_a_bound_on_each_sample_does_not(getkey):
    """No plan keeps the last of four samples, pushed by 3, left of 1; the mean of them is pushed by 0.75.

    The point cannot but go to 3 + a on it; on the mean the first step may go up to 0.25.
    """
    crowd = Walls(jnp.asarray([0.0, 0.0, 0.0, 3.0], jnp.float32))
    icem = planner(horizon=1, iterations=8)
    options = {"target": 2.5, "bound": 1.0, "samples": None}
    each, mean = (Problem(**{**vars(problem(**options)), "samples": crowd, "constraint": c}) for c in ("each", "mean"))
    refused, _ = plan(each, getkey(), icem)
    assert not feasible(refused.evaluation)
    np.testing.assert_allclose(refused.evaluation.violation, 1.0, atol=0.05)
    found, memory = plan(mean, getkey(), icem)
    assert feasible(found.evaluation)
    assert memory.binding.shape == (1,)
    np.testing.assert_allclose(found.actions[0, 0], 0.25, atol=0.02)


def test_of_two_costs_both_bind(getkey):
    """To the right of 1.2 is forbidden at every step, and so is an effort, summed, above 0.5.

    With one of them alone the other is exceeded: neither makes the other idle.
    """
    both = Signals(signals(2.5).reward, lambda x, a, y: jnp.stack([y[0], a[0] ** 2]))
    model = KnownModel(point, both)
    fields = {"nominal": model, "samples": Only(model), "aggregations": ("statewise", "sum")}

    def costs(bounds):
        crowd = Problem(**{**vars(problem()), **fields, "bounds": jnp.asarray(bounds, jnp.float32)})
        found, _ = plan(crowd, getkey(), planner(iterations=12))
        assert feasible(found.evaluation)
        actions = np.asarray(found.actions[:, 0], float)
        return np.cumsum(actions).max(), np.sum(actions**2)

    reached, effort = costs([1.2, 0.5])
    assert 1.0 < reached <= 1.2 + 1e-6
    assert 0.4 < effort <= 0.5 + 1e-6
    assert costs([1.2, 99.0])[1] > 0.6
    assert costs([99.0, 0.5])[0] > 1.3


class Gusts(eqx.Module):
    """Points that are blown about, each in its own way."""

    size: jnp.ndarray

    def __len__(self):
        return 4

    def member(self, m):
        return Gust(self.size)


class Gust(eqx.Module):
    """A model that draws its next state."""

    size: jnp.ndarray

    @property
    def stochastic(self):
        return True

    def __call__(self, x, a):
        return x + a

    def draw(self, x, a, key):
        return x + a + self.size * jax.random.normal(key, x.shape, x.dtype)

    def reward(self, x, a, y):
        return signals(2.5).reward(x, a, y)

    def costs(self, x, a, y):
        return y


def test_samples_that_draw_keep_the_plan_away_from_the_bound(getkey):
    """Calm samples let it go to the bound, shaken ones as far as the worst of four gusts allows; lazily as fully."""
    calm, shaken = (
        Problem(**{**vars(problem(target=2.5, bound=1.2)), "samples": Gusts(jnp.float32(size))}) for size in (0.0, 0.1)
    )
    key = getkey()
    near, far = (plan(crowd, key, planner(iterations=12))[0] for crowd in (calm, shaken))
    reached = [float(np.cumsum(found.actions[:, 0]).max()) for found in (near, far)]
    assert 1.1 < reached[0] <= 1.2 + 1e-6
    assert reached[1] < reached[0] - 0.05
    assert feasible(near.evaluation)
    assert feasible(far.evaluation)
    full, _ = plan(shaken, key, planner(iterations=12, lazy=False))
    np.testing.assert_array_equal(far.actions, full.actions)


def test_fewer_than_two_candidates_per_elite_are_refused():
    check_population(8, 4)
    with pytest.raises(UserError, match=r"^candidates=7 is less than twice elites=4; set candidates to at least 8, "):
        check_population(7, 4)


def test_another_problem_of_the_same_shape_is_not_compiled_again(getkey):
    icem, base = planner(elites=19), problem(target=2.5)
    with count_compilations() as first:
        plan(base, getkey(), icem)
    with count_compilations() as second:
        plan(base.demanding(jnp.array(1.0, jnp.float32), 3), getkey(), icem, x=X + 1)
    assert any("plan" in name for name in first)
    assert not any("plan" in name for name in second)


@contextmanager
def count_compilations():
    """The names of all functions that are compiled meanwhile."""
    names: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: names.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("jax._src.interpreters.pxla")
    logger.addHandler(handler)
    try:
        with jax.log_compiles():
            yield names
    finally:
        logger.removeHandler(handler)
