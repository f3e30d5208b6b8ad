"""How large the mismatch between the imperfect simulator and the true pendulum is; prints `mismatch.md`.

For any weights w, |f|_k >= w.y / sqrt(w' K w): a lower bound on the RKHS norm that rounding in w cannot spoil.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sbsrl import make_task
from sbsrl.kernels import Kernel, gram


def mismatch(points: int, limit: float) -> tuple[Float[Array, "n dz"], Float[Array, "n dx"]]:
    """Inputs and scaled mismatches at random states with |omega| <= limit."""
    task, rng = make_task("pendulum"), np.random.default_rng(0)
    theta, omega, a = (rng.uniform(-r, r, points) for r in (np.pi, limit, 1.0))
    x = jnp.asarray(np.stack([np.cos(theta), np.sin(theta), omega], axis=1))
    actions = jnp.asarray(a[:, None])
    difference = jax.vmap(task.dynamics)(x, actions) - jax.vmap(task.prior.mean)(x, actions)
    inputs = jnp.concatenate([x, actions], axis=1)
    return inputs, difference / jnp.asarray(task.prior.scale)


def lower_bounds(points: int, nugget: float) -> list[float]:
    inputs, y = mismatch(points, limit=6.0)
    kernel = make_task("pendulum").prior.kernel
    assert isinstance(kernel, Kernel)
    k = gram(kernel, inputs, inputs)
    w = jnp.linalg.solve(k + nugget * jnp.eye(points), y)
    return [float(w[:, j] @ y[:, j] / jnp.sqrt(w[:, j] @ k @ w[:, j])) for j in range(y.shape[1])]


def main() -> None:
    _, y = mismatch(100_000, limit=6.0)
    print("# The mismatch of the pendulum's simulator (`python results/pendulum/mismatch.py`)\n")
    largest = np.abs(np.asarray(y)).max(axis=0)
    print("Largest mismatch at 100000 states, in units of `scale`: " + ", ".join(f"{v:.2f}" for v in largest) + ".\n")
    print("Lower bounds on its RKHS norm, for cos th, sin th, omega:\n")
    print("| points | nugget | bounds |\n|---|---|---|")
    for points in (500, 1500, 3000):
        for nugget in (1e-8, 1e-10, 1e-11):
            print(f"| {points} | {nugget:g} | " + ", ".join(f"{b:.2f}" for b in lower_bounds(points, nugget)) + " |")
    print("\nThey still grow: the norm itself is not known.")


if __name__ == "__main__":
    main()
