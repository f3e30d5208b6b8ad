"""Offline data: kept as they were, refused where they do not fit, and made by the system that is learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import OfflineData, UserError, collect, make_task
from sbsrl.task import Transitions


@pytest.fixture(scope="module")
def task():
    return make_task("pendulum")


@pytest.fixture(scope="module")
def wandered(task):
    """Full of strength, so that episodes do end at a third of the budget."""
    return collect(task, "wander", 80, seed=3, strength=1.0)


def with_part(data, name, value):
    return data._replace(transitions=data.transitions._replace(**{name: value}))


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.transitions, other.transitions, strict=True))


def test_what_is_saved_comes_back_as_it_was(wandered, tmp_path):
    wandered.save(tmp_path / "in" / "a" / "new" / "folder.npz")
    back = OfflineData.load(str(tmp_path / "in" / "a" / "new" / "folder.npz"))
    assert back[:3] == ("pendulum", "wander", 3)
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


@pytest.mark.parametrize("name", ["states", "actions", "task"])
def test_pickled_objects_are_not_opened(wandered, tmp_path, name):
    labels = {"task": "pendulum", "behaviour": "wander", "seed": 0}
    objects = {name: np.array([{"any": "object"}], dtype=object)}
    np.savez(tmp_path / "data.npz", **{**labels, **wandered.transitions._asdict(), **objects})
    with pytest.raises(UserError, match="cannot be read as offline data"):
        OfflineData.load(tmp_path / "data.npz")


def test_data_that_fit_are_let_through(task, wandered):
    assert wandered.check(task) is wandered


def test_data_of_another_task_are_refused(wandered):
    with pytest.raises(UserError, match="these offline data come from pendulum, and the task is ledge"):
        wandered.check(make_task("ledge"))


@pytest.mark.parametrize("name", Transitions._fields)
@pytest.mark.parametrize("shape", [(80, 2), (79, 3), (80,), ()])
def test_data_of_another_shape_are_refused(task, wandered, name, shape):
    with pytest.raises(UserError, match=r"of these offline data have shape .*; pendulum wants"):
        with_part(wandered, name, np.zeros(shape)).check(task)


@pytest.mark.parametrize("name", Transitions._fields)
def test_what_is_not_all_finite_numbers_is_refused(task, wandered, name):
    part = getattr(wandered.transitions, name)
    broken = part.copy()
    broken[7, 0] = np.nan
    for bad in (broken, np.where(np.isnan(broken), np.inf, broken)):
        with pytest.raises(UserError, match=f"the {name} of these offline data are not all finite numbers"):
            with_part(wandered, name, bad).check(task)
    for bad in (part.astype(int), part.astype(str)):
        with pytest.raises(UserError, match=f"the {name} of these offline data are {bad.dtype}; save them as float64"):
            with_part(wandered, name, bad).check(task)


@pytest.mark.parametrize("behaviour", ["wander", "scatter"])
def test_a_step_of_the_data_is_a_step_of_the_task(task, behaviour):
    """To 1e-12: compiled alone and in a batch they differ in the last digits."""
    data = collect(task, behaviour, 30).transitions
    keys = jax.random.split(jax.random.key(0), 30)
    steps = jax.vmap(task.step)(jnp.asarray(data.states), jnp.asarray(data.actions), keys)
    assert data.states.shape == data.next_states.shape == (30, 3)
    assert data.actions.shape == (30, 1)
    np.testing.assert_allclose(data.next_states, steps, atol=1e-12)


def episodes_of(data):
    """The row numbers of each episode: a state that is not where the last step led begins another."""
    begins = np.any(data.states[1:] != data.next_states[:-1], axis=1)
    return np.split(np.arange(len(data.states)), np.flatnonzero(begins) + 1)


def test_wandering_is_made_of_episodes_that_end_at_a_third_of_the_budget(task, wandered):
    """The budget is 6. One step more than 2 rad/s ends it, and one step adds less than 2."""
    episodes, speed = episodes_of(wandered.transitions), np.abs(wandered.transitions.next_states[:, 2])
    assert len(episodes) > 3
    for rows in episodes:
        assert np.array_equal(wandered.transitions.states[rows[0]], task.reset(jax.random.key(0)))
        assert np.all(speed[rows[:-1]] <= 2)
        assert len(rows) <= task.horizon
    for rows in episodes[:-1]:
        assert speed[rows[-1]] > 2
    assert speed.max() < 4


def test_a_gentle_episode_lasts_as_long_as_the_task_says(task):
    episodes = episodes_of(collect(task, "wander", 120, strength=0.1).transitions)
    assert [len(rows) for rows in episodes] == [50, 50, 20]


def test_wandering_actions_are_held_for_three_steps(wandered):
    for rows in episodes_of(wandered.transitions):
        actions = wandered.transitions.actions[rows, 0]
        changes = np.flatnonzero(np.diff(actions)) + 1
        assert np.array_equal(changes, np.arange(3, len(rows), 3))


def test_scattered_states_are_drawn_from_anywhere(task):
    """Any angle on the circle and |omega| <= 6: both signs of each, and no two steps follow each other."""
    states = collect(task, "scatter", 60).transitions.states
    np.testing.assert_allclose(np.sum(states[:, :2] ** 2, axis=1), 1, atol=1e-12)
    assert 3 < np.abs(states[:, 2]).max() <= 6
    assert np.all(states.min(axis=0) < -0.5)
    assert np.all(states.max(axis=0) > 0.5)
    assert len(np.unique(states[:, 2])) == 60


@pytest.mark.parametrize("behaviour", ["wander", "scatter"])
def test_the_same_seed_gives_the_same_data_and_another_seed_other_data(task, behaviour):
    first, again, other = (collect(task, behaviour, 12, seed) for seed in (5, 5, 6))
    assert same(first, again)
    assert not np.any(first.transitions.actions == other.transitions.actions)


@pytest.mark.parametrize("behaviour", ["wander", "scatter"])
@pytest.mark.parametrize("strength", [0.0, 0.2, 1.0])
def test_strength_is_the_share_of_the_action_range_that_is_used(task, behaviour, strength):
    largest = np.abs(collect(task, behaviour, 40, strength=strength).transitions.actions).max()
    assert 0.8 * strength <= largest <= strength


def test_wandering_works_with_summed_costs_and_noise_too():
    """On the ledge: the sum of an episode's costs, but for the last, is below a third of its budget."""
    ledge = make_task("ledge")
    data = collect(ledge, "wander", 40, strength=1.0)
    costs = jax.vmap(ledge.cost)(*(jnp.asarray(part) for part in data.check(ledge).transitions))
    for rows in episodes_of(data.transitions):
        assert len(rows) <= ledge.horizon
        assert np.sum(costs[rows[:-1]]) <= ledge.budget / 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"behaviour": "wonder"}, "no behaviour 'wonder'; did you mean 'wander'"),
        ({"strength": 1.5}, r"strength=1.5 is out of range; it is a share of the action range, between 0 and 1\."),
        ({"strength": -0.1}, r"strength=-0.1 is out of range"),
        ({"strength": float("nan")}, "strength=nan is out of range"),
        ({"transitions": 0}, r"transitions=0 is out of range; it must be a whole number from 1 to 5000\."),
        ({"transitions": 10_001}, "transitions=10001 is out of range"),
    ],
)
def test_mistakes_are_explained(task, options, said):
    with pytest.raises(UserError, match=said):
        collect(task, **options)


