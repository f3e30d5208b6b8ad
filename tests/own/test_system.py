"""A user's system is opened from whatever it is given as, and gives vectors, the reward and the costs asked for."""

from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own.names import name_of
from sbsrl.own.plain import PlainEnv
from sbsrl.own.settings import OwnSettings
from sbsrl.own.signals import Sources
from sbsrl.own.system import DressedEnv, OwnSystem, is_own
from sbsrl.systems.faults import Fault

box = gymnasium.spaces.Box


class Rig(gymnasium.Env):
    """Counts its steps, and says what it was sent."""

    def __init__(self, space=None, action=None, step=None):
        self.observation_space = space or box(-9.0, 9.0, (2,), np.float32)
        self.action_space, self.outcome = action or box(-2.0, 2.0, (1,), np.float32), step
        self.sent, self.closed, self.seeds = [], False, []

    def reset(self, *, seed=None, options=None):
        self.seeds.append((seed, options))
        return np.zeros(2, np.float32), {"began": True}

    def step(self, action):
        self.sent.append(action)
        return self.outcome or (np.ones(2, np.float32), 3.0, False, True, {"cost": 0.5, "heat": 7.0})

    def close(self):
        self.closed = True


def reset(rng):
    return np.zeros(2)


def step(x, a, rng):
    return x + a[0], 1.0, 2.0


def system(thing, **settings):
    return OwnSystem(name_of(thing, "system"), OwnSettings(**settings))


def dressed(env, **settings):
    return DressedEnv(env, Sources.of(OwnSettings(**settings)))


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("pendulum", False),
        ("race-car", False),
        ("gymnasium:Pendulum-v1", True),
        ("motor.py", True),
        ("motor:make", True),
    ],
)
def test_a_name_with_a_colon_or_of_a_file_is_a_users(name, own):
    assert is_own(name) == own


@pytest.mark.parametrize("thing", [Rig, partial(Rig), lambda: (reset, step), (reset, step)])
def test_environments_are_opened_from_classes_factories_and_pairs(thing):
    env = system(thing, action_low=(-1.0,), action_high=(1.0,), state_names=("p", "v")).open()
    x, _ = env.reset(seed=1)
    y, *_, info = env.step(np.array([0.5]))
    assert x.shape == y.shape == (2,)
    assert info["cost"].shape == (1,)


def test_a_module_may_have_both_functions():
    module = SimpleNamespace(reset=reset, step=step, low=[-1.0], high=[1.0], states=("p", "v"))
    env = system(module).open()
    assert isinstance(env.unwrapped, PlainEnv)
    assert env.unwrapped.state_names == ("p", "v")


def test_an_environment_that_was_given_is_not_closed_and_one_that_was_made_is():
    given, made = Rig(), []
    system(given).open().close()
    assert not given.closed

    def factory():
        made.append(Rig())
        return made[-1]

    opened = [system(factory).open(), system(factory).open()]
    opened[1].close()
    assert [each.closed for each in made] == [False, True]


def test_registered_environments_are_made_with_as_many_steps_as_were_asked_for():
    for steps, found in ((0, 200), (7, 7)):
        env = OwnSystem("gymnasium:Pendulum-v1", OwnSettings(steps=steps)).open()
        assert env.spec.max_episode_steps == found
        env.close()


def failing():
    raise OSError("no such port")


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        ("gymnasium:Nowhere-v0", r"gymnasium.make\('Nowhere-v0'\) failed: NameNotFound"),
        ("math:pi", "the system math:pi is a float; give an environment of Gymnasium, a function that makes one, or"),
        (failing, "raised OSError: no such port"),
        (lambda: 3, "is a int; give an environment"),
        (lambda: reset, "made a function, which is no environment"),
        ((reset, step), "between which limits its actions lie; give action_low"),
        ("nowhere_at_all:make", "the system nowhere_at_all:make: there is no module"),
    ],
)
def test_what_is_no_system_is_explained(thing, said):
    with pytest.raises(UserError, match=said):
        system(thing).open()


def cost(x, a, y):
    return 0.0


@pytest.mark.parametrize("where", ["spec", "cost", "reward", "simulator", "fallback"])
def test_another_process_finds_a_system_unless_a_part_of_it_has_no_name(where):
    whole = {"spec": "rig:make", "cost": ("rig:cost", "heat=info:heat"), "reward": "rig:reward"}
    found = lambda spec, **settings: OwnSystem(spec, OwnSettings(**settings)).found_again  # noqa: E731
    assert found(**whole)
    local = name_of(lambda: None, where)
    assert not found(**{**whole, where: (f"it={local}",) if where == "cost" else local})


def test_observations_are_vectors_of_double_precision_and_the_seed_is_passed_on():
    rig = Rig()
    env = dressed(rig)
    x, info = env.reset(seed=5)
    env.reset(seed=6, options={"far": 1})
    assert (x.dtype, x.shape, info) == (np.float64, (2,), {"began": True})
    assert rig.seeds == [(5, None), (6, {"far": 1})]
    y, reward, terminated, truncated, info = env.step(np.array([1.0]))
    assert (y.dtype, y.tolist(), reward, terminated, truncated) == (np.float64, [1.0, 1.0], 3.0, False, True)
    assert info == {"cost": np.array([0.5]), "heat": 7.0}


