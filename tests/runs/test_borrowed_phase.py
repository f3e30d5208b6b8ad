"""A run may begin with the offline phase of another one, if that is of its own kind."""

import json
import shutil

import pytest
import slider

from sbsrl import UserError, learn
from sbsrl.runs import train
from sbsrl.runs.borrowed_phase import KEPT
from sbsrl.specification import Specification

HASTY = {"offline_updates": 50, "offline_blocks": 1, "checks": 1, "episodes": 1}


@pytest.fixture(scope="module", autouse=True)
def known():
    with pytest.MonkeyPatch.context() as patch:
        slider.register(patch.setitem)
        yield


@pytest.fixture(scope="module")
def lender(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lender") / "run"
    train(Specification.make("slider", "sbsrl", 7, "cpu", HASTY), folder)
    return folder


def test_what_was_learned_offline_is_that_of_the_other_run(lender, tmp_path, left):
    """A run with the lender's own seed is the same whether it learns offline itself or not, to the last bit."""
    for name, more in (("own", {}), ("borrowed", {"offline": str(lender)})):
        train(Specification.make("slider", "mbpo", 7, "cpu", {**HASTY, **more}), tmp_path / name)
    one, other = (left(tmp_path / name) for name in ("own", "borrowed"))
    assert (one.ledger, one.trajectories) == (other.ledger, other.trajectories)
    numbers = [json.loads((tmp_path / name / "offline.json").read_text()) for name in ("own", "borrowed")]
    assert {k: v for k, v in numbers[0].items() if k != "seconds"} == {
        k: v for k, v in numbers[1].items() if k != "seconds"
    }
    assert numbers[1] == json.loads((lender / "offline.json").read_text())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"solver": "actor-critic"}, 'its solver is "gradient", and here it is "actor-critic"'),
        ({"width": 8}, "its belief.width is 16, and here it is 8"),
        ({"budget": 2.0}, r"its run.budget is \[1.0\], and here it is \[2.0\]"),
        ({"data": "pusher:13:0"}, 'its run.data is "pusher:12:0", and here it is "pusher:13:0"'),
    ],
)
def test_the_phase_of_another_kind_of_run_is_refused_in_one_line(lender, changes, complaint):
    with pytest.raises(UserError, match=f"of another kind of run: {complaint}"):
        learn("slider", offline=str(lender), **{**HASTY, **changes})


def test_the_phase_of_another_task_is_refused(lender, tmp_path):
    shutil.copytree(lender, tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "task": "race-car"}))
    with pytest.raises(UserError, match="its task is race-car, and here it is slider"):
        learn("slider", offline=str(tmp_path / "other"), **HASTY)


@pytest.mark.parametrize("spoil", ["missing", "damaged"])
def test_a_folder_without_a_phase_is_refused(lender, tmp_path, spoil):
    shutil.copytree(lender, tmp_path / "other")
    if spoil == "missing":
        shutil.rmtree(tmp_path / "other" / KEPT)
    else:
        (tmp_path / "other" / KEPT / "learner.safetensors").write_bytes(b"no")
    with pytest.raises(UserError, match="has no offline phase to begin with, or it cannot be read"):
        learn("slider", offline=str(tmp_path / "other"), **HASTY)


def test_a_solver_without_an_offline_phase_cannot_begin_with_one(lender):
    with pytest.raises(UserError, match=r"^offline=.* is an offline phase to begin with, and solver=icem has none"):
        learn("pendulum", offline=str(lender))
