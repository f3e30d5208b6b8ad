"""A run may begin with the offline phase of another one, if that is of its own kind."""

import json
import shutil

import pytest
import slider

from sbsrl import UserError, learn
from sbsrl.offline import collect
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
        ({"data": "pusher:13:0"}, 'its data are "pusher:12:0", and here they are "pusher:13:0", which are not'),
    ],
)
def test_the_phase_of_another_kind_of_run_is_refused_in_one_line(lender, changes, complaint, tmp_path):
    with pytest.raises(UserError, match=f"of another kind of run: {complaint}"):
        learn("slider", offline=str(lender), out=tmp_path / "run", **{**HASTY, **changes})
    assert not (tmp_path / "run").exists()


def test_files_are_compared_by_their_content(lender, tmp_path):
    """The same name for other data is another thing, and another name for the same is not."""
    task = Specification.make("slider", "sbsrl", 0, "cpu", {}).make_task()
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        collect(task, "pusher", seed=seed, episodes=6).save(tmp_path / f"{name}.npz")
    train(Specification.make("slider", "sbsrl", 7, "cpu", {**HASTY, "data": str(tmp_path / "one.npz")}), tmp_path / "a")
    borrowed = {**HASTY, "offline": str(tmp_path / "a")}
    learn("slider", "mbpo", data=str(tmp_path / "same.npz"), **borrowed)
    with pytest.raises(UserError, match=r"its data are .*one.npz.*other.npz.*, which are not the same"):
        learn("slider", "mbpo", data=str(tmp_path / "other.npz"), **borrowed)


def test_what_the_other_run_did_not_judge_is_judged_here(lender, tmp_path):
    learn("slider", offline=str(lender), judged=4, out=tmp_path / "judged", **HASTY)
    numbers = json.loads((tmp_path / "judged" / "offline.json").read_text())
    assert {"clone/true_return", "prior/true_return"} <= set(numbers)


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
