"""MuJoCo's inverted pendulum, whose cart must stay within 0.3 of the middle. Nothing is known of it beforehand."""

import sbsrl


def distance(x, a, y):
    return abs(y[0])


def learn(**options):
    task = {"cost": distance, "budget": 0.3, "aggregation": "statewise", "steps": 100}
    return sbsrl.learn("gymnasium:InvertedPendulum-v5", **task, episodes=5, **options)


if __name__ == "__main__":
    learn(out="runs/cart-bound")
