"""Data go to Minari and come back as they were; what does not fit is refused in a line."""

import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import slider

from sbsrl.cli import main
from sbsrl.data_sources import find, given_content
from sbsrl.errors import UserError
from sbsrl.minari_data import PREFIX, is_minari, read_minari, write_minari
from sbsrl.offline import OfflineData, collect
from sbsrl.tasks import make_task
from sbsrl.transitions import split_episodes

minari = pytest.importorskip("minari")
NAME = f"{PREFIX}toys/slider-v0"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


@pytest.fixture(scope="module")
def task():
    return slider.make()


@pytest.fixture(scope="module")
def data(task):
    return collect(task, next(iter(task.behaviours)), episodes=3, seed=1)


def test_what_is_written_is_read_again(task, data):
    write_minari(data, task, NAME)
    found = read_minari(NAME, task)
    for name, part in data.transitions._asdict().items():
        np.testing.assert_array_equal(getattr(found.transitions, name), part, err_msg=name)
    assert (found.task, found.behaviour) == (data.task, data.behaviour)
    assert len(split_episodes(found.transitions)) == 3


def test_others_read_it_too(task, data):
    """Minari's own episodes: one observation more than actions, the last step cut."""
    write_minari(data, task, NAME)
    episodes = list(minari.load_dataset("toys/slider-v0").iterate_episodes())
    assert [len(e.observations) - len(e.actions) for e in episodes] == [1, 1, 1]
    assert all(e.truncations[-1] and not e.truncations[:-1].any() for e in episodes)
    np.testing.assert_array_equal(np.concatenate([e.infos["cost"] for e in episodes]), data.transitions.costs[:, 0])


def test_a_run_may_begin_with_it_and_keeps_its_own_copy(task, data, tmp_path):
    write_minari(data, task, NAME)
    (tmp_path / "copy.npz").write_bytes(given_content(task, NAME))
    copy = OfflineData.load(tmp_path / "copy.npz").check(task)
    np.testing.assert_array_equal(copy.transitions.costs, data.transitions.costs)
    np.testing.assert_array_equal(find(task, NAME).transitions.states, data.transitions.states)


def test_the_command_line_writes_one(capsys):
    name = f"{PREFIX}pendulum-wander-v0"
    assert main(["collect", "pendulum", "--transitions", "20", "--out", name]) == 0
    assert f"--set data={name}" in capsys.readouterr().out
    assert len(read_minari(name, make_task("pendulum")).transitions.actions) == 20


def test_a_name_that_is_taken_or_none_is_refused(task, data):
    write_minari(data, task, NAME)
    with pytest.raises(UserError, match="cannot be written: there is one already; use another name"):
        write_minari(data, task, NAME)
    with pytest.raises(UserError, match="no dataset is called so; use a name such as minari:"):
        write_minari(data, task, f"{PREFIX}no version")
    with pytest.raises(UserError, match=r"cannot be read as offline data .* 'minari list local'"):
        read_minari(f"{PREFIX}nowhere-v0", task)


def test_data_of_another_task_are_refused(task, data):
    write_minari(data, task, NAME)
    with pytest.raises(UserError, match="these offline data come from slider, and the task is other"):
        read_minari(NAME, replace(task, name="other"))


def foreign(observations, infos, rewards=None, actions=None, action_space=None):
    """A dataset that somebody else made: one episode of four steps."""
    episode = minari.data_collector.EpisodeBuffer(
        id=0,
        observations=observations,
        actions=np.zeros((4, 1)) if actions is None else actions,
        rewards=np.zeros(4) if rewards is None else rewards,
        terminations=np.zeros(4, bool),
        truncations=np.arange(4) == 3,
        infos=infos,
    )
    box = gymnasium.spaces.Box
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata that are missing
        minari.create_dataset_from_buffers(
            "foreign-v0",
            [episode],
            observation_space=box(-1, 1, np.shape(observations)[1:], np.float64),
            action_space=action_space or box(-1, 1, (1,), np.float64),
        )
    return f"{PREFIX}foreign-v0"


def test_what_others_made_is_read_if_it_fits(task):
    """With the cost that a reset reported, which is of no step."""
    size = task.state_size
    name = foreign(np.arange(5 * size, dtype=float).reshape(5, size), {"cost": np.array([9.0, 0.0, 1.0, 2.0, 3.0])})
    found = read_minari(name, task)
    np.testing.assert_array_equal(found.transitions.costs[:, 0], [0, 1, 2, 3])
    assert (found.behaviour, len(found.transitions.actions)) == ("minari", 4)


@pytest.mark.parametrize(
    ("size", "infos", "rewards", "said"),
    [
        (1, {"cost": np.zeros(4)}, None, "wants vectors of"),
        (0, {"cost": np.zeros((4, 2))}, None, r"have shape \(4, 2\) in an episode"),
        (0, {"price": np.zeros(4)}, None, "has no costs: put the cost of each step into info"),
        (0, {"cost": np.zeros(4)}, np.full(4, np.nan), "rewards of these offline data are not all finite"),
        (0, {"cost": np.array([0, 0, np.nan, 0])}, None, "costs of these offline data are not all finite"),
    ],
)
def test_what_does_not_fit_is_refused(task, size, infos, rewards, said):
    name = foreign(np.zeros((5, task.state_size + size)), infos, rewards)
    with pytest.raises(UserError, match=said):
        read_minari(name, task)


def test_actions_that_are_no_arrays_are_refused(task):
    """A dictionary of commands is no vector of numbers."""
    named = {"push": np.zeros((4, 1))}
    space = gymnasium.spaces.Dict({"push": gymnasium.spaces.Box(-1, 1, (1,), np.float64)})
    name = foreign(np.zeros((5, task.state_size)), {"cost": np.zeros(4)}, actions=named, action_space=space)
    with pytest.raises(UserError, match="cannot be read as offline data"):
        read_minari(name, task)


def test_names_of_files_are_no_datasets():
    assert is_minari(NAME)
    assert not is_minari("data/minari.npz")


def test_a_name_that_cannot_be_used_is_refused_before_anything_is_played(monkeypatch, capsys):
    monkeypatch.setattr("sbsrl.cli.collect", lambda *_: pytest.fail("it was played"))
    assert main(["collect", "pendulum", "--out", f"{PREFIX}nonsense"]) == 2
    assert "no dataset is called so" in capsys.readouterr().err


def test_nothing_is_not_written(task, data):
    empty = data._replace(transitions=type(data.transitions)(*(part[:0] for part in data.transitions)))
    with pytest.raises(UserError, match="there is no transition to keep"):
        write_minari(empty, task, NAME)
    write_minari(data, task, NAME)  # the name is still free
