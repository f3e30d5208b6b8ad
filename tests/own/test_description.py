"""The shape of a system is read off it, what it does not say is asked for, and what cannot be planned is refused."""

import gymnasium
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own.description import Description, describe_system
from sbsrl.own.names import name_of
from sbsrl.own.plain import Pair
from sbsrl.own.settings import OwnSettings
from sbsrl.own.signals import Sources
from sbsrl.own.system import DressedEnv, OwnSystem

spaces = gymnasium.spaces
BOX, PAIR = spaces.Box(-1.0, 2.0, (1,), np.float64), spaces.Box(-1.0, 1.0, (2,))


class Rig(gymnasium.Env):
    def __init__(self, actions=BOX, observations=PAIR, steps=None, names=None):
        self.action_space, self.observation_space = actions, observations
        if steps:
            self.max_episode_steps = steps
        if names:
            self.state_names = names

    def reset(self, **options):
        pytest.fail("nothing is played")


def described(env=None, **settings):
    own = OwnSettings(**settings)
    return describe_system(DressedEnv(env or Rig(steps=9), Sources.of(own)), own, "rig")


def test_sizes_limits_names_and_length_are_read_off_the_system():
    found = described(Rig(steps=9, names=["place", "speed"]))
    assert found == Description(("place", "speed"), (-1.0,), (2.0,), 9, ("action",))
    assert (found.state_size, found.action_size) == (2, 1)


def test_without_names_numbers_do():
    found = described(Rig(spaces.Box(-1, 1, (2, 1)), spaces.Box(-1, 1, (3,)), 5, names=["too", "few"]))
    assert found.state_names == ("x0", "x1", "x2")
    assert found.action_names == ("action0", "action1")


def test_what_the_user_says_comes_first():
    said = {"state_names": ("p", "v"), "action_names": ("u",), "action_low": (-0.5,), "action_high": (0.5,), "steps": 3}
    assert described(**said) == Description(("p", "v"), (-0.5,), (0.5,), 3, ("u",))


def test_observations_of_several_parts_count_all_their_numbers():
    parts = spaces.Dict({"a": spaces.Box(-1, 1, (2, 2)), "b": spaces.Box(-1, 1, (1,))})
    assert described(Rig(observations=parts, steps=4)).state_size == 5


def test_a_registered_environment_and_a_pair_are_described():
    pendulum = OwnSystem("gymnasium:Pendulum-v1", OwnSettings())
    assert describe_system(pendulum.open(), pendulum.settings, "p")[1:4] == ((-2.0,), (2.0,), 200)
    pair = Pair(lambda rng: [0.0], lambda x, a, rng: x, -1.0, 1.0, ("level",))
    own = OwnSystem(name_of(pair, "system"), OwnSettings(steps=6))
    assert describe_system(own.open(), own.settings, "tank") == Description(("level",), (-1.0,), (1.0,), 6, ("action",))


@pytest.mark.parametrize(
    ("env", "settings", "said"),
    [
        (Rig(spaces.Discrete(3), steps=9), {}, r"rig are Discrete\(3\), and this program plans with numbers; wrap"),
        (Rig(spaces.MultiBinary(2), steps=9), {}, "wrap the system so that its action is a Box"),
        (Rig(spaces.Dict({"a": BOX}), steps=9), {}, "make them a Box of one dimension"),
        (
            Rig(spaces.Box(-np.inf, 1.0, (2,)), steps=9),
            {},
            r"action 0 of rig has no limits \(-inf to 1\); give action_low",
        ),
        (Rig(observations=spaces.Graph(BOX, None), steps=9), {}, "cannot be made a vector; wrap"),
        (Rig(), {}, "rig does not say how many steps an episode has; give steps"),
        (None, {"state_names": ("p",)}, "state_names has 1 names, and an observation of rig has 2 numbers"),
        (None, {"action_names": ("u", "w")}, "action_names has 2 names, and rig has 1 actions"),
        (None, {"action_low": (0.0, 0.0)}, "2 limits of actions were given, and rig has 1 numbers per action"),
    ],
)
def test_what_cannot_be_planned_with_is_refused_with_a_remedy(env, settings, said):
    with pytest.raises(UserError, match=said):
        described(env, **settings)


def test_limits_that_the_system_does_not_have_may_be_given():
    env = Rig(spaces.Box(-np.inf, np.inf, (1,)), steps=9)
    assert described(env, action_low=(-3.0,), action_high=(4.0,))[1:3] == ((-3.0,), (4.0,))
