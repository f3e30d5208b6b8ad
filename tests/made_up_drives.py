"""Made-up episodes of the race car: it goes straight to the left, and pays the same in every step."""

import numpy as np

from sbsrl.report.drives import Drives
from sbsrl.report.scene import Moment, places
from sbsrl.tasks.race_car import NEWEST, SIZE


def make_drives(costs, steps=9):
    """Episodes that cost so much, of one model a row and one initial state a column. Each has a p_y of its own."""
    totals = np.array(costs, float)
    states = np.zeros((*totals.shape, steps + 1, SIZE))
    states[..., NEWEST.start] = np.linspace(1.4, 0.0, steps + 1)
    states[..., NEWEST.start + 1] = -1.0 - 0.1 * np.arange(totals.size).reshape(*totals.shape, 1) / totals.size
    states[..., NEWEST.start + 3] = -1.0
    charged = np.repeat(totals[..., None] / steps, steps, axis=-1)
    return Drives(states, np.full_like(charged, 1.0), charged)


def make_moment(costs, steps=9, title="first episode"):
    """Of three samples the first fears everything beyond p_x = 1, the second beyond 0.5, the third nothing."""
    p_x = places()[..., 0]
    charge = np.stack([p_x > 1.0, p_x > 0.5, np.zeros_like(p_x)]).astype(float)
    return Moment(title, make_drives(costs, steps), make_drives([[0.0] * len(costs[0])], steps), charge)
