"""Recorded data are read from archives, tables and datasets; what has gaps, other units or other sizes is refused."""

import warnings

import gymnasium
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own.data import Recorded, read_recorded, with_signals
from sbsrl.own.description import Description
from sbsrl.own.names import name_of
from sbsrl.own.settings import OwnSettings
from sbsrl.own.signals import Sources
from sbsrl.transitions import split_episodes

SHAPE = Description(("p", "v"), (-1.0,), (1.0,), 20, ("u",))
X = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [7.0, 8.0]])
A = np.array([[0.5], [-0.5], [1.0], [0.0]])


def archive(path, **changes):
    arrays = {"states": X[:3], "actions": A[:3], "next_states": X[1:], "rewards": np.arange(3.0), **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return str(path)


def table(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return str(path)


ROWS = "time,episode,p,v,u,reward,heat\n0.0,0,0,1,0.5,9,1\n0.1,0,1,2,-0.5,8,2\n0.2,0,3,4,1,7,3\n0.3,0,7,8,0,6,4\n"


def sources(cost="info", reward=""):
    words = (cost if isinstance(cost, str) else name_of(cost, "cost"),)
    return Sources.of(OwnSettings(cost=words, reward=reward and name_of(reward, "reward")))


def test_an_archive_is_read_as_it_is(tmp_path):
    costs, ended = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([False, False, True])
    found = read_recorded(archive(tmp_path / "a.npz", costs=costs, terminated=ended), SHAPE, ["heat", "noise"])
    np.testing.assert_array_equal(found.states, X[:3])
    np.testing.assert_array_equal(found.actions, A[:3])
    np.testing.assert_array_equal(found.next_states, X[1:])
    assert found.rewards.tolist() == [0.0, 1.0, 2.0]
    assert {name: column.tolist() for name, column in found.costs.items()} == {"heat": [1, 3, 5], "noise": [2, 4, 6]}
    assert found.terminated.tolist() == [False, False, True]


def test_an_archive_needs_neither_rewards_nor_costs_and_one_column_may_be_flat(tmp_path):
    path = archive(tmp_path / "a.npz", rewards=None, actions=A[:3, 0], costs=np.arange(3.0))
    found = read_recorded(path, SHAPE, ["heat"])
    assert found.rewards is None
    assert found.actions.shape == (3, 1)
    assert found.costs["heat"].tolist() == [0.0, 1.0, 2.0]
    assert not found.terminated.any()


def test_a_table_joins_each_row_to_the_next(tmp_path):
    found = read_recorded(table(tmp_path / "a.csv", ROWS), SHAPE, ["heat"])
    np.testing.assert_array_equal(found.states, X[:3])
    np.testing.assert_array_equal(found.next_states, X[1:])
    assert found.actions.tolist() == A[:3].tolist()
    assert (found.rewards.tolist(), found.costs["heat"].tolist(), found.notes) == ([9, 8, 7], [1, 2, 3], ())


def test_a_table_of_a_spreadsheet_is_read(tmp_path):
    """With a byte order mark, spaces and truth values, in another order, without time and with more columns."""
    text = "u , v, p, note, terminated\n0.5,1,0,warm,False\n\n-0.5,2,1,,TRUE\n0,4,3,,\n"
    found = read_recorded(table(tmp_path / "a.csv", text, "utf-8-sig"), SHAPE, ["heat"])
    np.testing.assert_array_equal(found.states, X[:2])
    np.testing.assert_array_equal(found.next_states, X[1:3])
    assert (found.terminated.tolist(), found.rewards, found.costs) == ([False, True], None, {})


def test_the_observation_after_a_step_may_have_columns_of_its_own(tmp_path):
    text = "p,v,u,next_p,next_v\n0,1,0.5,10,20\n1,2,0,30,40\n"
    found = read_recorded(table(tmp_path / "a.csv", text), SHAPE, [])
    assert found.next_states.tolist() == [[10, 20], [30, 40]]


def test_rows_of_two_episodes_are_not_joined(tmp_path):
    text = "episode,p,v,u\n0,0,1,0.5\n0,1,2,0.5\n1,3,4,0.5\n1,7,8,0.5\n"
    found = read_recorded(table(tmp_path / "a.csv", text), SHAPE, [])
    assert (found.states[:, 0].tolist(), found.next_states[:, 0].tolist()) == ([0, 3], [1, 7])


@pytest.mark.parametrize(
    "labels",
    [
        "aabb",
        "ABCD",
        "aaab",
        ["run 1", "run 1", "run 2", "run 2"],
        ["", "", "x", "x"],
        ["nan"] * 4,
        ["0", "0", "b", "0"],
    ],
)
def test_episodes_may_have_any_labels(tmp_path, labels):
    text = "episode,p,v,u\n" + "".join(f"{label},{i},0,0\n" for i, label in enumerate([*labels, labels[-1]]))
    found = read_recorded(table(tmp_path / "a.csv", text), SHAPE, [])
    joined = [i for i, (one, other) in enumerate(zip(labels, [*labels[1:], labels[-1]], strict=True)) if one == other]
    assert found.states[:, 0].tolist() == joined
    assert found.next_states[:, 0].tolist() == [i + 1 for i in joined]


@pytest.mark.parametrize(
    ("times", "joined"),
    [
        ([0.0, 0.1, 0.2, 0.3, 0.4], [0, 1, 2, 3]),
        ([0.0, 0.1, 0.2, 0.7, 0.8], [0, 1, 3]),  # a gap
        ([0.0, 0.1, 0.2, 0.21, 0.31], [0, 1, 3]),  # a row that came too early
        ([0.0, 0.1, 0.2, 0.0, 0.1], [0, 1, 3]),  # it began anew
        ([0.0, 0.1, 0.2, 0.33, 0.4], [0, 1, 2, 3]),  # clocks are not exact
    ],
)
def test_rows_between_which_time_is_missing_are_not_joined(tmp_path, times, joined):
    text = "time,p,v,u\n" + "".join(f"{t},{i},0,0\n" for i, t in enumerate(times))
    found = read_recorded(table(tmp_path / "a.csv", text), SHAPE, [])
    assert found.states[:, 0].tolist() == joined
    assert found.next_states[:, 0].tolist() == [i + 1 for i in joined]
    said = () if len(joined) == 4 else ("1 of 5 rows are left out: 0.1 is the usual time between rows, and not there.",)
    assert found.notes == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"next_states": None, "actions": None}, "has no actions, next_states; save arrays states, actions and next_s"),
        ({"states": X[:3, :1]}, r"the states of .* have shape \(3, 1\), and \(3, 2\) is wanted: 2 numbers per row"),
        ({"next_states": X}, r"the next_states of .* have shape \(4, 2\), and \(3, 2\) is wanted"),
        ({"actions": np.zeros((3, 2))}, r"the actions of .* have shape \(3, 2\)"),
        ({"actions": np.zeros((0, 1)), "states": np.zeros((0, 2))}, "holds no transitions"),
        (
            {"states": np.where(X[:3] == 2, np.nan, X[:3])},
            r"row 1 of the states of .* has a gap.* \(1 such rows in all\)",
        ),
        ({"rewards": np.array([0.0, 1.0, np.inf])}, "row 2 of the rewards of .* has a gap"),
        ({"states": X[:3].astype(str)}, "states of .* is text; save arrays of numbers"),
        ({"rewards": np.zeros(2)}, "rewards of .* has 2 rows, and there are 3 actions"),
        ({"terminated": np.zeros(2, bool)}, "terminated of .* has 2 rows, and there are 3 actions"),
        ({"costs": np.zeros((3, 2))}, "the costs of .* have 2 columns, and 1 costs were named"),
        ({"costs": np.zeros(5)}, "heat of .* has 5 rows, and there are 3 actions"),
        (
            {"actions": 60 * A[:3]},
            "action 0 of .* lies between -30 and 60, and the system takes -1 to 1: are these oth",
        ),
    ],
)
def test_an_archive_that_does_not_fit_is_refused(tmp_path, changes, said):
    with pytest.raises(UserError, match=said) as caught:
        read_recorded(archive(tmp_path / "a.npz", **changes), SHAPE, ["heat"])
    assert "\n" not in str(caught.value)


