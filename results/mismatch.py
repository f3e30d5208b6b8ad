"""How large the mismatch between a task's prior mean and the truth is; prints `results/TASK/mismatch.md`.

For any weights w, |f|_k >= w.y / sqrt(w' K w): a lower bound on the RKHS norm that rounding in w cannot spoil.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sbsrl import make_task
from sbsrl.kernels import Kernel, gram
from sbsrl.task import Task


def mismatch(task: Task, points: int) -> tuple[Float[Array, "n dz"], Float[Array, "n dx"]]:
    """Inputs and scaled mismatches at random states, `task.sample_state`, and actions."""
    assert task.sample_state is not None
    assert task.equations is not None
    assert task.prior.gp is not None
    state_key, action_key = jax.random.split(jax.random.key(0))
    x = jax.vmap(task.sample_state)(jax.random.split(state_key, points))
    low, high = jnp.asarray(task.action_low), jnp.asarray(task.action_high)
    actions = jax.random.uniform(action_key, (points, task.action_size), minval=low, maxval=high)
    difference = jax.vmap(task.equations.dynamics)(x, actions) - jax.vmap(task.prior.gp.mean)(x, actions)
    return jnp.concatenate([x, actions], axis=1), difference / jnp.asarray(task.prior.gp.scale)


def lower_bounds(task: Task, points: int, nugget: float) -> list[float]:
    inputs, y = mismatch(task, points)
    assert task.prior.gp is not None
    assert isinstance(task.prior.gp.kernel, Kernel)
    kernel = task.prior.gp.kernel
    k = gram(kernel, inputs, inputs)
    w = jnp.linalg.solve(k + nugget * jnp.eye(points), y)
    return [float(w[:, j] @ y[:, j] / jnp.sqrt(w[:, j] @ k @ w[:, j])) for j in range(y.shape[1])]


def main(name: str) -> None:
    task = make_task(name)
    _, y = mismatch(task, 100_000)
    print(f"# The mismatch of the simulator of {name} (`python results/mismatch.py {name}`)\n")
    largest = np.abs(np.asarray(y)).max(axis=0)
    print("Largest mismatch at 100000 states, in units of `scale`: " + ", ".join(f"{v:.2f}" for v in largest) + ".\n")
    print(f"Lower bounds on its RKHS norm, for {', '.join(task.state_names)}:\n")
    print("| points | nugget | bounds |\n|---|---|---|")
    for points in (500, 1500, 3000):
        for nugget in (1e-8, 1e-10, 1e-11):
            bounds = ", ".join(f"{b:.2f}" for b in lower_bounds(task, points, nugget))
            print(f"| {points} | {nugget:g} | {bounds} |")
    print("\nThey still grow: the norm itself is not known.")


if __name__ == "__main__":
    main(sys.argv[1])
