"""Offline data: kept as they were, refused where they do not fit, and made by the system that is learned.

The system of these tests is a point mass on a line, behind Gymnasium, that writes down how it is used.
"""

import pickle
from dataclasses import replace
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slider

import sbsrl
from sbsrl.behaviours import BEHAVIOURS, CutShort
from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.model import Signals
from sbsrl.offline import MOST_TRANSITIONS, OfflineData, collect, find_data, is_recipe
from sbsrl.prior import Prior
from sbsrl.task import Equations, Task
from sbsrl.transitions import Transitions, split_episodes

FLOATS = [name for name in Transitions._fields if name != "terminated"]


def dynamics(x, a):
    """Position and speed."""
    v = x[1] + 0.5 * a[0]
    return jnp.stack([x[0] + 0.2 * v, v])


def reward(x, a, y):
    return -(y[0] ** 2) - 0.1 * a[0] ** 2


def costs(x, a, y):
    return jnp.abs(y[1])[None]


def anywhere(key):
    return jax.random.uniform(key, (2,), jnp.float64, -5.0, 5.0)


class PointMass(gymnasium.Env):
    """Starts at a random place. Ends as it is told to; what `reports` are given replaces what it would report."""

    def __init__(self, ends=lambda t: (False, False), reports=lambda t: {}, charge=lambda x, a, y: abs(y[1])):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.ends, self.reports, self.charge = ends, reports, charge
        self.seeds, self.sent, self.closed = [], [], False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.x, self.t = np.array([self.np_random.uniform(-0.1, 0.1), 0.0]), 0
        return self.x, {}

    def step(self, action):
        x, v = self.x.copy(), self.x[1] + 0.5 * action[0]
        self.sent.append(action.copy())
        self.x[:] = x[0] + 0.2 * v, v  # the array that was returned before: who keeps it must copy it
        self.t += 1
        said = {"state": self.x, "reward": -(self.x[0] ** 2) - 0.1 * action[0] ** 2}
        said |= {"info": {"cost": self.charge(x, action, self.x)}} | self.reports(self.t)
        return said["state"], said["reward"], *self.ends(self.t), said["info"]

    def close(self):
        self.closed = True


def point_mass(**changes):
    """The task. Its speed must stay below 3 at every step."""
    signals = Signals(reward, costs)
    parts = {
        "name": "point",
        "state_names": ("p", "v"),
        "action_low": (-1.0,),
        "action_high": (1.0,),
        "horizon": 20,
        "costs": (Cost("speed", 3.0, "statewise"),),
        "start": lambda key: jnp.zeros(2),
        "open": PointMass,
        "prior": Prior("none", informative=False),
        "signals": signals,
        "equations": Equations(
            lambda key: jnp.zeros(2), lambda x, a, key: dynamics(x, a), dynamics, signals, (0.0, 0.0)
        ),
        "sample_state": anywhere,
    }
    return Task(**{**parts, **changes})


@pytest.fixture(scope="module")
def task():
    return point_mass()


@pytest.fixture(scope="module")
def wandered(task):
    """Full of strength, so that episodes do end at a third of the budget."""
    return collect(task, "wander", 80, seed=3, strength=1.0)


@pytest.fixture
def watched():
    """A task and its system, which is opened once."""

    def watch(count=30, strength=1.0, task=None, **options):
        env = PointMass(**options)
        task = replace(task or point_mass(), open=lambda: env)
        return env, collect(task, "wander", count, strength=strength).transitions

    return watch


def with_part(data, name, value):
    return data._replace(transitions=data.transitions._replace(**{name: value}))


def unrecorded(data):
    """As an older version would have made them."""
    return data._replace(
        transitions=Transitions(*data.transitions[:3], np.zeros(0), np.zeros((0, 0)), np.zeros(0, bool))
    )


def same(one, other):
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one.transitions, other.transitions, strict=True)
    )


def test_what_is_saved_comes_back_as_it_was(wandered, tmp_path):
    wandered.save(tmp_path / "in" / "a" / "new" / "folder.npz")
    back = OfflineData.load(str(tmp_path / "in" / "a" / "new" / "folder.npz"))
    assert back[:3] == ("point", "wander", 3)
    assert back.recorded
    assert same(back, wandered)


