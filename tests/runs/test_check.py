"""`sbsrl check`: every defect that it knows is found in a system that has it, and none in one that has none."""

import re

import defects
import gymnasium
import numpy as np
import pytest
import rail

from sbsrl.own.wording import in_words
from sbsrl.runs import check


def findings(system, **settings):
    return check(*in_words(system, settings))


def of_kind(found, kind):
    return [finding.text for finding in found if finding.kind == kind]


def test_nothing_is_wrong_with_a_sound_system():
    found = findings(defects.Sound, budget=10.0, safe_action=[0.0])
    assert of_kind(found, "wrong") == of_kind(found, "careful") == []
    said = " ".join(of_kind(found, "fine"))
    assert "An observation has 2 numbers (x0, x1), an action 1 (action -1 to 1), an episode 20 steps." in said
    assert "The same seed gives the same episode" in said
    assert "The belief is a Gaussian process: 3 numbers" in said
    assert "a plan at every step, so an episode takes about 6 s" in said
    assert "begins with cautious episodes near safe_action" in said


WRONG = {
    defects.NoCost: r"the info of a step has no 'cost' \(it has speed\): say with cost=",
    defects.InfiniteCost: r"the cost of step 3 is not finite",
    defects.NanObservation: r"the observation at step 4 is not finite: 'x0' is nan",
    defects.NanReward: r"the reward of step 1 is not finite",
    defects.GrowingObservation: r"the observation at step 2 has shape \(3,\), not \(2,\)",
    defects.Raises: r"step 1 raised RuntimeError: the motor is unplugged",
    defects.RaisesAtReset: r"No episode could begin: the reset raised ConnectionError: no answer .* mend reset",
    defects.BareReset: r"No episode could begin: the reset did not return observation and info",
    defects.OldStep: r"step 1 did not return observation, reward, terminated, truncated and info",
    defects.Words: r"the observation cannot be read as numbers",
    defects.Discrete: r"Discrete\(3\), and this program plans with numbers; wrap the system",
    defects.Unbounded: r"action 0 of .* has no limits \(-inf to inf\); give action_low and action_high",
    defects.Endless: r"does not say how many steps an episode has; give steps",
}


@pytest.mark.parametrize("system", WRONG, ids=lambda system: system.__name__)
def test_what_makes_a_system_useless_is_said(system):
    (said,) = of_kind(findings(system, budget=10.0), "wrong")
    assert re.search(WRONG[system], said), said


CAREFUL = {
    defects.NegativeCost: "The cost cost was negative (-0.5): a sum of such costs can hide a bad step",
    defects.OutsideItsSpace: "observations are not in the declared observation_space, the first after the reset",
    defects.ForgetsItsSeed: "reset(seed=1) began elsewhere the second time",
    defects.NoisyBeyondItsSeed: "The same seed and actions led elsewhere the second time",
    defects.Huge: "x1 is as large as",
    defects.Still: "The observation never changed",
    defects.Slow: "so an episode of 3 steps at least 0 s",
    defects.EndsAtOnce: "An episode terminated after 1 steps of next to nothing",
}


@pytest.mark.parametrize("system", CAREFUL, ids=lambda system: system.__name__)
def test_what_will_cause_trouble_is_said(system):
    found = findings(system, budget=10.0, safe_action=[0.0])
    assert of_kind(found, "wrong") == []
    assert any(CAREFUL[system] in said for said in of_kind(found, "careful")), found


def test_a_system_that_hangs_is_given_up():
    (said,) = of_kind(findings(defects.Hangs, budget=10.0, step_timeout=0.2), "wrong")
    assert "step 1 did not return within 0.2 s" in said


def test_a_budget_below_what_doing_nothing_costs_is_wrong():
    (said,) = of_kind(findings(rail, **{**rail.TASK, "budget": -1.0}), "wrong")
    assert "Next to nothing was done, and the cost place" in said
    assert "more than its budget of -1: raise it, or name a safe_action" in said


def test_a_sum_that_would_exceed_its_budget_if_the_episode_went_on_is_wrong():
    """A step costs up to 1, and an episode is cut at half of a budget of 4: 20 steps would cost more."""

    class Idle(defects.Sound):
        def step(self, action):
            *others, _ = super().step(action)
            return *others, {"cost": 1.0}

    (said,) = of_kind(findings(Idle, budget=4.0), "wrong")
    assert "the cost cost (1 per step) makes 20 per episode, more than its budget of 4" in said


def test_nothing_more_is_played_after_a_fault():
    class Counts(defects.Raises):
        resets = 0

        def reset(self, **options):
            type(self).resets += 1
            return super().reset(**options)

    findings(Counts, budget=10.0)
    assert Counts.resets == 1


def test_without_a_budget_nothing_is_shaken():
    class Records(defects.Sound):
        sent = ()

        def step(self, action):
            type(self).sent = (*self.sent, float(action[0]))
            return super().step(action)

    findings(Records)
    assert set(Records.sent) == {0.0}


def test_recorded_data_count_for_the_choice_of_a_belief(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 1))
    np.savez(tmp_path / "much.npz", states=x, actions=rng.uniform(-1, 1, (5000, 1)), next_states=x + 0.1)
    found = findings(rail, **rail.TASK, data=tmp_path / "much.npz")
    assert any("an ensemble of networks: 2 numbers in observation and action, and 5080" in f.text for f in found)


def test_without_a_budget_it_says_what_steps_cost():
    task = {name: value for name, value in rail.TASK.items() if name != "budget"}
    assert any(
        "No budget was given for place; in these steps it was" in said
        for said in of_kind(findings(rail, **task), "careful")
    )


@pytest.mark.parametrize("raises", [True, False])
def test_a_system_that_refuses_the_safe_action_after_the_end_is_mentioned(raises):
    class Ends(defects.Sound):
        def step(self, action):
            if self.n >= 5 and raises:
                raise RuntimeError("the episode is over")
            y, reward, _, _, info = super().step(action)
            return y, reward, False, self.n >= 5, info

    said = of_kind(findings(Ends, budget=10.0, safe_action=[0.0]), "careful")
    assert (
        any("After the end of an episode sending the safe action raised RuntimeError" in each for each in said)
        == raises
    )


def test_what_cannot_be_found_is_said():
    (only,) = check("gymnasium:NoSuchThing-v0", {})
    assert only.kind == "wrong"
    assert only.text.startswith("gymnasium.make('NoSuchThing-v0') failed: ")


def test_a_machine_without_a_way_to_rest_is_mentioned():
    assert any("No safe_action is named" in said for said in of_kind(findings(rail, **rail.TASK), "careful"))
    assert not any(
        "No safe_action" in said for said in of_kind(findings(rail, **rail.TASK, fallback=rail.hold), "careful")
    )


def test_the_six_values_of_safety_gymnasium_are_understood():
    class Six(defects.Sound):
        def step(self, action):
            y, reward, *ends, info = super().step(action)
            return y, reward, info.pop("cost"), *ends, info

    found = findings(Six, budget=10.0)
    assert of_kind(found, "wrong") == []
    assert any("The cost cost was" in said for said in of_kind(found, "fine"))


def test_an_environment_that_was_given_is_not_closed():
    class Kept(defects.Sound):
        closed = False

        def close(self):
            self.closed = True

    env = Kept()
    assert isinstance(env, gymnasium.Env)
    findings(env, budget=10.0)
    assert not env.closed
