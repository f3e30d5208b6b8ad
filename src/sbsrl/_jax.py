"""The two precisions in which this package computes. JAX is configured by `_configure`, with the package."""

import jax.numpy as jnp

PLAN = jnp.float32
"""The precision of planning: rollouts of the nominal and of the sampled dynamics."""

EXACT = jnp.float64
"""The precision of beliefs: Gram matrices, factors, posterior variances."""
