"""The calculator: every quantity of the theory for given premises, each with how far it can be trusted.

`certified` is proven, if the paper's assumptions hold. `estimated` is simulated. `heuristic` was chosen, or rests on
something that is not proven. `impossible` has no finite or useful value, or what it needs is not known.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .assumptions import Assumption, TaskFacts, assumptions
from .calculator import Calculator
from .conclusions import conclusions
from .premises import Premises
from .quantities import Quantity, quantities

__all__ = ["Certification", "Point", "certify", "tradeoff"]


@dataclass(frozen=True, eq=False)
class Certification:
    """What the theory says under these premises."""

    premises: Premises
    quantities: tuple[Quantity, ...]
    assumptions: tuple[Assumption, ...]
    conclusions: tuple[str, ...]

    def quantity(self, symbol: str) -> Quantity:
        """The one with this symbol."""
        return next(quantity for quantity in self.quantities if quantity.symbol == symbol)


def certify(premises: Premises, facts: TaskFacts | None = None) -> Certification:
    """All quantities, the assumptions they rest on, and conclusions in plain words.

    `facts` are what is known of the task itself; without them the premises are taken as given.
    """
    calculator, standing = Calculator(premises), assumptions(premises, facts)
    return Certification(premises, tuple(quantities(calculator)), standing, tuple(conclusions(calculator, standing)))


class Point(NamedTuple):
    """One choice of zeta: how many samples it needs, and how much of the budget."""

    zeta: float
    log10_samples: float | None
    """None where B is not known, or no bound is finite."""
    tightening: float


def tradeoff(premises: Premises, points: int = 21, decades: float = 2.0) -> tuple[Point, ...]:
    """The curve zeta - log10 M - Delta_zeta, some decades to both sides of the largest zeta that is admissible."""
    calculator = Calculator(premises)
    centre = premises.closeness_limit if math.isfinite(premises.closeness_limit) else premises.closeness

    def point(zeta: float) -> Point:
        log_m = math.inf if premises.bound is None else calculator.log_samples(zeta)
        return Point(zeta, log_m / math.log(10) if math.isfinite(log_m) else None, calculator.tightening(zeta))

    return tuple(point(float(zeta)) for zeta in centre * 10.0 ** np.linspace(-decades, decades, points))
