"""The sled: its laws, its limits, and that the truth is one that its prior allows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from sbsrl import UserError, make_task
from sbsrl.tasks.ledge import GROUNDS, REACH, Sled, make, prior_of

FEATURES = {
    "slope": lambda x, a: 0.15 * np.stack([np.tanh(x), a]),
    "waves": lambda x, a: 0.15 * np.stack([np.cos(2 * x), np.sin(2 * x)]),
    "motor": lambda x, a: 0.15 * a[None],
}


def inputs(count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-REACH, REACH, count), rng.uniform(-1, 1, count)


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_true_mean_is_half_the_way_the_push_and_the_ground(ground):
    """For random weights, to 1e-12; f* is what the oracle plans with; pushes are cut to [-1, 1]."""
    x, a = inputs(50)
    weights = np.random.default_rng(1).normal(size=GROUNDS[ground].rank)
    task = make(prior_of(ground), sled=Sled(GROUNDS[ground], jnp.asarray(weights)))
    got = jax.jit(jax.vmap(task.equations.dynamics))(jnp.asarray(x)[:, None], jnp.asarray(a)[:, None])
    expected = 0.5 * x + 0.9 * a + weights @ FEATURES[ground](x, a)
    np.testing.assert_allclose(got[:, 0], expected, atol=1e-12)
    far = task.prior.gp.mean(jnp.array([1.0]), jnp.array([7.0]))
    np.testing.assert_allclose(far, [0.5 + 0.9])


def test_noise_has_the_mean_and_deviation_it_should():
    """40000 steps from one state: both within 4 standard errors; the same key gives the same step."""
    task, count = make_task("ledge"), 40_000
    x, a = jnp.array([0.4]), jnp.array([-0.3])
    step = jax.jit(jax.vmap(lambda key: task.equations.step(x, a, key)[0]))
    keys = jax.random.split(jax.random.key(0), count)
    noise = np.asarray(step(keys)) - float(task.equations.dynamics(x, a)[0])
    assert abs(noise.mean()) < 4 * 0.3 / np.sqrt(count)
    assert abs(noise.std() / 0.3 - 1) < 4 / np.sqrt(2 * count)
    assert abs(np.mean(noise**3)) < 4 * np.sqrt(15 / count) * 0.3**3
    np.testing.assert_array_equal(step(keys[:3]), step(keys[:3]))
    assert task.equations.noise == (0.3,)


@pytest.mark.parametrize("kind", [jnp.float32, jnp.float64])
def test_cost_and_reward_stay_within_their_limits_and_rise_to_the_right(kind):
    task = make_task("ledge")
    y = jnp.linspace(-50, 50, 2001, dtype=kind)
    nothing = jnp.zeros(1, kind)
    reward, costs = task.signals

    def cost(x, a, y):
        return costs(x, a, y)[0]

    for gain, (low, high) in ((cost, task.costs[0].limits), (reward, task.limits.reward)):
        values = np.asarray(jax.vmap(lambda y, g=gain: g(nothing, nothing, y[None]))(y))
        assert values.min() >= low
        assert values.max() <= high
        assert values.max() - values.min() > 0.999 * (high - low)
        assert np.all(np.diff(values) >= 0)
    assert cost(nothing, nothing, jnp.ones(1, kind)) == 0.5
    assert reward(nothing, nothing, nothing) == 0.5


def norm(ground, weights):
    """In the RKHS, from 60 values of the mismatch and the kernel alone: sqrt(g^T K^+ g)."""
    x, a = inputs(60)
    sled = Sled(GROUNDS[ground], jnp.asarray(weights))
    z = jnp.asarray(np.stack([x, a], axis=1))
    true = jax.vmap(sled.mean)(z[:, :1], z[:, 1:])
    mismatch = np.asarray(true - jax.vmap(prior_of(ground).gp.mean)(z[:, :1], z[:, 1:]))[:, 0]
    gram = np.asarray(jax.vmap(lambda u: jax.vmap(lambda v: GROUNDS[ground](u, v))(z))(z))
    return np.sqrt(mismatch @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ mismatch)


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_norm_of_the_mismatch_is_that_of_the_weights_and_within_the_bound(ground):
    """Without weights it is 0.5, half the bound; any others have their own. To 1e-6."""
    task = make_task("ledge", prior=ground)
    np.testing.assert_allclose(norm(ground, task.equations.step.weights), 0.5, rtol=1e-6)
    assert task.prior.gp.bound == 1
    weights = np.random.default_rng(2).normal(size=GROUNDS[ground].rank)
    np.testing.assert_allclose(norm(ground, weights), np.linalg.norm(weights), rtol=1e-6)


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_features_are_the_kernel_and_below_its_supremum(ground):
    x, a = inputs(40)
    phi = FEATURES[ground](x, a)
    z = jnp.asarray(np.stack([x, a], axis=1))
    gram = jax.vmap(lambda u: jax.vmap(lambda v: GROUNDS[ground](u, v))(z))(z)
    np.testing.assert_allclose(gram, phi.T @ phi, atol=1e-12)
    assert np.max(np.diag(gram)) <= GROUNDS[ground].supremum((REACH, 1.0)) + 1e-12


def test_no_step_begins_beyond_the_reach():
    """On the worst slope of norm B and for every policy: P(|x_2| > 3) below 2e-5, by an integral over x_1."""
    x, most = np.linspace(-4, 4, 401), 0.0
    for push, spring in np.asarray(make_task("ledge").policies.lattice()):
        a = np.tanh(push + spring * x)
        for sign in (-1, 1):
            mean = 0.5 * x + 0.9 * a + sign * 0.15 * np.sqrt(np.tanh(x) ** 2 + a**2)
            density = np.exp(-0.5 * ((x - mean[200]) / 0.3) ** 2)
            beyond = ndtr((mean - REACH) / 0.3) + ndtr((-REACH - mean) / 0.3)
            most = max(most, density @ beyond / density.sum())
    assert 1e-6 < most < 2e-5


def test_actions_are_allowed_and_episodes_begin_at_rest():
    task = make_task("ledge")
    theta = task.policies.lattice()
    actions = jax.vmap(task.policies, in_axes=(0, None))(theta, jnp.array([2.5]))
    np.testing.assert_allclose(actions[:, 0], np.tanh(theta[:, 0] + 2.5 * theta[:, 1]), atol=1e-12)
    np.testing.assert_array_equal(task.start(jax.random.key(3)), [0.0])
    (cost,) = task.costs
    assert (task.horizon, cost.aggregation, cost.budget, cost.least(3)) == (3, "sum", 1.6, 0)
    assert task.policies.lattice().shape == (99, 2)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [({"prior": "slopes"}, "did you mean 'slope'"), ({"budget": -0.1}, "no policy can meet budget=-0.1")],
)
def test_mistakes_are_explained(arguments, hint):
    with pytest.raises(UserError, match=hint):
        make_task("ledge", **arguments)