def test_a_place_that_cannot_be_written_to_is_explained(wandered, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot use"):
        wandered.save(tmp_path / "file" / "data.npz")


@pytest.mark.parametrize("content", [b"", b"states,actions\n", b"\x80\x04N."])
def test_what_is_no_archive_is_refused(tmp_path, content):
    """Nothing, text, and a pickle."""
    (tmp_path / "junk.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"junk.npz cannot be read as offline data .* make it with 'sbsrl collect'"):
        OfflineData.load(tmp_path / "junk.npz")


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing.npz"):
        with pytest.raises(UserError, match="cannot be read as offline data"):
            OfflineData.load(path)


def test_arrays_without_labels_are_refused(wandered, tmp_path):
    np.savez(tmp_path / "bare.npz", **wandered.transitions._asdict())
    with pytest.raises(UserError, match="is no offline data set: it has no behaviour, seed, task; make it with"):
        OfflineData.load(tmp_path / "bare.npz")


@pytest.mark.parametrize("name", Transitions._fields)
def test_files_without_one_of_the_arrays_are_refused(wandered, tmp_path, name):
    """Also one of the three that may be missing together: then something was lost."""
    arrays = wandered.transitions._asdict()
    del arrays[name]
    np.savez(tmp_path / "some.npz", task="point", behaviour="wander", seed=0, **arrays)
    with pytest.raises(UserError, match=rf"is no offline data set: it has no {name}; make it with"):
        OfflineData.load(tmp_path / "some.npz")


@pytest.mark.parametrize("name", ["states", "actions", "rewards", "task"])
def test_pickled_objects_are_not_opened(wandered, tmp_path, name):
    labels = {"task": "point", "behaviour": "wander", "seed": 0}
    objects = {name: np.array([{"any": "object"}], dtype=object)}
    np.savez(tmp_path / "data.npz", **{**labels, **wandered.transitions._asdict(), **objects})
    with pytest.raises(UserError, match=r"cannot be read as offline data .* but object"):
        OfflineData.load(tmp_path / "data.npz")


def test_files_that_are_broken_are_refused(wandered, tmp_path):
    """A plain array, half of an archive, and labels of the wrong kind."""
    np.save(tmp_path / "array.npy", np.zeros(3))
    wandered.save(tmp_path / "half.npz")
    whole = (tmp_path / "half.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    arrays = wandered.transitions._asdict()
    np.savez(tmp_path / "seed.npz", task="point", behaviour="wander", seed="none", **arrays)
    np.savez(tmp_path / "task.npz", task=1.0, behaviour="wander", seed=0, **arrays)
    np.savez(tmp_path / "seeds.npz", task="point", behaviour="wander", seed=[0, 1], **arrays)
    for name in ("array.npy", "half.npz", "seed.npz", "task.npz", "seeds.npz"):
        with pytest.raises(UserError, match="make it with 'sbsrl collect'"):
            OfflineData.load(tmp_path / name)


def test_data_that_fit_are_let_through(task, wandered):
    assert wandered.check(task) is wandered


def test_data_of_another_task_are_refused(wandered):
    with pytest.raises(UserError, match="these offline data come from point, and the task is line"):
        wandered.check(point_mass(name="line"))


@pytest.mark.parametrize("name", Transitions._fields)
@pytest.mark.parametrize("shape", [(80, 3), (79, 1), (79, 2), (79,), (80, 1, 1), (0, 1), ()])
def test_data_of_another_shape_are_refused(task, wandered, name, shape):
    dtype = getattr(wandered.transitions, name).dtype
    with pytest.raises(UserError, match=r"of these offline data have shape .*; point wants"):
        with_part(wandered, name, np.zeros(shape, dtype)).check(task)


@pytest.mark.parametrize("name", FLOATS)
def test_what_is_not_all_finite_numbers_is_refused(task, wandered, name):
    part = getattr(wandered.transitions, name)
    broken = part.copy()
    broken[7] = np.nan
    for bad in (broken, np.where(np.isnan(broken), np.inf, broken)):
        with pytest.raises(UserError, match=f"the {name} of these offline data are not all finite numbers"):
            with_part(wandered, name, bad).check(task)
    for bad in (part.astype(int), part.astype(str), part.astype(bool)):
        with pytest.raises(UserError, match=f"the {name} of these offline data are {bad.dtype}; save them as float64"):
            with_part(wandered, name, bad).check(task)


@pytest.mark.parametrize("dtype", [int, float, str])
def test_whether_it_terminated_is_a_truth_value(task, wandered, dtype):
    bad = wandered.transitions.terminated.astype(dtype)
    with pytest.raises(UserError, match=f"the terminated of these offline data are {bad.dtype}; save them as bool"):
        with_part(wandered, "terminated", bad).check(task)


def test_data_in_single_precision_are_data(task, wandered):
    single = wandered._replace(
        transitions=Transitions(
            *(part.astype(np.float32) for part in wandered.transitions[:5]), wandered.transitions.terminated
        )
    )
    assert single.check(task) is single


def test_data_without_a_single_transition_are_refused(task):
    for outcomes in ((np.zeros(0), np.zeros((0, 1)), np.zeros(0, bool)), (np.zeros(0), np.zeros((0, 0)), np.zeros(0))):
        nothing = Transitions(np.zeros((0, 2)), np.zeros((0, 1)), np.zeros((0, 2)), *outcomes)
        with pytest.raises(UserError, match="hold no transitions"):
            OfflineData("point", "wander", 0, nothing).check(task)


def test_older_files_are_completed_by_what_the_task_knows(task, wandered, tmp_path):
    """To 1e-12: the same formulas in numpy and in JAX. An older file stays one when it is saved again."""
    unrecorded(wandered).save(tmp_path / "old.npz")
    with np.load(tmp_path / "old.npz") as file:
        assert set(file) == {"task", "behaviour", "seed", "states", "actions", "next_states"}
    old = OfflineData.load(tmp_path / "old.npz")
    assert not old.recorded
    completed = old.check(task)
    assert completed.recorded
    for part, wanted in zip(completed.transitions, wandered.transitions, strict=True):
        assert part.dtype == wanted.dtype
        np.testing.assert_allclose(part, wanted, atol=1e-12)


def test_older_files_are_refused_where_nothing_could_complete_them(wandered):
    with pytest.raises(UserError, match=r"have no rewards, costs, terminated, which point does not know as functions"):
        unrecorded(wandered).check(point_mass(signals=None))
    assert wandered.check(point_mass(signals=None)) is wandered


def test_completed_outcomes_are_checked_too(wandered):
    with pytest.raises(UserError, match="the rewards of these offline data are not all finite numbers"):
        unrecorded(wandered).check(point_mass(signals=Signals(lambda x, a, y: y[0] / 0.0, costs)))


def test_the_data_that_come_with_cartpole_are_what_collect_makes():
    """States, actions, costs bit for bit; and nothing of them depends on how they were read."""
    task = sbsrl.make_task("cartpole")
    kept = OfflineData.load(Path(sbsrl.__file__).parent / "tasks" / "data" / "cartpole.npz").check(task)
    assert same(kept, collect(task, "wander", 100, seed=0))


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_step_of_the_data_is_a_step_of_the_system(task, behaviour):
    """To 1e-12: numpy, compiled alone and compiled for all at once differ in the last digits."""
    data = collect(task, behaviour, 30).check(task).transitions
    x, a, y = (jnp.asarray(part) for part in data[:3])
    np.testing.assert_allclose(y, jax.vmap(dynamics)(x, a), atol=1e-12)
    np.testing.assert_allclose(data.rewards, jax.vmap(reward)(x, a, y), atol=1e-12)
    np.testing.assert_allclose(data.costs, jax.vmap(costs)(x, a, y), atol=1e-12)
    assert not data.terminated.any()


def episodes_of(data):
    """The row numbers of each episode: a state that is not where the last step led begins another."""
    begins = np.any(data.states[1:] != data.next_states[:-1], axis=1)
    return np.split(np.arange(len(data.states)), np.flatnonzero(begins) + 1)


def test_wandering_is_made_of_episodes_that_end_at_a_third_of_the_budget(wandered):
    """The budget is 3. One step faster than 1 ends it, and one step adds at most 0.5."""
    episodes, speed = episodes_of(wandered.transitions), np.abs(wandered.transitions.next_states[:, 1])
    assert len(episodes) > 3
    for rows in episodes:
        assert wandered.transitions.states[rows[0], 1] == 0
        assert np.all(speed[rows[:-1]] <= 1)
    for rows in episodes[:-1]:
        assert 1 < speed[rows[-1]] <= 1.5


def test_summed_costs_end_an_episode_too():
    """The sum of an episode's costs, but for the last, is below a third of its budget; to 1e-12."""
    task = point_mass(costs=(Cost("speed", 6.0, "sum"),))
    data = collect(task, "wander", 60, strength=1.0).transitions
    episodes = episodes_of(data)
    assert len(episodes) > 3
    for rows in episodes[:-1]:
        assert np.sum(data.costs[rows[:-1]]) <= 2 + 1e-12
        assert np.sum(data.costs[rows]) > 2


@pytest.mark.parametrize(("tight", "ends"), [(0, "speed"), (1, "way")])
def test_of_several_costs_the_first_at_a_third_of_its_budget_ends_the_episode(watched, tight, ends):
    """One of the two budgets is out of reach."""
    budgets = [60.0, 300.0]
    budgets[tight] = (1.5, 3.0)[tight]
    task = point_mass(
        costs=(Cost("speed", budgets[0], "statewise"), Cost("way", budgets[1], "sum")), signals=None, equations=None
    )
    _, data = watched(60, task=task, charge=lambda x, a, y: [abs(y[1]), abs(y[0])])
    assert data.costs.shape == (60, 2)
    episodes = episodes_of(data)
    assert len(episodes) > 3
    for rows in episodes[:-1]:
        used = {"speed": np.max(data.costs[rows, 0]) / budgets[0], "way": np.sum(data.costs[rows, 1]) / budgets[1]}
        assert {name for name, share in used.items() if share > 1 / 3} == {ends} or len(rows) == task.horizon


@pytest.mark.parametrize(("budget", "most"), [(3.0, 1.0), (-1.0, -1.0)])
def test_costs_without_a_least_one_end_an_episode_too(watched, budget, most):
    """At a third of the budget, or at the budget itself where it is negative."""
    task = point_mass(costs=(Cost("lead", budget, "statewise", (-np.inf, np.inf)),))
    _, data = watched(200, task=task, charge=lambda x, a, y: y[1] - 2.0 if budget < 0 else y[1])
    early = [rows for rows in episodes_of(data)[:-1] if len(rows) < task.horizon]
    assert len(early) > 1
    for rows in early:
        assert np.all(data.costs[rows[:-1]] <= most)
        assert data.costs[rows[-1], 0] > most


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_an_episode_ends_where_the_system_ends_it(watched, end):
    env, data = watched(20, 0.1, ends=lambda t: (end == "terminated" and t == 7, end == "truncated" and t == 7))
    assert len(env.seeds) == 3
    assert np.flatnonzero(data.terminated).tolist() == ([6, 13] if end == "terminated" else [])
    assert [len(rows) for rows in episodes_of(data)] == [7, 7, 6]


def test_a_gentle_episode_lasts_as_long_as_the_task_says(task):
    episodes = episodes_of(collect(task, "wander", 50, strength=0.1).transitions)
    assert [len(rows) for rows in episodes] == [20, 20, 10]


def test_the_system_is_reset_once_per_episode_and_sent_what_is_recorded(watched):
    env, data = watched(45, 0.1)
    keys = [jax.random.split(jax.random.fold_in(jax.random.key(0), episode), 3)[0] for episode in range(3)]
    assert env.seeds == [int(jax.random.bits(key, dtype=jnp.uint32)) >> 1 for key in keys]
    assert np.array_equal(env.sent, data.actions)
    assert env.closed


def test_wandering_actions_are_held_for_three_steps(wandered):
    for rows in episodes_of(wandered.transitions):
        actions = wandered.transitions.actions[rows, 0]
        changes = np.flatnonzero(np.diff(actions)) + 1
        assert np.array_equal(changes, np.arange(3, len(rows), 3))


def test_wandering_actions_come_from_the_keys_they_always_came_from(watched):
    """Those that made the committed data of cartpole; to 1e-15."""
    _, data = watched(45, 0.1)
    for episode, rows in enumerate(episodes_of(data)):
        key = jax.random.split(jax.random.fold_in(jax.random.key(0), episode), 3)[1]
        wanted = [
            0.1 * jax.random.uniform(jax.random.fold_in(key, t // 3), (1,), jnp.float64, -1.0, 1.0)
            for t in range(len(rows))
        ]
        np.testing.assert_allclose(data.actions[rows], wanted, atol=1e-15)


def test_wandering_asks_for_nothing_but_the_system(task):
    bare = replace(task, signals=None, equations=None, sample_state=None)
    assert same(collect(bare, "wander", 9), collect(task, "wander", 9))


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"state": np.array([0.0, np.nan])}, "the observation at step 4 is not finite: "),
        ({"state": np.zeros(3)}, r"the observation at step 4 has shape \(3,\), not \(2,\)"),
        ({"state": "left"}, "the observation at step 4 is not made of numbers"),
        ({"reward": np.nan}, "the reward of step 4 is not finite"),
        ({"reward": "much"}, "the reward of step 4 is not made of numbers"),
        ({"info": {}}, "the info of step 4 has no 'cost'"),
        ({"info": {"cost": np.inf}}, "the cost of step 4 is not finite"),
        ({"info": {"cost": [0.0, 0.0]}}, r"step 4 has costs of shape \(2,\), not \(1,\)"),
        ({"info": {"cost": "high"}}, "the cost of step 4 is not made of numbers"),
    ],
)
def test_a_system_that_reports_nonsense_is_stopped_with_its_safe_action(said, complaint):
    env = PointMass(reports=lambda t: said if t == 4 else {})
    with pytest.raises(UserError, match=f"^{complaint}.*; the safe action was sent$") as short:
        collect(point_mass(open=lambda: env, safe_action=(0.25,)), "wander", 30)
    assert len(short.value.transitions.actions) == 3  # what was played until then is kept
    assert len(env.sent) == 5
    assert env.sent[-1].tolist() == [0.25]
    assert env.closed


@pytest.mark.parametrize(("error", "seen"), [(KeyboardInterrupt, KeyboardInterrupt), (RuntimeError, UserError)])
def test_a_system_that_fails_is_stopped_too(error, seen):
    """Without a safe action nothing is sent; Ctrl-C stays Ctrl-C."""

    def fail(t):
        if t >= 4:
            raise error
        return {}

    env = PointMass(reports=fail)
    with pytest.raises(seen) as short:
        collect(point_mass(open=lambda: env), "wander", 30)
    assert len(short.value.transitions.actions) == 3
    assert len(env.sent) == 4
    assert env.closed


def test_a_safe_action_that_fails_does_not_hide_the_reason():
    def fail(t):
        if t >= 4:
            raise RuntimeError(f"broken at {t}")
        return {}

    env = PointMass(reports=fail)
    with pytest.raises(UserError, match="step 4 raised RuntimeError: broken at 4; sending the safe action raised"):
        collect(point_mass(open=lambda: env, safe_action=(0.0,)), "wander", 30)
    assert len(env.sent) == 5
    assert env.closed


def test_costs_may_be_a_number_or_a_sequence(watched):
    one = watched(12)[1]
    for charge in (lambda x, a, y: [abs(y[1])], lambda x, a, y: np.abs(y[1:]), lambda x, a, y: np.float32(0.5)):
        other = watched(12, charge=charge)[1]
        assert other.costs.shape == (12, 1)
        assert other.costs.dtype == np.float64
    assert one.costs.shape == (12, 1)


def test_scattered_states_are_drawn_from_anywhere(task):
    """Both signs of each number up to 5, and no two steps follow each other. The true system is not touched."""
    states = collect(replace(task, open=lambda: pytest.fail("it was opened")), "scatter", 60).transitions.states
    assert 3 < np.abs(states).max() <= 5
    assert np.all(states.min(axis=0) < -3)
    assert np.all(states.max(axis=0) > 3)
    assert len(np.unique(states[:, 1])) == 60


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_same_seed_gives_the_same_data_and_another_seed_other_data(task, behaviour):
    first, again, other = (collect(task, behaviour, 12, seed) for seed in (5, 5, 6))
    assert same(first, again)
    assert not np.any(first.transitions.actions == other.transitions.actions)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("strength", [0.0, 0.2, 1.0])
def test_strength_is_the_share_of_the_action_range_that_is_used(task, behaviour, strength):
    largest = np.abs(collect(task, behaviour, 40, strength=strength).transitions.actions).max()
    assert 0.8 * strength <= largest <= strength


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"behaviour": "wonder"}, "no behaviour 'wonder'; did you mean 'wander'"),
        ({"strength": 1.5}, r"strength=1.5 is out of range; it must be between 0 and 1\."),
        ({"strength": -0.1}, r"strength=-0.1 is out of range"),
        ({"strength": float("nan")}, "strength=nan is not a finite number"),
        ({"transitions": 0}, r"transitions=0 is out of range; it must be between 1 and 5000\."),
        ({"transitions": MOST_TRANSITIONS + 1}, "transitions=5001 is out of range"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"seed": 2**70}, r"seed=.* is out of range"),
        ({"seed": True}, "seed wants a whole number and got True"),
    ],
)
def test_mistakes_are_explained(task, options, said):
    with pytest.raises(UserError, match=said):
        collect(task, **options)


