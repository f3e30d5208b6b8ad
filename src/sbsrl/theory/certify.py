"""The calculator: every quantity of the theory for one setting, each with how far it can be trusted.

`certified` is proven, if the paper's assumptions hold. `estimated` is simulated. `heuristic` was chosen, or rests on
something that is not proven. `impossible` has no finite or useful value, or what it needs is not known.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..task import Task
from .assumptions import Assumption, assumptions
from .calculator import Calculator
from .conclusions import conclusions
from .quantities import Quantity, quantities
from .setting import Setting

__all__ = ["Certification", "Point", "certify", "tradeoff"]


@dataclass(frozen=True, eq=False)
class Certification:
    """What the theory says about a setting."""

    setting: Setting
    quantities: tuple[Quantity, ...]
    assumptions: tuple[Assumption, ...]
    conclusions: tuple[str, ...]

    def quantity(self, symbol: str) -> Quantity:
        """The one with this symbol."""
        return next(quantity for quantity in self.quantities if quantity.symbol == symbol)


def certify(setting: Setting, task: Task | None = None) -> Certification:
    """All quantities, the assumptions they rest on, and conclusions in plain words."""
    calculator, standing = Calculator(setting), assumptions(setting, task)
    return Certification(setting, tuple(quantities(calculator)), standing, tuple(conclusions(calculator, standing)))


class Point(NamedTuple):
    """One choice of zeta: how many samples it needs, and how much of the budget."""

    zeta: float
    log10_samples: float | None
    """None where B is not known, or no bound is finite."""
    tightening: float


def tradeoff(setting: Setting, points: int = 21, decades: float = 2.0) -> tuple[Point, ...]:
    """The curve zeta - log10 M - Delta_zeta, some decades to both sides of the largest zeta that is admissible."""
    calculator = Calculator(setting)
    centre = setting.closeness_limit if math.isfinite(setting.closeness_limit) else setting.closeness

    def point(zeta: float) -> Point:
        log_m = math.inf if setting.bound is None else calculator.log_samples(zeta)
        return Point(zeta, log_m / math.log(10) if math.isfinite(log_m) else None, calculator.tightening(zeta))

    return tuple(point(float(zeta)) for zeta in centre * 10.0 ** np.linspace(-decades, decades, points))
