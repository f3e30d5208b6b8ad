"""What is known of costs: which numbers decide them."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import slider

from sbsrl.errors import UserError
from sbsrl.structure import CostStructure


def product(seen):
    """Of the three inputs."""
    return jnp.stack([seen[0] * seen[1] * seen[2], seen[0]])


def test_features_are_functions_of_the_inputs_in_their_order():
    """Of x_1, a_0 and x_0, where (x, a) has two and one numbers; any number of rows, or none."""
    structure = CostStructure((1, 2, 0), features=product)
    x, a = jnp.array([[2.0, 3.0], [4.0, 5.0]]), jnp.array([[7.0], [11.0]])
    np.testing.assert_allclose(structure.deciding(x, a), [[42, 3], [220, 5]])
    np.testing.assert_allclose(structure.deciding(x[None], a[None])[0], structure.deciding(x, a))
    np.testing.assert_allclose(structure.deciding(x[0], a[0]), [42, 3])


def test_as_many_numbers_decide_as_there_are_features_or_inputs():
    assert CostStructure((1, 2, 0), features=product).size == 2
    assert CostStructure((1, 2, 0)).size == 3


@pytest.mark.parametrize("inputs", [(), (0, 0), (-1, 2)])
def test_inputs_that_are_none_are_refused(inputs):
    with pytest.raises(UserError, match="name indices of"):
        CostStructure(inputs)


def test_inputs_that_the_task_does_not_have_are_refused():
    with pytest.raises(UserError, match=r"depend on input 3; of .* there are 3"):
        replace(slider.make(), cost_structure=CostStructure((0, 3)))