def test_actions_may_be_beyond_their_limits_by_a_twentieth_of_the_range(tmp_path):
    found = read_recorded(archive(tmp_path / "a.npz", actions=np.array([[1.09], [-1.09], [0.0]])), SHAPE, [])
    assert found.actions.max() == 1.09
    with pytest.raises(UserError, match=r"lies between -1.11 and 0"):
        read_recorded(archive(tmp_path / "a.npz", actions=np.array([[0.0], [-1.11], [0.0]])), SHAPE, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no table: .* the first line must name the columns"),
        ("0,1,2\n3,4,5\n", "begins with numbers; its first line must name the columns"),
        ("p,v,p\n0,1,2\n", "has two columns of the same name among p, v, p; rename one"),
        ("p,v,u\n0,1,0\n1,2\n", "row 1 of .* has 2 columns, and the first line names 3; mend it"),
        ("p,u\n0,1\n", r"has no column v \(it has p, u\); name the observations with state_names="),
        ("p,v,force\n0,1,1\n", r"has no column u \(it has p, v, force\); name the actions with action_names="),
        (
            "p,v,u\n0,1,0\n1,,0\n2,2,0\n",
            r"row 1 of the states of .* has a gap, or something that is no number \(1 such",
        ),
        ("p,v,u\n0,1,0\n1,2,much\n2,2,0\n", "row 1 of the actions of .* has a gap"),
        ("p,v,u\n0,1,0\n", "holds no transitions"),
        ("p,v,u\n", "holds no transitions"),
        ("time,episode,p,v,u\n0,0,0,1,0\n0,1,0,1,0\n0,2,0,1,0\n", "holds no transitions"),
        (
            "time,p,v,u\n0,0,1,0\n0.1,1,2,0\n12:30:05,2,2,0\nlater,2,2,0\n",
            r"the time of row 2 of .*a\.csv is no number; give seconds since the beginning\.$",
        ),
        ("time,p,v,u\n,0,1,0\n0.1,1,2,0\n", "the time of row 0 of .* is no number; give seconds since the beginning"),
        ("p,v,u\n0,1,40\n1,2,0\n", "action 0 of .* lies between 40 and 40, and the system takes -1 to 1"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, text, said):
    with pytest.raises(UserError, match=said) as caught:
        read_recorded(table(tmp_path / "a.csv", text), SHAPE, [])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.npz"])
def test_a_file_that_is_not_there_is_explained(tmp_path, name):
    with pytest.raises(UserError, match=r"nowhere.* \((No such file or directory|there is no such file)\)"):
        read_recorded(str(tmp_path / name), SHAPE, [])


def test_bytes_that_are_no_text_are_explained(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"p,v,u\n\xff\xfe,1,2\n")
    with pytest.raises(UserError, match=r"is no table: .*can't decode"):
        read_recorded(str(tmp_path / "a.csv"), SHAPE, [])


def recorded(**changes):
    parts = {"source": "it", "states": X[:3], "actions": A[:3], "next_states": X[1:], "rewards": np.arange(3.0)}
    return Recorded(
        **{**parts, "costs": {"cost": np.array([4.0, 5.0, 6.0])}, "terminated": np.zeros(3, bool), **changes}
    )


def test_signals_are_computed_where_they_are_functions_else_as_recorded():
    found = with_signals(recorded(), sources(), ["cost"])
    assert (found.rewards.tolist(), found.costs.tolist()) == ([0.0, 1.0, 2.0], [[4.0], [5.0], [6.0]])
    computed = with_signals(
        recorded(rewards=None, costs={}), sources(lambda x, a, y: y[:1] - x[:1], lambda x, a, y: a[0]), ["way"]
    )
    assert (computed.rewards.tolist(), computed.costs.tolist()) == ([0.5, -0.5, 1.0], [[1.0], [2.0], [4.0]])
    assert len(split_episodes(computed)) == 1


@pytest.mark.parametrize(
    ("data", "given", "said"),
    [
        (recorded(rewards=None), {}, "it has no rewards, and no reward function was given; add a column 'reward'"),
        (
            recorded(costs={"a": np.zeros(3), "b": np.zeros(3)}),
            {},
            r"it has no cost 'cost' \(its costs: a, b\); add it",
        ),
        (recorded(), {"cost": lambda x, a, y: 1 / 0}, "the cost 'cost' function failed on it: ZeroDivisionError"),
        (recorded(), {"cost": lambda x, a, y: np.nan * y[0]}, "the cost 'cost' function gives nan on it; mend it"),
        (recorded(), {"reward": lambda x, a, y: y}, "the reward function failed on it: ValueError"),
    ],
)
def test_signals_that_are_missing_or_fail_are_explained(data, given, said):
    with pytest.raises(UserError, match=said):
        with_signals(data, sources(**given), ["cost"])


# datasets of Minari


def dataset(name="foreign-v0", observations=X[:, :], infos=None, actions=A[:3]):
    """Two episodes of three steps; the infos have an entry more, of the reset."""
    import minari

    steps = {"rewards": np.arange(3.0), "terminations": np.arange(3) == 2, "truncations": np.zeros(3, bool)}
    parts = {"observations": observations, "actions": actions, **steps}
    episodes = [
        minari.data_collector.EpisodeBuffer(id=i, infos=infos or {"cost": np.arange(4.0)}, **parts) for i in range(2)
    ]
    space = gymnasium.spaces.Box(-9, 9, (2,), np.float64)
    parts = gymnasium.spaces.Dict({"x": space})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata that are missing
        minari.create_dataset_from_buffers(
            name,
            episodes,
            observation_space=parts if isinstance(observations, dict) else space,
            action_space=gymnasium.spaces.Box(-1, 1, (1,), np.float64),
        )
    return f"minari:{name}"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_a_dataset_of_minari_is_read_with_the_numbers_in_its_infos(home):
    unused = np.full(4, np.nan)  # by nobody
    infos = {"cost": np.arange(4.0), "heat": np.array([5.0, 6.0, 7.0]), "wild": unused, "pair": np.zeros((4, 2))}
    found = read_recorded(dataset(infos=infos), SHAPE, ["heat"])
    np.testing.assert_array_equal(found.states, np.concatenate([X[:3], X[:3]]))
    np.testing.assert_array_equal(found.next_states, np.concatenate([X[1:], X[1:]]))
    assert {name: column.tolist() for name, column in found.costs.items()} == {
        "cost": [1, 2, 3, 1, 2, 3],
        "heat": [5, 6, 7, 5, 6, 7],
    }
    assert found.terminated.tolist() == [False, False, True] * 2
    assert len(split_episodes(with_signals(found, sources("info:heat"), ["heat"]))) == 2


def test_a_dataset_that_does_not_fit_is_refused(home):
    with pytest.raises(UserError, match="row 1 of the wild of minari:gaps-v0 has a gap"):
        read_recorded(dataset("gaps-v0", infos={"wild": np.array([1.0, 0.0, np.nan, 0.0])}), SHAPE, ["wild"])
    with pytest.raises(UserError, match=r"the states of minari:small-v0 have shape \(6, 2\), and \(6, 1\) is wanted"):
        read_recorded(dataset("small-v0"), SHAPE._replace(state_names=("p",)), [])
    with pytest.raises(UserError, match="observations or actions of minari:parts-v0 are no arrays of numbers; flatten"):
        read_recorded(dataset("parts-v0", {"x": X}), SHAPE, [])
    with pytest.raises(UserError, match="minari:nowhere-v0 cannot be read"):
        read_recorded("minari:nowhere-v0", SHAPE, [])
