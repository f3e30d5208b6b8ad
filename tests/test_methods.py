"""A method is how its problem is built: what it constrains, what it maximises, what it demands."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slider

from sbsrl import METHODS, UserError, learn
from sbsrl.belief.ensemble.switching import Switching, SwitchingModel
from sbsrl.costs import Cost
from sbsrl.learner import Learner, context_of
from sbsrl.methods import Method, make_method
from sbsrl.model import Signals
from sbsrl.settings import MethodSettings
from sbsrl.shape import episode_shape
from sbsrl.specification import Specification, make_experiment
from sbsrl.theory.exploration import exploration_threshold
from sbsrl.transitions import Transitions
from sbsrl.validation import Whole, declared


@pytest.fixture
def problem(tiny):
    def build(method, **changes):
        phases = {"actsafe_episodes": 1} if method == "actsafe" else {}
        experiment, learner = Specification.make("pendulum", method, 0, "cpu", {**tiny, **phases}).start()
        context = dataclasses.replace(context_of(experiment, learner), **{"exploring": True, **changes})
        return experiment, experiment.method.problem(context)

    return build


@pytest.mark.parametrize(
    ("method", "samples"), [("sbsrl", 3), ("greedy", 3), ("actsafe", 3), ("bonus", 3), ("mean", 1), ("oracle", 1)]
)
def test_safety_is_demanded_on_so_many_dynamics(problem, method, samples):
    assert len(problem(method)[1].samples) == samples


def test_unsafe_demands_no_safety(problem):
    assert problem("unsafe")[1].samples is None


def test_mean_constrains_the_nominal_dynamics(problem):
    _, p = problem("mean")
    x, a = jnp.array([-1.0, 0.0, 1.0], jnp.float32), jnp.array([0.3], jnp.float32)
    assert (p.samples.member(jnp.int32(0))(x, a) == p.nominal(x, a)).all()


def test_the_oracle_plans_with_the_true_dynamics(problem):
    experiment, p = problem("oracle")
    truth = experiment.task.equations.dynamics
    assert p.nominal.dynamics is truth
    assert p.samples.member(jnp.int32(0)).dynamics is truth


def test_the_oracle_is_refused_where_nobody_knows_the_truth(tiny):
    spec = Specification.make("pendulum", "oracle", 0, "cpu", tiny)
    task = dataclasses.replace(spec.make_task(), equations=None)
    with pytest.raises(UserError, match=r"^the equations of pendulum are not known"):
        make_experiment(task, "oracle", spec.settings)


def test_the_bound_is_the_tightened_budget(problem):
    assert problem("sbsrl")[1].bounds.tolist() == [jnp.float32(5.9)]


@pytest.fixture
def deep():
    """Problems on networks that have learned nothing."""
    with pytest.MonkeyPatch.context() as patch:
        slider.register(patch.setitem)

        def build(method, final=False, **changes):
            experiment, learner = Specification.make("slider", method, 0, "cpu", changes).start()
            return experiment.method.problem(context_of(experiment, learner, final))

        yield build


def test_mbpo_bounds_the_mean_over_trajectories_that_change_the_network(deep):
    p = deep("mbpo", **{"method.samples": 6})
    assert isinstance(p.samples, Switching)
    assert isinstance(p.nominal, SwitchingModel)
    assert (len(p.samples), p.constraint, p.constraint_count, float(p.threshold)) == (6, "mean", 1, 0.0)
    assert p.switch is None


def test_sooper_adds_a_rule_to_mbpo_and_is_curious_until_the_end(deep):
    """Pessimism is a share of the budget, 0.3 of 2."""
    chosen = {"pessimism": 0.3, "optimism": 0.7, "budget": 2.0}
    p, final = (deep("sooper", final, **chosen) for final in (False, True))
    assert isinstance(p.samples, Switching)
    assert p.constraint == "mean"
    np.testing.assert_allclose(p.switch.budgets, [2.0])
    np.testing.assert_allclose(p.switch.pessimism, [0.6], rtol=1e-6)
    np.testing.assert_allclose([p.switch.optimism, final.switch.optimism], [0.7, 0.0], rtol=1e-6)
    assert p.switch.planned is False


@pytest.mark.parametrize("changes", [{"segment": 5}, {"solver": "actor-critic"}])
def test_sooper_cannot_plan_its_switch_with_critics(deep, changes):
    with pytest.raises(UserError, match=r"^sooper plans with its switch through whole episodes only"):
        deep("sooper", planned=True, **changes)


def two_costs(task):
    """The pendulum, which must not turn fast and not push much."""
    costs = lambda x, a, y: jnp.stack([jnp.abs(y[2]), a[0] ** 2])  # noqa: E731
    return dataclasses.replace(
        task,
        costs=(task.costs[0], Cost("effort", 1.0, "statewise", (0.0, 1.0))),
        signals=Signals(task.signals.reward, costs),
        equations=task.equations._replace(signals=Signals(task.signals.reward, costs)),
    )


@pytest.mark.parametrize(("tightening", "bounds"), [(0.1, [5.9, 0.9]), ((0.1, 0.25), [5.9, 0.75])])
def test_every_cost_is_tightened_by_its_own_margin_or_by_the_same(tiny, tightening, bounds):
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, "tightening": tightening})
    experiment = make_experiment(two_costs(spec.make_task()), "sbsrl", spec.settings)
    learner = Learner.create(experiment, 0)
    p = experiment.method.problem(context_of(experiment, learner))
    np.testing.assert_array_equal(p.bounds, np.array(bounds, np.float32))
    assert p.aggregations == ("statewise", "statewise")
    y = jnp.array([-1.0, 0.0, 2.0], jnp.float32)
    assert p.samples.member(jnp.int32(0)).costs(y, jnp.array([0.5], jnp.float32), y).tolist() == [2.0, 0.25]


def test_initial_states_are_drawn_as_the_learner_expects_them(problem):
    _, p = problem("sbsrl")
    assert p.starts.shape == (8, 3)
    np.testing.assert_array_equal(p.starts, np.tile([-1.0, 0.0, 0.0], (8, 1)))


@pytest.mark.parametrize(("exploring", "threshold"), [(True, 500.0), (False, 0.0)])
def test_exploration_is_demanded_only_while_exploring(problem, exploring, threshold):
    assert problem("sbsrl", exploring=exploring)[1].threshold == threshold


def test_actsafe_is_curious_first_and_then_wants_reward(problem):
    x, a = jnp.array([-1.0, 0.0, 1.0], jnp.float32), jnp.array([0.3], jnp.float32)
    experiment, first = problem("actsafe", episode=0, exploring=False)
    assert first.reward(x, a, x) == first.uncertainty(x, a)
    assert first.exploring
    for episode, final in ((1, False), (0, True)):
        _, later = problem("actsafe", episode=episode, exploring=False, final=final)
        assert later.objective is None
        assert later.reward(x, a, x) == experiment.task.signals.reward(x, a, x)
        assert not later.exploring


def test_a_bonus_adds_information_to_the_reward_with_its_weight_and_the_final_policy_has_none(problem):
    """Safe on every sample, and without a threshold; to single precision."""
    x, a = jnp.array([-1.0, 0.0, 1.0], jnp.float32), jnp.array([0.3], jnp.float32)
    experiment, p = problem("bonus", exploring=False)
    plain = experiment.task.signals.reward(x, a, x)
    assert p.exploring
    assert (float(p.threshold), len(p.samples)) == (0.0, 3)
    assert experiment.settings.method.bonus_weight == 1.0
    np.testing.assert_allclose(p.reward(x, a, x), plain + p.uncertainty(x, a), rtol=1e-6)
    _, final = problem("bonus", exploring=False, final=True)
    assert final.objective is None
    assert not final.exploring


@pytest.mark.parametrize("weight", [0.0, 0.25, 4.0])
def test_the_weight_of_the_bonus_is_a_setting_and_nothing_is_greedy(tiny, weight):
    """At one transition and at columns of them."""
    experiment, learner = Specification.make("pendulum", "bonus", 0, "cpu", {**tiny, "bonus_weight": weight}).start()
    p = experiment.method.problem(context_of(experiment, learner))
    assert bool(p.exploring) == (weight > 0)
    rng = np.random.default_rng(0)
    x, a = jnp.asarray(rng.normal(size=(3, 5)), jnp.float32), jnp.asarray(rng.uniform(-1, 1, (1, 5)), jnp.float32)
    plain, gained = jax.vmap(experiment.task.signals.reward, -1)(x, a, x), jax.vmap(p.uncertainty, -1)(x, a)
    expected = plain + weight * gained
    np.testing.assert_allclose(jax.vmap(p.reward, -1)(x, a, x), expected, rtol=1e-5)
    if weight:
        np.testing.assert_allclose(p.reward.many(x, a, x), expected, rtol=1e-4)


def test_only_sbsrl_and_mean_have_the_exploration_constraint():
    assert {name for name, method in METHODS.items() if method.explores} == {"sbsrl", "mean"}


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'greedy'"):
        make_method("gredy")


def first_action_of_samples(belief, seed):
    x, a = jnp.array([-1.0, 0.0, 0.5], jnp.float32), jnp.array([0.3], jnp.float32)
    samples = belief.samples(jax.random.key(seed), 3)
    return np.stack([samples.member(m)(x, a) for m in jnp.arange(3)])


def test_samples_repeat_with_the_key(tiny):
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", tiny)
    belief = spec.start()[1].belief
    first, again, other = (first_action_of_samples(belief, seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).all()


@pytest.mark.parametrize(("sampler", "kept"), [("pathwise", False), ("truncated", True), ("particles", False)])
def test_samples_are_drawn_anew_in_each_episode_or_kept(sampler, kept, tiny):
    """One transition far away says nothing about this state, so kept functions do not change there."""
    belief = Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, "sampler": sampler}).start()[1].belief
    far = np.array([[40.0, 40.0, 40.0]])
    nothing = Transitions(far, np.zeros((1, 1)), far, np.zeros(1), np.zeros((1, 1)), np.zeros(1, bool))
    after = belief.update(nothing, jax.random.key(0))
    same = np.allclose(first_action_of_samples(belief, 0), first_action_of_samples(after, 0), atol=1e-6)
    assert same == kept


def ledge_context(updates=0, **settings):
    """The context of the ledge, after so many episodes of random pushes."""
    spec = Specification.make("ledge", "sbsrl", 0, "cpu", {"prior": "motor", "episodes": 40, **settings})
    experiment, learner = spec.start()
    belief, rng = learner.belief, np.random.default_rng(0)
    for _ in range(updates):
        x, a = rng.normal(size=(3, 1)), rng.uniform(-1, 1, (3, 1))
        y = 0.5 * x + 0.9 * a + 0.3 * rng.normal(size=(3, 1))
        moves = Transitions(x, a, y, np.zeros(3), np.zeros((3, 1)), np.zeros(3, bool))
        belief = belief.update(moves, jax.random.key(0))
    context = context_of(experiment, learner)
    return dataclasses.replace(context, belief=belief, episode=updates, exploring=True)


@pytest.mark.parametrize("form", ["sharp", "paper"])
@pytest.mark.parametrize("updates", [0, 3])
def test_the_threshold_is_that_of_the_theory_at_the_width_of_the_belief(form, updates):
    """To 1e-12; also what the problem demands, in single precision."""
    context = ledge_context(updates, accuracy=0.7, form=form)
    width = float(context.belief.width()[0])
    assert (width == 1) == (updates == 0)
    expected = exploration_threshold(0.7, width, episode_shape(context.task), form)
    np.testing.assert_allclose(context.threshold(), expected, rtol=1e-12)
    np.testing.assert_allclose(make_method("sbsrl").problem(context).threshold, expected, rtol=1e-6)


def test_the_threshold_shrinks_as_the_confidence_sets_get_wider():
    """beta_n grows with what the data taught, and n more episodes never teach less."""
    thresholds = [float(ledge_context(n).threshold()) for n in (0, 1, 5, 20)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[-1] < thresholds[1] < thresholds[0]


def test_the_threshold_is_in_units_of_the_state():
    """If all outputs have the scale 0.5, s_n is half as large as in the theory's units, and so is what is demanded."""
    context = ledge_context(2)
    scaled = with_prior(context, scale=(0.5,))
    np.testing.assert_allclose(scaled.threshold(), 0.5 * context.threshold(), rtol=1e-12)


