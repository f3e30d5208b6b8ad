"""Gymnasium's pendulum, which must never turn faster than 6 rad/s. Nothing is known of it beforehand."""

import sbsrl


def speed(x, a, y):
    return abs(y[2])


def learn(**options):
    task = {"cost": speed, "budget": 6.0, "aggregation": "statewise", "steps": 100}
    return sbsrl.learn("gymnasium:Pendulum-v1", **task, episodes=6, **options)


if __name__ == "__main__":
    learn(out="runs/pendulum-speed")
