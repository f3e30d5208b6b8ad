"""Where the policy is updated, and what it minimises there, against a plain computation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Beside, domain, make_problem, two_states

from sbsrl.networks import init_network
from sbsrl.solve.actor_critic.choices import ActorCriticChoices
from sbsrl.solve.actor_critic.critics import Judged, inputs, q_values
from sbsrl.solve.actor_critic.improver import ActorCritic
from sbsrl.solve.actor_critic.rollouts import stochastic
from sbsrl.solve.actor_critic.updates import Learned, Round, Sources, _objective, spread
from sbsrl.solve.network.improver import Trained, weights_of
from sbsrl.solve.network.pressures import Pressures
from sbsrl.solve.network.segments import CODE

STEPS, EACH, PRICES = 5, 3, (0.5, 2.0)


def made(robust, batch=12, prices=PRICES):
    """A round on samples with these prices, and an actor-critic at its beginning."""
    where = domain(lambda key: jnp.zeros(1), 8, 1.0, 8)
    chosen = ActorCriticChoices(robust=robust, actor_batch=batch, rollouts=EACH, critic_width=8, trust=0.0)
    improver = ActorCritic(where, chosen)
    samples = Beside(jnp.array(prices, jnp.float32), two_states) if prices else None
    place = jnp.zeros((1, 1), jnp.float32)
    setting = Round(
        where.units, make_problem(two_states(), samples, 1.0, 8), Sources(place, place, place),
        jnp.ones(1, jnp.float32), jnp.ones(3, jnp.float32), improver._sizes, weights_of(chosen, 1.0), 1.0,
    )  # fmt: skip
    memory, network = improver.init(jax.random.key(0)), init_network(jax.random.key(1), (1, 4, 1))
    trained = Trained(network, None, jnp.zeros((len(prices), 1), jnp.float32), jnp.float32(0))
    return setting, Learned(trained, memory.critics, memory.soft)


def rollouts(models):
    """States that say which model they are of, as rollouts have them: steps, then models, then rows of a model."""
    model = np.tile(np.repeat(np.arange(models), EACH), STEPS)
    code = np.eye(models, CODE, dtype=np.float32)[model]
    states = jnp.asarray(model[:, None], jnp.float32)
    return Judged(states, jnp.zeros_like(states), jnp.asarray(code), jnp.zeros((len(model), 3), jnp.float32))


@pytest.mark.parametrize(
    ("robust", "prices", "counts"),
    [(True, PRICES, [4, 4, 4]), (False, PRICES, [3, 3, 6]), (False, (), [12]), (True, (), [12])],
)
def test_all_models_have_as_many_states_or_the_nominal_one_half(robust, prices, counts):
    setting, _ = made(robust, prices=prices)
    chosen = spread(setting, rollouts(len(counts)), jax.random.key(2))
    np.testing.assert_array_equal(chosen.states[:, 0], np.repeat(np.arange(len(counts)), counts))


def test_every_step_of_a_model_can_be_chosen_and_none_of_another():
    setting, _ = made(robust=True, batch=900)
    judged = rollouts(3)._replace(states=jnp.arange(STEPS * 3 * EACH, dtype=jnp.float32)[:, None])
    found = np.asarray(spread(setting, judged, jax.random.key(2)).states[:300, 0], int)
    assert set(found) == {step * 3 * EACH + row for step in range(STEPS) for row in range(EACH)}


def test_a_batch_smaller_than_the_number_of_models_has_one_state_of_each():
    setting, _ = made(robust=True, batch=1)
    assert spread(setting, rollouts(3), jax.random.key(2)).states[:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("robust", [True, False])
def test_critics_that_are_not_asked_would_not_have_counted(robust):
    """All critics at all states, and what the objective needs of them picked by hand. To 1e-5."""
    setting, learned = made(robust)
    chosen = spread(setting, rollouts(3), jax.random.key(2))
    pushed = Pressures(jnp.array([[0.3], [0.7]], jnp.float32), jnp.float32(0.2))
    parameters = (learned.trained.network, learned.soft.log_std)
    anchor, key = init_network(jax.random.key(5), (1, 4, 1)), jax.random.key(4)

    def plain(parameters):
        network, log_std = parameters
        noise = jax.random.normal(key, chosen.shares.shape, jnp.float32)
        drawn = stochastic(network, log_std, setting.units, chosen.states, noise)
        q = q_values(learned.critics.networks, inputs(setting.units, chosen.states, drawn.shares, chosen.code)).mean(
            axis=0
        )
        first, second, nominal = (q[chosen.states[:, 0] == model].mean(axis=0) for model in range(3))
        earned = (first[0] + second[0] + nominal[0]) / 3 if robust else nominal[0]
        soft = (1 - setting.sizes.discount) * jnp.exp(learned.soft.log_temperature) * drawn.log_density.mean()
        here, there = (jnp.tanh(stochastic_mean(net, chosen.states)) for net in (network, anchor))
        held = setting.sizes.anchor * jnp.mean((here - there) ** 2)
        return 0.3 * first[1] + 0.7 * second[1] - earned - 0.2 * nominal[2] + soft + held

    found, _ = _objective(parameters, setting, learned, anchor, pushed, chosen, key)
    np.testing.assert_allclose(found, plain(parameters), rtol=1e-5)
    slopes = jax.grad(lambda p: _objective(p, setting, learned, anchor, pushed, chosen, key)[0])(parameters)
    for mine, other in zip(jax.tree.leaves(slopes), jax.tree.leaves(jax.grad(plain)(parameters)), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


def stochastic_mean(network, x):
    """The policy before it is squashed; states here are their own units."""
    (w1, b1), (w2, b2) = network
    hidden = x @ w1 + b1[None]
    return 0.5 * hidden * (1 + hidden / jnp.sqrt(1 + hidden**2)) @ w2 + b2[None]