def test_an_observation_that_the_system_goes_on_using_is_a_copy():
    class Reusing(Rig):
        x = np.zeros(2)

        def reset(self, **options):
            self.x[:] = 0.0
            return self.x, {}

        def step(self, action):
            self.x += 1.0
            return self.x, 0.0, False, False, {}

    env = dressed(Reusing(), cost=(name_of(lambda x, a, y: y[0] - x[0], "cost"),))
    first, _ = env.reset()
    after, *_, info = env.step(np.zeros(1))
    assert (first.tolist(), after.tolist(), info["cost"].tolist()) == ([0.0, 0.0], [1.0, 1.0], [1.0])


def test_mappings_and_tuples_become_one_vector_in_the_order_of_gymnasium():
    parts = gymnasium.spaces.Dict(
        {"b": box(-1, 1, (2,)), "a": gymnasium.spaces.Tuple([box(-1, 1, (1,)), box(-1, 1, (1,))])}
    )
    rig = Rig(parts)
    rig.reset = lambda **_: ({"b": np.array([3.0, 4.0]), "a": (np.array([1.0]), np.array([2.0]))}, {})
    assert dressed(rig).reset()[0].tolist() == [1.0, 2.0, 3.0, 4.0]
    image = Rig()
    image.reset = lambda **_: (np.arange(4).reshape(2, 2), {})
    assert dressed(image).reset()[0].tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("space", "given", "sent"),
    [
        (box(-2.0, 2.0, (1,), np.float32), [2.0 + 1e-7], np.array([2.0], np.float32)),
        (box(-2.0, 2.0, (2, 1), np.float64), [0.5, -5.0], np.array([[0.5], [-2.0]])),
        (box(-2.0, 2.0, (), np.float64), [1.5], np.array(1.5)),
    ],
)
def test_actions_are_sent_within_the_limits_in_the_shape_and_type_of_the_system(space, given, sent):
    rig = Rig(action=space)
    seen = []
    env = dressed(rig, cost=(name_of(lambda x, a, y: seen.append(a) or 0.0, "cost"),))
    assert env.action_space.shape == (sent.size,)
    env.reset()
    env.step(np.array(given))
    assert (np.shape(rig.sent[0]), rig.sent[0].dtype) == (sent.shape, sent.dtype)
    np.testing.assert_array_equal(rig.sent[0], sent)
    np.testing.assert_array_equal(seen[0], sent.reshape(-1))  # functions see what was sent, as a vector


def test_the_six_values_of_safety_gymnasium_are_read():
    env = dressed(Rig(step=(np.ones(2), 1.0, 4.0, False, False, {"heat": 2.0})), cost=("info", "info:heat"))
    env.reset()
    *step, info = env.step(np.zeros(1))
    assert step[1:] == [1.0, False, False]
    assert info["cost"].tolist() == [4.0, 2.0]


@pytest.mark.parametrize("outcome", [7, (1, 2, 3), [np.zeros(2), 0.0, False, False, {}]])
def test_what_is_no_step_is_passed_on_for_others_to_refuse(outcome):
    env = dressed(Rig(step=outcome))
    env.reset()
    assert env.step(np.zeros(1)) is outcome
    rig = Rig()
    rig.reset = lambda **_: outcome
    assert dressed(rig).reset() is outcome


def test_an_info_that_is_none_has_no_cost():
    env = dressed(Rig(step=(np.ones(2), 1.0, False, False, None)))
    env.reset()
    with pytest.raises(Fault, match=r"no 'cost' \(it has nothing\)"):
        env.step(np.zeros(1))


def test_an_observation_that_is_no_numbers_is_a_fault():
    rig = Rig()
    rig.reset = lambda **_: ("warm", {})
    with pytest.raises(Fault, match="the observation cannot be read as numbers: ValueError"):
        dressed(rig).reset()


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(gymnasium.error.ResetNeeded):
        dressed(Rig()).step(np.zeros(1))


class Drawn(Rig):
    """Draws itself, if it is told to."""

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        return np.full((4, 6, 3), len(self.sent), np.uint8)


@pytest.mark.parametrize("thing", [Drawn, partial(Drawn, "rgb_array"), Drawn("rgb_array")])
def test_a_system_that_draws_itself_is_passed_through(thing):
    """A class, a factory that knows the mode already, and an environment that was made with it."""
    env = system(thing).open(render_mode="rgb_array")
    env.reset(seed=1)
    env.step(np.zeros(1))
    np.testing.assert_array_equal(env.render(), np.full((4, 6, 3), 1))


def test_one_of_gymnasium_is_made_with_the_mode():
    env = OwnSystem("gymnasium:InvertedPendulum-v5", OwnSettings()).open(render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().std() > 1
    env.close()


@pytest.mark.parametrize("thing", [Rig, partial(Drawn, None), SimpleNamespace(reset=reset, step=step)])
def test_one_that_does_not_is_refused_and_closed(thing):
    limits = {"action_low": (-1.0,), "action_high": (1.0,), "state_names": ("p", "v")}
    with pytest.raises(UserError, match="cannot be drawn: it takes no render_mode='rgb_array'"):
        system(thing, **limits).open(render_mode="rgb_array")


def test_without_a_mode_nothing_is_told_of_one():
    assert system(Drawn).open().render_mode is None
