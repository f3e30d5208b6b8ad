"""Kernels: what is believed about the shape of the dynamics before any data."""

from .algebra import On, Product, Scaled, Sum
from .base import Kernel, gram
from .features import ESTIMATORS, FeatureMap
from .finite import FiniteRank, Linear
from .maps import Angles, BoundedMap, Clip, Tanh
from .stationary import Matern, SquaredExponential

__all__ = [
    "ESTIMATORS",
    "Angles",
    "BoundedMap",
    "Clip",
    "FeatureMap",
    "FiniteRank",
    "Kernel",
    "Linear",
    "Matern",
    "On",
    "Product",
    "Scaled",
    "SquaredExponential",
    "Sum",
    "Tanh",
    "gram",
]