def test_numpy_scalars_are_numbers(task):
    data = collect(task, "wander", np.int64(5), np.uint32(7), np.float32(0.5))
    assert type(data.seed) is int
    assert same(data, collect(task, "wander", 5, 7, 0.5))


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ("equations", "point has no equations that could be asked for single steps; use --behaviour wander"),
        ("sample_state", "point does not say from where to ask for single steps; use --behaviour wander"),
    ],
)
def test_a_task_that_cannot_be_asked_anywhere_is_not_scattered(task, lacks, said):
    with pytest.raises(UserError, match=said):
        collect(replace(task, **{lacks: None}), "scatter", 3)


def test_a_behaviour_of_the_task_is_recorded_in_whole_episodes_and_a_recipe_is_the_same():
    task = slider.make()
    data = collect(task, "pusher", seed=4, episodes=3)
    assert (data.task, data.behaviour, data.seed) == ("slider", "pusher", 4)
    assert [len(each.actions) for each in split_episodes(data.transitions)] == [slider.HORIZON] * 3
    again = find_data(task, "pusher:3:4")
    for one, other in zip(again.transitions, data.transitions, strict=True):
        np.testing.assert_array_equal(one, other)
    other = collect(task, "pusher", seed=5, episodes=3)
    assert not np.array_equal(other.transitions.actions, data.transitions.actions)


