"""The heater brings the room to 21 degrees, and its core must never exceed 26: learned with a slightly wrong model."""

import heater_plant
import numpy as np

import sbsrl


def model(x, a):
    core, room = x
    return np.array([core + (10 * a[0] - core + room) / 8, room + ((core - room) / 2 - 0.07 * (room - 10)) / 8])


def comfort(x, a, y):
    return -abs(y[1] - 21)


def core(x, a, y):
    return y[0]


def learn(**options):
    task = {"reward": comfort, "cost": core, "aggregation": "statewise", "budget": 26.0, "steps": 60}
    return sbsrl.learn(heater_plant, **task, simulator=model, start=[15, 15], episodes=6, **options)


if __name__ == "__main__":
    learn(out="runs/heater-model")
