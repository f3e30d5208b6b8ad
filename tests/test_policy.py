"""Policies as a user calls them."""

import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.policy import Controller


class Spender:
    """Counts what it was told, and says how large a state it saw."""

    spends = True

    def init(self):
        return 0.0

    def act(self, x, state, key):
        return np.array([state, float(len(x))]), state, {}

    def observe(self, state, reward, costs):
        return state + float(costs[0])


def test_a_policy_that_spends_a_budget_must_be_told_what_steps_cost():
    policy = Controller(Spender())
    policy([0.0])
    with pytest.raises(
        UserError, match=r"^this policy spends a budget .* call observe\(reward, costs\) after every step"
    ):
        policy([0.0])
    policy.observe(0.0, 2.5)
    assert policy([0.0])[0] == 2.5
    policy.reset()
    assert policy([0.0])[0] == 0.0


def test_what_is_not_observed_is_added():
    assert Controller(Spender(), unobserved=2)([1.0, 2.0])[1] == 4.0
