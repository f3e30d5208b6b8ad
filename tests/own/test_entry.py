"""A user's system in the place of a task: made of the prior's file, the data, and a budget that the user has to say."""

from dataclasses import replace

import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own.description import Description
from sbsrl.own.entry import OwnEntry, archived, read_own
from sbsrl.own.knowledge import GPNumbers, Knowledge, MethodNumbers, read_knowledge
from sbsrl.own.names import bind_new, name_of
from sbsrl.own.plain import Pair
from sbsrl.own.settings import OwnSettings
from sbsrl.own.system import OwnSystem
from sbsrl.transitions import Transitions

SHAPE = Description(("p", "v"), (-1.0,), (1.0,), 6, ("u",))
RIG = Pair(lambda rng: np.zeros(2), lambda x, a, rng: x + a[0], [-1.0], [1.0], ("p", "v"))
DATA = Transitions(
    np.array([[0.0, 0.0], [0.5, 0.5]]),
    np.array([[0.5], [-0.5]]),
    np.array([[0.5, 0.5], [0.0, 0.0]]),
    np.array([1.0, 2.0]),
    np.array([[3.0], [4.0]]),
    np.array([False, True]),
)


def reward(x, a, y):
    return y[0]


def far(x, a, y):
    return y[1]


@pytest.fixture
def known():
    numbers = GPNumbers("stay", (0.1, 0.2), "squared-exponential", ((1.0, 2.0, 3.0),), (0.01,))
    method = MethodNumbers(5, (0.01,), 1.5)
    return Knowledge(name_of(RIG, "system"), SHAPE, ((0.0, 0.0),), "known", ("known",), "gp", method, numbers)


@pytest.fixture
def settings():
    return OwnSettings(cost=(name_of(far, "cost"),), reward=name_of(reward, "reward"))


@pytest.fixture
def entry(known):
    return OwnEntry(known.system)


@pytest.fixture
def prior(known, tmp_path):
    known.write(tmp_path / "prior.toml")
    return str(tmp_path / "prior.toml")


def test_the_prior_proposes_what_the_user_does_not_choose(entry, prior, known):
    proposed = {
        "tightening": (0.01,),
        "exploration_threshold": 1.5,
        "method.samples": 5,
        "belief": "gp",
        "solver": "icem",
    }
    assert entry.presets({"prior": prior}) == entry.presets({"run.prior": prior}) == {"cpu": proposed}
    networks = bind_new("prior", replace(known, belief="ensemble", gp=None))
    assert entry.presets({"prior": networks})["cpu"]["solver"] == "gradient"


def test_a_task_is_made_of_file_budget_and_data(entry, prior, settings):
    task = entry.make(prior, 3.0, settings, bind_new("data", DATA))
    assert (task.name, task.costs[0].budget, task.state_names) == (entry.spec, 3.0, ("p", "v"))
    assert task.prior.data.costs.tolist() == [[0.5], [0.0]]  # as the function says, not as it was recorded
    assert entry.make(prior, (3.0,), settings, "").prior.data is None


def test_the_budget_and_the_prior_are_asked_for(entry, prior, settings):
    with pytest.raises(
        UserError, match=r"the budget of .* is yours to say: how much may an episode cost\? Give budget="
    ):
        entry.make(prior, None, settings, "")
    with pytest.raises(UserError, match=r"nothing is known of .* yet; make a prior with 'sbsrl prior"):
        entry.make("", 3.0, settings, "")
    with pytest.raises(UserError, match="nothing is known of"):
        entry.presets()


def test_a_run_keeps_its_own_copy_of_the_prior(entry, prior, known, tmp_path):
    assert entry.prior_content(prior) == known.content
    (tmp_path / "copy.toml").write_bytes(entry.prior_content(bind_new("prior", known)))
    assert read_knowledge(tmp_path / "copy.toml") == known


def test_a_run_keeps_its_own_copy_of_the_data(entry, prior, settings, tmp_path):
    """Bit for bit, with reward and costs as they are where the copy is made."""
    system = OwnSystem(entry.spec, settings)
    (tmp_path / "copy.npz").write_bytes(entry.data_content(settings, prior, bind_new("data", DATA)))
    before, after = (read_own(system, SHAPE, data) for data in (bind_new("data", DATA), str(tmp_path / "copy.npz")))
    for name, part in before._asdict().items():
        np.testing.assert_array_equal(getattr(after, name), part, err_msg=name)
    assert read_own(system, SHAPE, "") is None
    assert archived(None) != archived(DATA)


def test_what_the_system_reports_is_taken_as_it_was_recorded(entry):
    found = read_own(OwnSystem(entry.spec, OwnSettings()), SHAPE, bind_new("data", DATA))
    assert (found.rewards.tolist(), found.costs.tolist()) == ([1.0, 2.0], [[3.0], [4.0]])
