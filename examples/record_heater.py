"""Records heater.csv: four mornings of a thermostat that switches the heater off when its core reaches 21.5 degrees."""

import csv
from pathlib import Path

import heater_plant
import numpy as np


def main():
    rng = np.random.default_rng(2026)
    with Path(__file__).with_name("heater.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["episode", "time", "core", "room", "power"])
        for morning in range(4):
            x, on = heater_plant.reset(rng), True
            for minute in range(60):
                on = x[0] < (21.5 if on else 19.0)
                power = rng.uniform(0.4, 1.0) if on else 0.0
                table.writerow([morning, minute, *x.round(4), round(power, 4)])
                x = heater_plant.step(x, [power], rng)


if __name__ == "__main__":
    main()