def test_without_an_accuracy_the_threshold_is_the_one_that_was_set():
    assert ledge_context(2, accuracy=0.0, exploration_threshold=0.3).threshold() == 0.3


@pytest.mark.parametrize("updates", [0, 3])
def test_a_threshold_that_shrinks_does_so_with_the_width_of_the_belief(updates):
    """d_sigma^0 B / max beta_n, to 1e-12; all of it before the first episode."""
    context = ledge_context(updates, accuracy=0.0, exploration_threshold=0.3, shrinking=True)
    width = float(np.max(context.belief.width()))
    np.testing.assert_allclose(context.threshold(), 0.3 * context.task.prior.gp.bound / width, rtol=1e-12)
    assert (context.threshold() == 0.3) == (updates == 0)


def test_the_widest_of_all_outputs_decides_how_far_the_threshold_shrinks(monkeypatch):
    context = ledge_context(2, accuracy=0.0, exploration_threshold=0.3, shrinking=True)
    monkeypatch.setattr(type(context.belief), "width", lambda belief: jnp.array([1.5, 6.0]))
    np.testing.assert_allclose(context.threshold(), 0.3 * context.task.prior.gp.bound / 6.0, rtol=1e-12)


def with_prior(context, **changes):
    prior = context.task.prior
    prior = dataclasses.replace(prior, gp=dataclasses.replace(prior.gp, **changes))
    return dataclasses.replace(context, task=dataclasses.replace(context.task, prior=prior))


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ({"uncertainty": "information"}, {}, "^accuracy needs uncertainty=deviation and one scale for all outputs"),
        (
            {},
            {"bound": None},
            "^a threshold that shrinks needs a bound on the mismatch, and prior 'motor' has none; use",
        ),
        (
            {"accuracy": 0.0, "exploration_threshold": 0.3, "shrinking": True},
            {"bound": None},
            "^a threshold that shrinks .* or accuracy=0, shrinking=false and a fixed exploration_threshold",
        ),
    ],
)
def test_an_accuracy_or_a_shrinking_that_means_nothing_is_refused_in_one_line(settings, changes, said):
    usual = ledge_context()
    asked = Specification.make("ledge", "sbsrl", 0, "cpu", {"prior": "motor", "episodes": 40, **settings}).settings
    context = with_prior(dataclasses.replace(usual, settings=asked), **changes)
    with pytest.raises(UserError, match=said) as refused:
        context.threshold()
    assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match=said):
        make_experiment(context.task, "sbsrl", context.settings)


