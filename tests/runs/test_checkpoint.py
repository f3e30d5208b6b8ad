import jax
import numpy as np
import pytest
from safetensors.numpy import save

from sbsrl import UserError
from sbsrl.loop import algorithm_1
from sbsrl.runs import Specification
from sbsrl.runs.checkpoint import load_checkpoint, save_checkpoint


@pytest.fixture
def spec(tiny):
    return Specification.make("pendulum", "sbsrl", 0, "cpu", tiny)


def test_a_learner_comes_back_bit_for_bit(spec, tmp_path):
    experiment, fresh = spec.start()
    learner = next(algorithm_1(experiment, fresh)).learner
    save_checkpoint(tmp_path / "c", learner, lines=1)
    loaded, lines = load_checkpoint(tmp_path / "c", fresh)
    assert lines == 1
    saved, again = jax.tree.leaves(learner), jax.tree.leaves(loaded)
    assert jax.tree.structure(learner) == jax.tree.structure(loaded)
    for a, b in zip(saved, again, strict=True):
        assert a.dtype == b.dtype
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)  # noqa: PLW2901
        assert np.array_equal(a, b)


def test_a_damaged_checkpoint_is_reported(spec, tmp_path):
    _, fresh = spec.start()
    save_checkpoint(tmp_path / "c", fresh, lines=0)
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:1000])
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(tmp_path / "c", fresh)


def test_a_checkpoint_of_another_size_is_refused(spec, tiny, tmp_path):
    save_checkpoint(tmp_path / "c", spec.start()[1], lines=0)
    longer = Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, "episodes": 5})
    with pytest.raises(UserError, match="does not fit the configuration"):
        load_checkpoint(tmp_path / "c", longer.start()[1])


def test_a_checkpoint_of_something_else_is_refused(spec, tmp_path):
    (tmp_path / "c").write_bytes(save({"weights": np.zeros(3)}, metadata={"lines": "0"}))
    with pytest.raises(UserError, match="does not fit the configuration"):
        load_checkpoint(tmp_path / "c", spec.start()[1])
