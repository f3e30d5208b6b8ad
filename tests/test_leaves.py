"""States keep the form in which they are saved, and what is no number is found. (The rest: runs/test_checkpoint.py.)"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.leaves import check_form, nan_in


class Net(eqx.Module):
    weights: jax.Array
    key: jax.Array
    size: int = eqx.field(static=True)


def net(dtype=jnp.float32, width=3, size=1):
    return {"net": Net(jnp.ones((2, width), dtype), jax.random.key(0), size), "steps": jnp.zeros((), jnp.int32)}


def test_other_numbers_are_the_same_form():
    check_form("the state", net(), jax.tree.map(lambda leaf: leaf, net()))
    check_form("the state", (), ())
    check_form("the state", {"a": np.float32(1)}, {"a": np.float32(2)})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (net(jnp.float64), r"is float64 \(2, 3\) and not float32 \(2, 3\)"),
        (net(width=4), r"is float32 \(2, 4\) and not float32 \(2, 3\)"),
        (net(size=2), "its structure is another one"),
        ({**net(), "more": jnp.zeros(1)}, "it has .*more.*, which the learner has not"),
    ],
)
def test_another_form_is_refused_with_the_name_of_what_changed(after, said):
    with pytest.raises(UserError, match=rf"^the state must keep its shapes and types.*{said}"):
        check_form("the state", net(), after)


def test_nan_is_found_by_name():
    assert nan_in(net()) is None
    assert nan_in({"a": jnp.inf * jnp.ones(2), "n": jnp.zeros(3, jnp.int32)}) is None
    assert "weights" in nan_in(eqx.tree_at(lambda t: t["net"].weights, net(), jnp.full((2, 3), jnp.nan)))
    assert nan_in(()) is None
