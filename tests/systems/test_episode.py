"""Episodes on environments made by hand, which record all that they are sent. Results agree exactly."""

import threading
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.systems import faults
from sbsrl.systems.episode import Guard, Interrupted, ResetFault, run_episode

LONG, SHORT = 30.0, 0.1
SAFE = (-0.25,)
GUARD = Guard(2, 1, 0.0, SAFE, ("place", "speed"))


def unspoiled(n, outcome):
    return outcome


class Line(gymnasium.Env):
    """x = (place, number of steps); an action moves the place; `spoil(n, outcome)` is what step n returns."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))

    def __init__(self, spoil=unspoiled, costs=1, first=(1.0, 0.0)):
        self.spoil, self.costs, self.first = spoil, costs, first
        self.calls: list[tuple[str, Any]] = []

    def reset(self, *, seed=None, options=None):
        self.calls.append(("reset", seed))
        self.x, self.n = np.array(self.first), 0
        return self.x, {}

    def step(self, action):
        self.calls.append(("step", tuple(action.tolist())))
        self.n += 1
        self.x += (action[0], 1.0)  # in place: the same array at every step, as some environments do
        action[:] = np.nan
        cost = 10.0 * self.n if self.costs == 1 else 10.0 * self.n + np.arange(self.costs)
        return self.spoil(self.n, (self.x, np.float32(-self.n), False, False, {"cost": cost}))


class Push:
    """Actions 0.1, 0.2, ...; `spoil(n, action)` is the n-th. It records what it was asked."""

    def __init__(self, spoil=unspoiled):
        self.spoil = spoil
        self.asked: list[tuple[Any, Any]] = []

    def init(self):
        return 0

    def act(self, x, state, key):
        self.asked.append((x, key))
        n = state + 1
        action = self.spoil(n, jnp.asarray([0.1 * n], jnp.float32))
        return action, n, {"n": n, "half": jnp.asarray(n / 2), **({"rare": True} if n == 2 else {})}


def run(env, policy=None, horizon=8, guard=GUARD, **options):
    return run_episode(env, policy or Push(), 42, jax.random.key(1), horizon, guard=guard, **options)


def sent(env):
    return [action for kind, action in env.calls if kind == "step"]


def pushes(n):
    return [(float(np.float32(0.1 * i)),) for i in range(1, n + 1)]


def at(when, change):
    """Changes the outcome of step `when`."""
    return lambda n, outcome: change(*outcome) if n == when else outcome


def test_an_episode_is_one_reset_with_the_seed_and_then_steps():
    env, ticks = Line(), []
    episode, _ = run(env, on_step=lambda: ticks.append(len(env.calls)))
    assert env.calls == [("reset", 42), *(("step", action) for action in pushes(8))]
    assert ticks == [2, 3, 4, 5, 6, 7, 8, 9]
    assert (episode.ended, episode.reason) == ("horizon", "")
    np.testing.assert_array_equal(episode.actions, pushes(8))
    np.testing.assert_array_equal(episode.states[:, 0], np.cumsum([1.0, *(a for (a,) in pushes(8))]))
    np.testing.assert_array_equal(episode.states[:, 1], np.arange(9))
    np.testing.assert_array_equal(episode.rewards, -np.arange(1.0, 9.0))
    np.testing.assert_array_equal(episode.costs, 10.0 * np.arange(1.0, 9.0)[:, None])
    assert {part.dtype for part in episode[:4]} == {np.dtype(np.float64)}


def test_the_policy_sees_states_in_double_precision_and_the_keys_of_earlier_versions():
    policy = Push()
    episode, _ = run(Line(), policy)
    for t, (x, key) in enumerate(policy.asked):
        assert x.dtype == jnp.float64
        np.testing.assert_array_equal(x, episode.states[t])
        assert key == jax.random.split(jax.random.fold_in(jax.random.key(1), t))[0]


def test_metrics_are_numbers_by_name_one_per_step():
    _, metrics = run(Line(), horizon=3)
    assert metrics == {"n": [1.0, 2.0, 3.0], "half": [0.5, 1.0, 1.5], "rare": [1.0]}
    assert all(type(value) is float for column in metrics.values() for value in column)


@pytest.mark.parametrize("k", [2, 3])
def test_several_costs(k):
    episode, _ = run(Line(costs=k), guard=GUARD._replace(costs=k))
    np.testing.assert_array_equal(episode.costs, 10.0 * np.arange(1.0, 9.0)[:, None] + np.arange(k))


@pytest.mark.parametrize(
    ("when", "flags", "ended"),
    [
        (3, (True, False), "terminated"),
        (3, (True, True), "terminated"),
        (3, (False, True), "truncated"),
        (8, (True, False), "terminated"),
        (8, (False, True), "horizon"),
    ],
)
@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_episodes_may_end_early(when, flags, ended, kind):
    env = Line(at(when, lambda x, r, _, __, info: (x, r, kind(flags[0]), kind(flags[1]), info)))
    episode, metrics = run(env)
    assert (episode.ended, episode.reason) == (ended, "")
    assert sent(env) == pushes(when)  # and no safe action: nothing is wrong
    assert len(episode.actions) == len(metrics["n"]) == when
    assert episode.transitions.terminated.tolist() == [False] * (when - 1) + [ended == "terminated"]


class Case(NamedTuple):
    spoil: Any
    reason: str


def raising(*_):
    raise ValueError("the cable is loose\nand more")


SYSTEM_FAULTS = {
    "nan": Case(
        lambda x, r, e, u, i: (np.array([0.0, np.nan]), r, e, u, i),
        "the observation at step 5 is not finite: 'speed' is nan",
    ),
    "all nan": Case(
        lambda x, r, e, u, i: (np.array([-np.inf, np.nan]), r, e, u, i),
        "the observation at step 5 is not finite: 'place' is -inf, 'speed' is nan",
    ),
    "grows": Case(
        lambda x, r, e, u, i: (np.zeros(3), r, e, u, i), "the observation at step 5 has shape (3,), not (2,)"
    ),
    "words": Case(
        lambda x, r, e, u, i: ({"place": 1.0}, r, e, u, i),
        "the observation at step 5 is not made of numbers: it is of type dict",
    ),
    "reward": Case(lambda x, r, e, u, i: (x, np.nan, e, u, i), "the reward of step 5 is not finite: entry 0 is nan"),
    "rewards": Case(lambda x, r, e, u, i: (x, np.zeros(2), e, u, i), "the reward of step 5 is 2 numbers, not one"),
    "no cost": Case(lambda x, r, e, u, i: (x, r, e, u, {}), "the info of step 5 has no 'cost'"),
    "no info": Case(lambda x, r, e, u, i: (x, r, e, u, None), "the info of step 5 has no 'cost'"),
    "inf cost": Case(
        lambda x, r, e, u, i: (x, r, e, u, {"cost": np.inf}), "the cost of step 5 is not finite: entry 0 is inf"
    ),
    "costs": Case(
        lambda x, r, e, u, i: (x, r, e, u, {"cost": np.zeros(2)}), "step 5 has costs of shape (2,), not (1,)"
    ),
    "old": Case(
        lambda x, r, e, u, i: (x, r, e, i), "step 5 did not return observation, reward, terminated, truncated and info"
    ),
    "raises": Case(raising, "step 5 raised ValueError: the cable is loose"),
    "terminated": Case(lambda x, r, e, u, i: (x * np.nan, r, True, u, i), "the observation at step 5 is not finite"),
}


@pytest.mark.parametrize("timeout", [0.0, LONG])
@pytest.mark.parametrize("name", SYSTEM_FAULTS)
def test_a_fault_of_the_system_ends_the_episode_with_the_safe_action(name, timeout):
    case = SYSTEM_FAULTS[name]
    env = Line(at(5, case.spoil))
    episode, metrics = run(env, guard=GUARD._replace(step_timeout=timeout))
    assert episode.ended == "fault"
    assert episode.reason.startswith(case.reason)
    assert episode.reason.endswith("; the safe action was sent")
    assert sent(env) == [*pushes(5), SAFE]
    assert [kind for kind, _ in env.calls].count("reset") == 1
    np.testing.assert_array_equal(episode.actions, pushes(4))
    assert episode.states.shape == (5, 2)
    assert np.isfinite(episode.states).all()
    assert len(metrics["n"]) == 4


POLICY_FAULTS = {
    "nan": Case(
        lambda a: jnp.full(1, jnp.nan), "the policy's action for step 5 is not finite: entry 0 is nan; it was not sent"
    ),
    "size": Case(lambda a: jnp.zeros(2), "the policy's action for step 5 has shape (2,), not (1,); it was not sent"),
    "scalar": Case(lambda a: a[0], "the policy's action for step 5 has shape (), not (1,); it was not sent"),
    "none": Case(lambda a: "left", "the policy's action for step 5 is not made of numbers: it is of type str"),
    "raises": Case(raising, "the policy raised ValueError: the cable is loose, asked for the action of step 5"),
}


@pytest.mark.parametrize("name", POLICY_FAULTS)
def test_a_fault_of_the_policy_lets_nothing_pass_but_the_safe_action(name):
    case, env = POLICY_FAULTS[name], Line()
    episode, metrics = run(env, Push(lambda n, action: case.spoil(action) if n == 5 else action))
    assert (episode.ended, episode.reason) == ("fault", f"{case.reason}; the safe action was sent")
    assert sent(env) == [*pushes(4), SAFE]
    assert len(episode.actions) == len(metrics["n"]) == 4


def test_metrics_that_are_no_scalars_are_a_fault_of_the_policy():
    class Chatty(Push):
        def act(self, x, state, key):
            action, state, metrics = super().act(x, state, key)
            return action, state, {**metrics, "plan": jnp.zeros(3)}

    env = Line()
    episode, metrics = run(env, Chatty())
    assert episode.reason == "the policy's metric 'plan' for step 1 is not a scalar; the safe action was sent"
    assert (sent(env), metrics) == ([SAFE], {})


def test_a_fault_in_the_first_step_leaves_an_episode_of_no_steps():
    episode, metrics = run(Line(at(1, raising), costs=3), guard=GUARD._replace(costs=3))
    assert [part.shape for part in episode[:4]] == [(1, 2), (0, 1), (0,), (0, 3)]
    assert (episode.ended, metrics) == ("fault", {})
    assert len(episode.transitions.states) == 0


def test_without_a_safe_action_nothing_is_sent():
    env = Line(at(5, raising))
    episode, _ = run(env, guard=GUARD._replace(safe_action=None))
    assert episode.reason.endswith("no safe action is known, and none was sent")
    assert sent(env) == pushes(5)


class Brake:
    """A fallback policy: minus the place, or whatever `spoil` makes of it."""

    def __init__(self, spoil=lambda action: action):
        self.spoil = spoil

    def init(self):
        return ()

    def act(self, x, state, key):
        return self.spoil(-x[:1]), state, {}


def test_without_a_safe_action_the_fallback_policy_is_asked_at_the_last_good_observation():
    """After four pushes from 1 the place is 2, which step 5 does not tell any more."""
    env = Line(at(5, raising))
    episode, _ = run(env, guard=GUARD._replace(safe_action=None, fallback=Brake()))
    assert episode.reason.endswith("the safe action was sent")
    np.testing.assert_allclose(sent(env), [*pushes(5), (-2.0,)], rtol=1e-6)


def test_a_known_safe_action_comes_before_the_fallback_policy():
    env = Line(at(5, raising))
    run(env, guard=GUARD._replace(fallback=Brake()))
    assert sent(env) == [*pushes(5), SAFE]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda a: raising(), "the fallback policy raised ValueError: the cable is loose, and no safe action was sent"),
        (lambda a: a * jnp.nan, "the fallback policy's action is not finite: entry 0 is nan; it was not sent"),
        (lambda a: a + 50, "the fallback policy's action is 48, not between -1 and 1; it was not sent"),
        (lambda a: jnp.zeros(2), "the fallback policy's action has shape (2,), not (1,); it was not sent"),
    ],
)
def test_a_fallback_policy_that_fails_sends_nothing(spoil, told):
    env = Line(at(5, raising))
    limited = GUARD._replace(safe_action=None, fallback=Brake(spoil), action_limits=((-1.0, 1.0),))
    episode, _ = run(env, guard=limited)
    assert episode.reason.endswith(told)
    assert sent(env) == pushes(5)


def test_a_safe_action_that_fails_is_told_and_not_repeated():
    env = Line(lambda n, outcome: raising() if n >= 5 else outcome)
    episode, _ = run(env)
    assert episode.reason == (
        "step 5 raised ValueError: the cable is loose; sending the safe action raised ValueError: the cable is loose"
    )
    assert sent(env) == [*pushes(5), SAFE]


@pytest.fixture
def stuck():
    """Does not return before the test ends."""
    released = threading.Event()
    yield lambda *_: released.wait(LONG)
    released.set()


def test_a_step_that_hangs(stuck):
    env = Line(at(7, stuck))
    guard = GUARD._replace(step_timeout=SHORT)
    episode, _ = run(env, guard=guard)
    assert episode.ended == "fault"
    assert episode.reason == (
        "step 7 did not return within 0.1 s; no safe action could be sent, since the system does not answer"
    )
    assert sent(env) == pushes(7)
    assert len(episode.actions) == 6


class Machine(Line):
    halted = 0

    def halt(self):
        self.halted += 1


def test_a_system_that_hangs_is_halted_if_it_can_be(stuck):
    env = Machine(at(2, stuck))
    episode, _ = run(gymnasium.Wrapper(env), guard=GUARD._replace(step_timeout=SHORT))
    assert episode.reason == "step 2 did not return within 0.1 s; the system was halted"
    assert (env.halted, sent(env)) == (1, pushes(2))


def test_a_halt_that_fails_is_told(stuck):
    env = Machine(at(2, stuck))
    env.halt = raising
    episode, _ = run(env, guard=GUARD._replace(step_timeout=SHORT))
    assert episode.reason.endswith("; halt() raised ValueError: the cable is loose")


def test_a_safe_action_that_hangs(stuck):
    env = Line(lambda n, outcome: raising() if n == 5 else (stuck() if n == 6 else outcome))
    episode, _ = run(env, guard=GUARD._replace(step_timeout=SHORT))
    assert episode.reason == (
        "step 5 raised ValueError: the cable is loose; the safe action did not return within 0.1 s, and "
        "no safe action could be sent, since the system does not answer"
    )


class Broken(Line):
    def __init__(self, returned):
        super().__init__()
        self.returned = returned

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.returned() if callable(self.returned) else self.returned


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (raising, "the reset raised ValueError: the cable is loose"),
        ((np.array([np.nan, 0.0]), {}), "the observation after the reset is not finite: 'place' is nan"),
        ((np.zeros(1), {}), r"the observation after the reset has shape \(1,\), not \(2,\)"),
        (np.zeros(2), "the reset did not return observation and info"),
    ],
)
def test_a_reset_that_fails_begins_no_episode(returned, reason):
    env, policy = Broken(returned), Push()
    with pytest.raises(ResetFault, match=f"^{reason}; the safe action was sent$"):
        run(env, policy)
    assert env.calls == [("reset", 42), ("step", SAFE)]
    assert policy.asked == []


def test_a_reset_that_hangs(stuck):
    env = Broken(stuck)
    with pytest.raises(ResetFault, match=r"^the reset did not return within 0.1 s; no safe action could be sent"):
        run(env, guard=GUARD._replace(step_timeout=SHORT))
    assert env.calls == [("reset", 42)]


def test_a_policy_that_cannot_begin_leaves_the_system_alone():
    class Unable(Push):
        def init(self):
            raise LookupError("no weights")

    env = Line()
    with pytest.raises(ResetFault, match=r"^the policy raised LookupError: no weights before the episode began$"):
        run(env, Unable())
    assert env.calls == []


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("spoil", "decide", "steps"),
    [(at(4, interrupt), unspoiled, 4), (unspoiled, lambda n, action: interrupt() if n == 4 else action, 3)],
    ids=["in a step", "in the policy"],
)
def test_an_interrupted_episode_is_kept(spoil, decide, steps):
    env = Line(spoil)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(env, Push(decide))
    assert isinstance(caught.value, Interrupted)
    episode, metrics = caught.value.played
    assert (episode.ended, episode.reason) == ("interrupted", "the user stopped it; the safe action was sent")
    assert sent(env) == [*pushes(steps), SAFE]
    assert len(episode.actions) == len(metrics["n"]) == 3


def test_ctrl_c_while_a_step_is_waited_for_keeps_that_step_and_sends_the_safe_action_after_it(press_ctrl_c):
    pressed = threading.Event()

    def press(*outcome):
        press_ctrl_c()
        pressed.wait(SHORT)  # so that the signal finds the main thread waiting
        return outcome

    env = Line(at(4, press))
    with pytest.raises(Interrupted) as caught:
        run(env, guard=GUARD._replace(step_timeout=LONG))
    assert sent(env) == [*pushes(4), SAFE]
    np.testing.assert_array_equal(caught.value.played.episode.actions, pushes(4))
    assert caught.value.played.metrics["n"] == [1.0, 2.0, 3.0, 4.0]


def test_ctrl_c_while_a_step_hangs(press_ctrl_c, stuck):
    env = Machine(at(4, lambda *_: (press_ctrl_c(), stuck())))
    with pytest.raises(Interrupted) as caught:
        run(env, guard=GUARD._replace(step_timeout=1.0))
    assert caught.value.played.episode.reason == (
        "the user stopped it; the safe action did not return within 1 s, and the system was halted"
    )
    assert (env.halted, sent(env)) == (1, pushes(4))


def test_a_user_who_stops_a_system_that_hangs_does_not_wait_for_its_timeout(press_ctrl_c, stuck, monkeypatch):
    monkeypatch.setattr(faults, "HURRY", 2 * SHORT)
    env = Machine(at(4, lambda *_: (press_ctrl_c(), stuck())))
    with pytest.raises(Interrupted) as caught:
        run(env, guard=GUARD._replace(step_timeout=LONG))
    assert "did not return within 0.2 s, and the system was halted" in caught.value.played.episode.reason
    assert len(caught.value.played.episode.actions) == 3


class Thrifty(Push):
    """Pushes until it was charged 25, then does nothing: a filter that needs to know what was really charged."""

    def init(self):
        return 0, 0.0

    def act(self, x, state, key):
        n, charged = state
        action = jnp.zeros(1) if charged > 25 else jnp.asarray([0.1 * (n + 1)], jnp.float32)
        return action, (n + 1, charged), {"charged": charged}

    def observe(self, state, reward, costs):
        assert reward == -state[0]
        return state[0], state[1] + float(costs[0])


def test_a_policy_that_observes_is_told_what_each_step_earned_and_cost():
    env = Line()
    played = run(env, Thrifty(), horizon=4)
    assert played.metrics["charged"] == [0.0, 10.0, 30.0, 60.0]
    assert sent(env) == [*pushes(2), (0.0,), (0.0,)]


def test_an_error_of_a_policy_that_observes_is_a_fault():
    policy = Thrifty()
    policy.observe = raising
    episode = run(Line(), policy).episode
    assert episode.reason.startswith("the policy raised ValueError: the cable is loose, told of the outcome of a step")
    assert len(episode.actions) == 1


def test_ctrl_c_twice():
    env = Line(lambda n, outcome: interrupt() if n >= 4 else outcome)
    with pytest.raises(Interrupted) as caught:
        run(env)
    assert "whether the safe action arrived is not known" in caught.value.played.episode.reason
    assert len(caught.value.played.episode.actions) == 3


def test_ctrl_c_during_the_safe_action_of_a_fault_is_not_swallowed():
    env = Line(lambda n, outcome: raising() if n == 4 else interrupt() if n == 5 else outcome)
    with pytest.raises(Interrupted) as caught:
        run(env)
    assert caught.value.played.episode.ended == "interrupted"
    assert sent(env) == [*pushes(4), SAFE, SAFE]


def test_ctrl_c_during_the_reset_leaves_nothing_to_keep():
    env = Broken(interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(env)
    assert not isinstance(caught.value, Interrupted)
    assert env.calls == [("reset", 42), ("step", SAFE)]


def test_an_error_of_the_caller_stops_the_system_too():
    env = Line()
    with pytest.raises(ZeroDivisionError):
        run(env, on_step=lambda: 1 / (3 - env.n))
    assert sent(env) == [*pushes(3), SAFE]
