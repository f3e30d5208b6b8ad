from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def compile_quickly() -> Iterator[None]:
    """What runs once, on a few points, takes longer to optimise than to run."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
