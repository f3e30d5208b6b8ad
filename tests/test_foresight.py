"""What samples foretell for actions that were taken, against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.foresight import foretell
from sbsrl.model import KnownModel, Signals
from sbsrl.transitions import Episode

SIGNALS = Signals(lambda x, a, y: y[0], lambda x, a, y: jnp.stack([y[0] ** 2, jnp.abs(a[0])]))


class Gains:
    """Samples x + g a, for three gains."""

    gains = (0.5, 1.0, 2.0)

    def __len__(self):
        return 3

    def member(self, m):
        gain = jnp.asarray(self.gains, jnp.float32)[m]
        return KnownModel(lambda x, a: x + gain.astype(x.dtype) * a, SIGNALS)


def episode(steps=7):
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(steps + 1, 1)), rng.normal(size=(steps, 1))
    return Episode(states, actions, np.zeros(steps), np.zeros((steps, 2)))


def test_forecasts_begin_anew_at_the_true_state_every_window():
    """Within single precision; 7 steps are two windows of 3 and a last one of 1."""
    played = episode()
    found = foretell(Gains(), played, 3, jax.random.key(0))
    assert (found.states.shape, found.costs.shape, found.window) == ((3, 7, 1), (3, 7, 2), 3)
    for m, gain in enumerate(Gains.gains):
        for t in range(7):
            begin = t - t % 3
            expected = played.states[begin, 0] + gain * played.actions[begin : t + 1, 0].sum()
            np.testing.assert_allclose(found.states[m, t, 0], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(
                found.costs[m, t], [expected**2, abs(played.actions[t, 0])], rtol=1e-4, atol=1e-6
            )


def test_a_window_is_no_longer_than_the_episode():
    assert foretell(Gains(), episode(4), 100, jax.random.key(0)).window == 4