def test_a_task_that_cannot_be_asked_anywhere_is_not_scattered():
    with pytest.raises(UserError, match=r"ledge does not say from where steps could be asked for; use .* wander"):
        collect(make_task("ledge"), "scatter", 3)


@pytest.mark.parametrize("name", ["pendulum", "cartpole"])
def test_data_given_to_a_task_take_the_place_of_those_of_its_prior(tmp_path, name):
    """And nothing else changes."""
    plain = make_task(name)
    data = collect(plain, "wander", 9)
    data.save(tmp_path / "data.npz")
    taught = make_task(name, data=tmp_path / "data.npz")
    assert same(data._replace(transitions=taught.prior.data), data)
    assert taught.prior.mean is plain.prior.mean
    assert taught.budget == plain.budget
    assert make_task(name).prior.data is plain.prior.data


def test_data_of_another_task_are_refused_by_make_task(tmp_path, wandered):
    wandered.save(tmp_path / "data.npz")
    with pytest.raises(UserError, match="these offline data come from pendulum, and the task is ledge"):
        make_task("ledge", data=tmp_path / "data.npz")


def test_files_that_are_broken_are_refused(task, tmp_path):
    """A plain array, half of an archive, and labels of the wrong kind."""
    np.save(tmp_path / "array.npy", np.zeros(3))
    collect(task, "wander", 5).save(tmp_path / "half.npz")
    whole = (tmp_path / "half.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    arrays = collect(task, "wander", 5).transitions._asdict()
    np.savez(tmp_path / "labels.npz", task="pendulum", behaviour="wander", seed="none", **arrays)
    for name in ("array.npy", "half.npz", "labels.npz"):
        with pytest.raises(UserError, match="make it with 'sbsrl collect'"):
            OfflineData.load(tmp_path / name)


@pytest.mark.parametrize("seed", [-1, 2**70])
def test_a_seed_out_of_range_is_refused(task, seed):
    with pytest.raises(UserError, match=r"seed .* is out of range"):
        collect(task, "wander", 2, seed)


def test_data_without_a_single_transition_are_refused(task):
    nothing = Transitions(np.zeros((0, 3)), np.zeros((0, 1)), np.zeros((0, 3)))
    with pytest.raises(UserError, match="hold no transitions"):
        OfflineData("pendulum", "wander", 0, nothing).check(task)
