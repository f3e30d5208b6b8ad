"""An ensemble without training: two states, of which the second is predicted, one action, one cost."""

import jax
import jax.numpy as jnp

from sbsrl.belief.ensemble.model import Ensemble
from sbsrl.belief.ensemble.nets import Nets, Range, Scales
from sbsrl.model import KnownSignals
from sbsrl.structure import Structure

PART = (1,)


def complete(x, a, new):
    """The first state is the second one of the step before."""
    return jnp.concatenate([x[1:], new])


def array(*values):
    return jnp.array(values, jnp.float32)


def make_ensemble(members=4, noisy="never", known=KnownSignals(), seed=0, **parts):  # noqa: B008
    structure = parts.pop("cost_structure", None)
    deciding, near = (3, 1) if structure is None else (structure.size,) * 2
    fields = {
        "nets": Nets.create(jax.random.key(seed), (3, 16, 3), (deciding, 16, 1), members, (near, 3.0, 1.5)),
        "scales": Scales(
            array(0.1, 0.2),
            array(1.0, 2.0),
            array(0.0),
            array(1.0),
            array(0.05),
            array(0.5),
            jnp.float32(0.3),
            jnp.float32(2.0),
        ),
        "range": Range(array(-50.0), array(50.0), jnp.float32(-90.0), jnp.float32(90.0)),
        "caps": array(8.0),
        **parts,
    }
    return Ensemble(**fields, structure=Structure(PART, complete), cost_structure=structure, known=known, noisy=noisy)
