"""The width of the confidence sets (lemma confidence_gp of the paper)."""

from typing import Literal, get_args

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import UserError, unknown

__all__ = ["CONVENTIONS", "Convention", "confidence_width"]

Convention = Literal["corrected", "paper"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)


def confidence_width(
    information: Float[Array, "..."],
    bound: float,
    noise: Float[Array, "..."],
    outputs: int,
    delta: float,
    convention: str = "corrected",
) -> Float[Array, "..."]:
    """beta_n = B + c sqrt(2 (gamma + 1 + ln(d_x / delta))), with which |mu_n - f*| <= beta_n sigma_n.

    `information` is gamma: the largest gain of so many points, or the gain 1/2 ln det(I + K / sigma_w^2) of the data,
    for which the bound holds as well. The paper has c = sigma_w; with its regulariser sigma_w^2 I the
    self-normalised bound has c = 1, which is the default (`convention="paper"` is too narrow for sigma_w < 1).
    """
    if convention not in CONVENTIONS:
        raise unknown("convention", convention, dict.fromkeys(CONVENTIONS, ""))
    if not 0 < delta < 1:
        raise UserError(f"delta={delta:g} is a probability of failure; it must be between 0 and 1.")
    if not bound >= 0:
        raise UserError(f"the RKHS bound B={bound:g} must not be negative.")
    factor = noise if convention == "paper" else jnp.ones_like(noise)
    return bound + factor * jnp.sqrt(2 * (information + 1 + jnp.log(outputs / delta)))
