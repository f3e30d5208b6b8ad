"""The same heater without any model: four mornings were recorded, in which a thermostat kept the core below 23."""

from pathlib import Path

import heater_plant

import sbsrl


def comfort(x, a, y):
    return -abs(y[1] - 21)


def core(x, a, y):
    return y[0]


def learn(**options):
    task = {"reward": comfort, "cost": core, "aggregation": "statewise", "budget": 26.0, "steps": 60}
    names = {"data": Path(__file__).with_name("heater.csv"), "action_names": "power"}
    return sbsrl.learn(heater_plant, **task, **names, episodes=6, **options)


if __name__ == "__main__":
    learn(out="runs/heater-csv")
