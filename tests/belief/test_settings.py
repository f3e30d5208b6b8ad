"""From a task to its belief, and what is said against the theorem."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.blocks import padded_size
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.protocol import Calibrated
from sbsrl.belief.settings import GPSettings
from sbsrl.belief.weights import WeightBelief
from sbsrl.costs import Cost
from sbsrl.kernels import Linear, SquaredExponential
from sbsrl.model import Signals
from sbsrl.prior import GPPrior, Prior
from sbsrl.task import Task
from sbsrl.transitions import Transitions

HORIZON, EPISODES, OFFLINE = 30, 2, 10
KEY = jax.random.key(0)
SMOOTH, FINITE = SquaredExponential((1.0, 1.0, 1.0)), Linear((1.0, 1.0, 1.0))
GP = GPPrior(mean=lambda x, a: x, scale=(1.0, 1.0), kernel=SMOOTH, noise=0.1, bound=1.0, bound_source="assumed")
SIGNALS = Signals(lambda x, a, y: x[0], lambda x, a, y: y[:1])


def transitions(count, shift=0.0):
    rng = np.random.default_rng(count)
    x, a = rng.normal(size=(count, 2)), rng.normal(size=(count, 1))
    return Transitions(x, a, x + shift, np.zeros(count), np.zeros((count, 1)), np.zeros(count, bool))


def refuse():
    raise AssertionError("a belief is made without the true system")


def task(signals=SIGNALS, data=None, gp=GP, horizon=HORIZON, **changes):
    return Task(
        name="toy",
        state_names=("p", "v"),
        action_low=(-1.0,),
        action_high=(1.0,),
        horizon=horizon,
        costs=(Cost("speed", 1.0),),
        start=lambda key: jnp.zeros(2),
        open=refuse,
        prior=Prior("guess", True, gp=None if gp is None else dataclasses.replace(gp, **changes), data=data),
        signals=signals,
    )


def test_the_belief_of_all_points_has_room_for_the_whole_run_and_no_more():
    """Horizon times episodes and the offline data, in whole blocks."""
    settings = GPSettings(sampler="truncated")
    for data, offline in ((None, 0), (transitions(OFFLINE), OFFLINE)):
        belief = settings.create(task(data=data), EPISODES, KEY)
        assert isinstance(belief, GPBelief)
        assert belief.residuals.shape == (padded_size(HORIZON * EPISODES + offline), 2)
        assert belief.beta.shape == (1, EPISODES + 2)
        assert belief.count == offline
        assert belief.chunk == HORIZON
        assert belief.settings is settings
        for episode in range(EPISODES):
            belief = belief.update(transitions(HORIZON), jax.random.key(episode))


def test_kernels_of_finite_rank_have_a_belief_of_weights_unless_particles_are_asked_for():
    belief = GPSettings().create(task(kernel=FINITE, data=transitions(OFFLINE)), EPISODES, KEY)
    assert isinstance(belief, WeightBelief)
    assert belief.groups[0].now == belief.offline == 1
    assert belief.groups[0].beta.shape == (EPISODES + 2,)
    assert belief.chunk == HORIZON
    assert isinstance(GPSettings(sampler="particles").create(task(kernel=FINITE), EPISODES, KEY), GPBelief)


@pytest.mark.parametrize("kernel", [SMOOTH, FINITE])
def test_the_belief_is_calibrated_and_its_models_have_the_signals_of_the_task(kernel):
    belief = GPSettings().create(task(kernel=kernel), EPISODES, KEY)
    assert isinstance(belief, Calibrated)
    for model in (belief.nominal(), belief.samples(jax.random.key(0), 2).member(jnp.int32(0))):
        assert model.signals is SIGNALS


@pytest.mark.parametrize("kernel", [SMOOTH, FINITE])
def test_a_warning_of_offline_data_says_so(kernel):
    belief = GPSettings().create(task(kernel=kernel, data=transitions(OFFLINE, shift=30.0)), EPISODES, KEY)
    assert "violated in the offline data" in belief.calibration_warning()


def refused(settings, made, episodes=EPISODES):
    with pytest.raises(UserError) as error:
        settings.create(made, episodes, KEY)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_a_gaussian_process_is_refused():
    assert refused(GPSettings(), task(gp=None)).startswith(
        "belief=gp needs a prior with mean, scale, kernel and noise, and the prior 'guess' of toy has none;"
    )
    assert refused(GPSettings(), task(signals=None)).startswith(
        "belief=gp needs a reward and costs that are known functions, which a Gaussian process does not learn,"
    )
    assert "has no bound B" in refused(GPSettings(sampler="truncated"), task(bound=None))


def test_more_points_than_fit_are_refused_but_not_for_weights():
    """10000 points, of which 5000 may be offline data."""
    assert "use at most 20 episodes" in refused(GPSettings(), task(horizon=500), 21)
    assert "5001 offline transitions are too many" in refused(GPSettings(), task(data=transitions(5001)))
    assert isinstance(GPSettings().create(task(horizon=500, kernel=FINITE), 21, KEY), WeightBelief)


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ({"sampler": "truncated"}, {"kernel": FINITE}, []),
        ({"sampler": "truncated", "convention": "paper"}, {"kernel": FINITE, "noise": 1.0}, []),
        (
            {"sampler": "truncated", "convention": "paper"},
            {"kernel": FINITE, "noise": (2.0, 0.5)},
            ["the paper's confidence width is too narrow for sigma_w < 1."],
        ),
        (
            {"sampler": "particles", "fitted": True},
            {},
            [
                "samples are fresh posterior noise at every step, TS1 (the paper's experiments); the theorem is about "
                "functions of the prior.",
                "draws of SquaredExponential([1, 1, 1]) by Fourier features are not exactly those of the Gaussian "
                "process.",
                "kernel and noise are fitted to the data.",
            ],
        ),
    ],
)
def test_it_names_what_the_theorem_does_not_cover(settings, changes, said):
    assert list(GPSettings(**settings).against_safety(task(**changes))) == said


def test_nothing_is_said_of_a_belief_that_cannot_be():
    with pytest.raises(UserError, match="belief=gp needs a prior"):
        list(GPSettings().against_safety(task(gp=None)))


@pytest.mark.parametrize("mean", [lambda x, a: x * jnp.nan, lambda x, a: x[:1], lambda x, a: x @ a])
def test_a_prior_mean_that_is_no_state_where_episodes_begin_is_refused(mean):
    with pytest.raises(UserError, match=r"^the prior's mean"):
        GPSettings().create(task(mean=mean), EPISODES, KEY)
