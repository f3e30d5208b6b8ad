"""The race car: its equations, its window, its obstacles, its drivers."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.integrate import solve_ivp

from sbsrl.tasks import make_task
from sbsrl.tasks import race_car as rc

FAST = rc.Car(*(jnp.asarray(v) for v in (1.0, -0.5, 0.4, 1.6, 0.05, 0.3)))
COMMAND = jnp.array([0.5, 0.4])


def independent(car, command, seconds):
    """The same equations by another integrator, to 1e-12."""
    rates = lambda t, y: np.array(rc.derivative(rc.Car(*jnp.asarray(y)), command))  # noqa: E731
    found = solve_ivp(rates, (0, seconds), np.array(car), method="DOP853", rtol=1e-12, atol=1e-12)
    return found.y[:, -1]


REVERSING = FAST._replace(forward=jnp.asarray(-0.4), lateral=jnp.asarray(0.0), yaw_rate=jnp.asarray(0.0))


@pytest.mark.parametrize(("car", "finest"), [(FAST, 32), (REVERSING, 128)], ids=["tyres", "reversing"])
def test_the_error_falls_by_16_when_the_step_halves(car, finest):
    """Reversing, velocities settle in a fiftieth of a second: that takes finer steps to see."""
    step = jax.jit(rc.driven, static_argnums=2)
    truth = independent(car, COMMAND, 0.1)

    def error(count):
        now = car
        for _ in range(count):
            now = step(now, COMMAND, 0.1 / count)
        return np.abs(np.array(now) - truth).max()

    errors = [error(count) for count in (finest // 4, finest // 2, finest)]
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 16, rtol=0.25)


def test_a_control_step_is_a_sixtieth_of_a_second_and_accurate():
    x = window(FAST, COMMAND)
    after = rc.physical(rc.ghost(x, jnp.zeros(2))[rc.NEWEST])
    np.testing.assert_allclose(np.array(after), independent(FAST, COMMAND, 1 / 60), atol=2e-6)


def window(car, pending=(0.0, 0.0)):
    """A window that shows the car as it is now in all frames, with that command to come."""
    x = jnp.concatenate([jnp.tile(rc.observe(car), rc.FRAMES), jnp.zeros(rc.FRAMES * rc.COMMAND)])
    return x.at[rc.PENDING].set(jnp.asarray(pending))


def test_a_frame_and_its_physical_state_say_the_same():
    np.testing.assert_allclose(np.array(rc.physical(rc.observe(FAST))), np.array(FAST), atol=1e-12)


def test_a_command_acts_one_step_late_and_can_be_seen_meanwhile():
    x = window(FAST)
    one, other = (rc.ghost(x, jnp.array(a)) for a in ([1.0, 1.0], [-1.0, -1.0]))
    np.testing.assert_array_equal(one[rc.NEWEST], other[rc.NEWEST])
    np.testing.assert_array_equal(one[rc.PENDING], [1.0, 1.0])
    later = [rc.ghost(y, jnp.zeros(2))[rc.NEWEST] for y in (one, other)]
    assert np.abs(later[0] - later[1]).max() > 0.01


def test_the_window_moves_by_one_frame_and_one_command():
    x = jnp.arange(rc.SIZE, dtype=float)
    y = rc.shift(x, jnp.array([0.3, -0.2]), rc.observe(FAST))
    np.testing.assert_array_equal(y[: 4 * 7], x[7 : 5 * 7])
    np.testing.assert_allclose(y[rc.NEWEST], rc.observe(FAST), atol=1e-6)
    np.testing.assert_array_equal(y[35:43], x[37:45])
    np.testing.assert_array_equal(y[43:], [0.3, -0.2])


def test_actions_beyond_their_limits_are_clipped():
    np.testing.assert_array_equal(rc.ghost(window(FAST), jnp.array([5.0, -5.0]))[rc.PENDING], [1.0, -1.0])


@pytest.mark.parametrize("forward", [0.0999, 0.1, 0.2, 0.3, 0.3001])
def test_both_models_are_blended_without_a_jump(forward):
    rates = [np.array(rc.derivative(FAST._replace(forward=jnp.asarray(forward + d)), COMMAND)) for d in (-1e-7, 1e-7)]
    np.testing.assert_allclose(*rates, atol=1e-3)


def test_a_sticky_obstacle_costs_the_energy_and_slows_the_car():
    inside = FAST._replace(p_x=jnp.asarray(0.55), p_y=jnp.asarray(-0.15), heading=jnp.asarray(0.0))
    x = window(inside)
    assert rc.clearance(x) < 0
    energy = 0.5 * 1.65 * (1.6**2 + 0.05**2)
    np.testing.assert_allclose(rc.costs(x, jnp.zeros(2), x), [energy], rtol=1e-6)
    slowed = rc.ghost(window(inside._replace(forward=1.12, lateral=0.035, yaw_rate=0.21)), jnp.zeros(2))
    np.testing.assert_allclose(rc.sticky(x, jnp.zeros(2))[rc.NEWEST], slowed[rc.NEWEST], atol=1e-12)
    for _ in range(20):
        x = rc.sticky(x, jnp.zeros(2))
    assert np.linalg.norm(x[rc.NEWEST][4:6]) < 0.01
    assert rc.costs(x, jnp.zeros(2), x)[0] < 1e-3


def test_elsewhere_both_kinds_are_the_same():
    x = window(FAST._replace(p_x=jnp.asarray(2.0)), COMMAND)
    np.testing.assert_array_equal(rc.sticky(x, jnp.zeros(2)), rc.ghost(x, jnp.zeros(2)))


def test_a_ghost_costs_in_every_step_and_does_not_slow():
    inside = FAST._replace(p_x=jnp.asarray(0.6), p_y=jnp.asarray(-0.15), heading=jnp.asarray(0.0))
    free = FAST._replace(p_x=jnp.asarray(2.0), p_y=jnp.asarray(-0.15), heading=jnp.asarray(0.0))
    y, elsewhere = (rc.ghost(window(car, COMMAND), jnp.zeros(2))[rc.NEWEST] for car in (inside, free))
    np.testing.assert_allclose(y[2:], elsewhere[2:], atol=1e-12)
    assert rc.costs(window(inside), jnp.zeros(2), window(inside))[0] > 2


def test_the_reward_is_the_way_gained_and_1_at_the_goal_less_the_effort():
    far, near = (window(FAST._replace(p_x=jnp.asarray(x), p_y=jnp.asarray(0.0)), (0.6, 0.8)) for x in (1.0, 0.2))
    np.testing.assert_allclose(rc.reward(far, jnp.zeros(2), near), 0.8 + 1 - 0.01, rtol=1e-6)
    np.testing.assert_allclose(rc.reward(near, jnp.zeros(2), far), -0.8 - 0.01, rtol=1e-6)


def test_smooth_signals_are_the_exact_ones_away_from_the_edges_and_have_slopes_at_them():
    for p_x in (0.4, 0.75, 2.0):
        x = window(FAST._replace(p_x=jnp.asarray(p_x), p_y=jnp.asarray(-0.15)))
        np.testing.assert_allclose(rc.smooth_costs(x, COMMAND, x), rc.costs(x, COMMAND, x), atol=0.02)
    edge = window(FAST._replace(p_x=jnp.asarray(0.5), p_y=jnp.asarray(-0.15)))
    slope = jax.grad(lambda x: rc.smooth_costs(x, COMMAND, x)[0])(edge)
    assert slope[rc.NEWEST][0] > 1


def test_a_reset_fills_the_whole_window():
    x = rc.reset(jax.random.key(3))
    frames = np.array(x[: 5 * 7]).reshape(5, 7)
    np.testing.assert_array_equal(frames, np.tile(frames[:1], (5, 1)))
    np.testing.assert_array_equal(x[35:], 0)
    assert np.hypot(*frames[0, 2:4]) == pytest.approx(1)


@pytest.mark.parametrize("contact", ["sticky", "ghost"])
def test_it_passes_the_checker_and_forgets_the_last_episode(contact):
    task = make_task("race-car", settings=rc.RaceCarSettings(contact=contact))
    env = task.open()
    with pytest.warns(UserWarning, match="infinity"):
        check_env(env.unwrapped, skip_render_check=True)
    first, _ = env.reset(seed=5)
    for _ in range(7):
        env.step(np.array([0.3, 0.9]))
    again, _ = env.reset(seed=5)
    np.testing.assert_array_equal(first, again)


def test_gymnasium_knows_it_by_name():
    env = gymnasium.make("sbsrl.systems:sbsrl/RaceCar-v0")
    assert env.reset(seed=0)[0].shape == (45,)


@pytest.fixture(scope="module")
def recorded():
    """60 episodes of each driver among ghosts: returns and costs."""

    def play(name):
        def episode(key):
            choice, start, hand = jax.random.split(key, 3)
            driver = rc.BEHAVIOURS[name](choice)

            def step(x, key):
                a, _, _ = driver.act(x, (), key)
                y = rc.ghost(x, a)
                return y, (rc.reward(x, a, y), rc.costs(x, a, y)[0])

            _, (rewards, costs) = jax.lax.scan(step, rc.reset(start), jax.random.split(hand, rc.HORIZON))
            return rewards.sum(), costs.sum()

        return [np.array(part) for part in jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), 60))]

    return {name: play(name) for name in rc.BEHAVIOURS}


def test_a_careful_driver_touches_nothing_and_arrives(recorded):
    returns, costs = recorded["careful"]
    assert costs.max() == 0
    assert returns.min() > 20


def test_a_careless_driver_touches_lightly_and_keeps_within_the_budget_on_the_mean(recorded):
    returns, costs = recorded["careless"]
    assert 0.05 < np.mean(costs > 0) < 0.4
    assert costs.mean() < 5
    assert returns.mean() > 20