def test_an_accuracy_needs_one_scale_for_all_outputs():
    """As on the pendulum, whose outputs have two."""
    with pytest.raises(UserError, match=r"^accuracy needs uncertainty=deviation and one scale for all outputs"):
        Specification.make("pendulum", "sbsrl", 0, "cpu", {"accuracy": 1.0, "uncertainty": "deviation"}).experiment()


def test_a_form_of_the_bounds_that_does_not_exist_is_refused():
    with pytest.raises(UserError, match="'sharpest'; did you mean 'sharp'"):
        ledge_context(form="sharpest")


class Half:
    """A run-time filter: it sends half of what the policy wants."""

    def __init__(self, policy):
        self.policy = policy

    def init(self):
        return self.policy.init()

    def act(self, x, state, key):
        action, state, metrics = self.policy.act(x, state, key)
        return action / 2, state, {**metrics, "filtered": 1.0}


@dataclasses.dataclass(frozen=True)
class CarefulSettings(MethodSettings):
    """Settings of its own."""

    patience_of_the_user: int = declared(Whole(0, 5), 1, "what no other method has")


def test_a_method_may_wrap_its_policy_at_run_time_and_have_settings_of_its_own(tiny, monkeypatch):
    """What a safety filter or a monitor needs, in a few lines and nowhere else."""
    seen = []
    careful = Method(
        "careful",
        "sbsrl, at half the strength",
        make_method("greedy").problem,
        policy=lambda context, solution: Half(solution.policy),
        settings=CarefulSettings,
        check=lambda task, settings: seen.append(settings.method.patience_of_the_user),
    )
    monkeypatch.setitem(METHODS, "careful", careful)
    result = learn("pendulum", "careful", **{**tiny, "episodes": 1}, patience_of_the_user=3)
    assert seen == [3]
    assert [r.metrics["filtered"] for r in result.records] == [1.0, 1.0]
    assert abs(result.policy(np.array([-1.0, 0.0, 0.0]))[0]) <= 0.5
    assert isinstance(result.policy.policy, Half)
