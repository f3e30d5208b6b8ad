"""Networks as ONNX: the file acts as the policy does. Runs with networks can be looked at again."""

import builtins
import sys

import numpy as np
import onnxruntime
import pytest
import slider

import sbsrl
from sbsrl import UserError
from sbsrl.runs import look_at


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        slider.register(patch.setitem)
        yield sbsrl.learn("slider", out=tmp_path_factory.mktemp("networks") / "run")


def test_the_file_acts_as_the_policy_does(run, tmp_path):
    """Within 1e-4 of the range of actions, which is what `export` promises; it is said how far it is off."""
    written = sbsrl.export(run.folder, tmp_path / "new" / "policy.onnx")
    assert written.error <= 1e-4
    session = onnxruntime.InferenceSession(written.path)
    task, rng = run.experiment.task, np.random.default_rng(5)
    observations = rng.normal(size=(50, task.state_size))
    (actions,) = session.run(["action"], {"observation": observations.astype(np.float32)})
    run.policy.reset()
    expected = np.array([run.policy(x) for x in observations])
    span = np.array(task.action_high) - np.array(task.action_low)
    assert np.abs(actions - expected).max() <= 1e-4 * span.max()
    assert np.ptp(actions) > 1e-3  # it does something


def test_by_default_it_is_in_the_folder_of_the_run(run):
    assert sbsrl.export(run.folder).path == run.folder / "policy.onnx"


def test_a_conversion_that_differs_is_not_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["sbsrl.runs.export"], "TOLERANCE", -1.0)
    with pytest.raises(UserError, match=r"^the exported network differs from the original by .* nothing was written"):
        sbsrl.export(run.folder, tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def test_without_the_tools_it_says_how_to_get_them(run, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "jax2onnx":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'sbsrl\[onnx\]'"):
        sbsrl.export(run.folder, tmp_path / "policy.onnx")


def test_a_loaded_network_acts_as_the_one_that_was_learned(run):
    x = np.zeros(run.experiment.task.state_size)
    np.testing.assert_array_equal(sbsrl.load(run.folder).policy(x), run.policy(x))


@pytest.mark.parametrize("episode", [0, 2])
def test_forecasts_of_networks_are_those_of_the_samples_before_the_episode(run, episode):
    look = look_at(run.folder, episode)
    samples = run.experiment.settings.method.samples
    assert look.forecast.states.shape[:2] == (samples, len(look.episode.actions))
    assert np.isfinite(look.forecast.states).all()
