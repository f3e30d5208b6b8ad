"""Continuity of the learned model, and of what a policy sees (lemmas continuity_sigma and concentration_sigma)."""

import math

import numpy as np
from jaxtyping import Float

from .checks import at_least, positive, whole
from .tightening import EpisodeShape

__all__ = ["mean_lipschitz", "perturbation_bound", "uncertainty_holder"]


def uncertainty_holder(kernel_lipschitz: float, outputs: int) -> float:
    """L_s = sqrt(2 d_x L_k): |s_n(z) - s_n(z')| <= L_s |z - z'|^(1/2)."""
    return math.sqrt(2 * whole("the number of outputs", outputs) * at_least("L_k", kernel_lipschitz))


def mean_lipschitz(
    prior_lipschitz: float, kernel_lipschitz: float, residuals: Float[np.ndarray, "N dx"], noise: float
) -> float:
    """L_{mu_n} = sqrt(sum_j (L_mu + sqrt(N) L_k |y_j - mu_j| / sigma_w^2)^2), N = n T points with residuals y - mu."""
    at_least("L_mu", prior_lipschitz)
    at_least("L_k", kernel_lipschitz)
    length = np.linalg.norm(residuals, axis=0)
    each = prior_lipschitz + math.sqrt(len(residuals)) * kernel_lipschitz * length / positive("sigma_w", noise) ** 2
    return float(np.linalg.norm(each))


def perturbation_bound(
    distance: float, uncertainty_holder: float, mean_lipschitz: float, supremum: float, shape: EpisodeShape
) -> float:
    """How much less another policy may see: with e = |pi' - pi|,

    |J_{s_n}(pi', mu_n) - J_{s_n}(pi, mu_n)| <= sqrt(e) T (L_s + T L_{mu_n} sqrt(d_x sigma_max e) / sigma_w).
    """
    shape.check()
    at_least("the distance of the policies", distance)
    at_least("L_s", uncertainty_holder)
    at_least("L_mu", mean_lipschitz)
    T, root = shape.horizon, math.sqrt(distance)
    drift = T * mean_lipschitz * math.sqrt(shape.outputs * at_least("sigma_max", supremum)) * root / shape.noise
    return root * T * (uncertainty_holder + drift)