def test_a_recipe_is_refused_for_a_system_that_is_no_simulation():
    real = replace(slider.make(), simulated=False)
    with pytest.raises(UserError, match="would play episodes on the true slider"):
        find_data(real, "pusher:3:4")


@pytest.mark.parametrize(
    ("recipe", "complaint"),
    [("nobody:3:4", "no behaviour of slider"), ("pusher:0:4", "episodes=0"), ("pusher:3:99999999999", "seed=")],
)
def test_nonsense_in_a_recipe_is_refused(recipe, complaint):
    with pytest.raises(UserError, match=complaint):
        find_data(slider.make(), recipe)


def test_what_is_no_recipe_is_a_file(tmp_path):
    collect(slider.make(), "pusher", seed=4, episodes=2).save(tmp_path / "data.npz")
    assert len(find_data(slider.make(), str(tmp_path / "data.npz")).transitions.actions) == 2 * slider.HORIZON
    assert not is_recipe(str(tmp_path / "a:3:4"))


def test_data_cut_short_in_a_worker_come_back_with_what_was_played():
    """Errors are pickled on their way from a worker; one that cannot be restored breaks the whole pool."""
    states = np.zeros((2, 1))
    error = CutShort(
        "the system fell silent.", Transitions(states, states, states, states[:, 0], states, states[:, 0] > 0)
    )
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "the system fell silent."
    np.testing.assert_array_equal(again.transitions.states, states)
