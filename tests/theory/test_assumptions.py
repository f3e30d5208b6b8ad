"""The assumptions, judged by what is known of a task."""

import pytest

from sbsrl.kernels import Linear
from sbsrl.theory import Premises, TaskFacts, assumptions

FACTS = TaskFacts(modelled_noise=(0.1, 0.2), true_noise=(0.1, 0.2), bound_source="measured")


def judged(label, facts, **changes):
    """The standing of an assumption and the reason."""
    known = {"kernel": Linear((1.0,)), "limits": (1.0,), "outputs": 2, "horizon": 3, "noise": 0.1, "budget": 2.0}
    premises = Premises(**{**known, "bound": 1.5, **changes})
    (found,) = (a for a in assumptions(premises, facts) if a.label == label)
    return found.standing, found.why


@pytest.mark.parametrize(
    ("true", "standing", "why"),
    [
        ((0.1, 0.2), "given", "the model's noise is that of the true system"),
        ((0.1 * (1 + 1e-9), 0.2), "given", "the model's noise is that of the true system"),
        ((0.1, 0.3), "violated", "the true noise is 0.1, 0.3, and the model says 0.1, 0.2"),
        ((0.0, 0.0), "violated", "the true system is free of noise"),
        (None, "not checkable", "the noise of the true system is not known; the model says 0.1, 0.2"),
    ],
)
def test_the_noise_of_the_model_is_compared_with_the_true_one(true, standing, why):
    found = judged("process_noise", TaskFacts(modelled_noise=(0.1, 0.2), true_noise=true))
    assert found[0] == standing
    assert why in found[1]


def test_without_facts_the_premises_are_taken_as_given():
    assert judged("process_noise", None)[0] == "given"
    assert judged("rkhs", None) == ("given", "B = 1.5; as stated.")
    assert judged("prior_knowledge", None)[0] == "not checkable"
    assert judged("prior_knowledge", None, margin=0.5)[0] == "given"


def test_the_bound_is_given_with_its_source_or_missing():
    assert judged("rkhs", FACTS) == ("given", "B = 1.5; measured.")
    assert judged("rkhs", FACTS, bound=None)[0] == "not checkable"
    assert judged("prior_knowledge", FACTS, bound=None)[0] == "not checkable"


@pytest.mark.parametrize(
    ("facts", "margin", "standing"),
    [
        ({}, None, "not checkable"),
        ({"first_step_cost": 1.9}, None, "not checkable"),
        ({"first_step_cost": 2.1}, None, "violated"),
        ({"first_step_cost": 2.1, "robust_margin": 0.5}, 0.5, "violated"),
        ({"robust_margin": 0.5}, 0.5, "checked"),
        ({"robust_margin": 0.5}, 0.4, "checked"),
        ({"robust_margin": 0.5}, 0.6, "given"),
        ({"robust_margin": -0.1}, None, "violated"),
        ({"robust_margin": 0.0}, 0.4, "violated"),
    ],
)
def test_a_safe_policy_is_checked_refuted_or_believed(facts, margin, standing):
    """The budget is 2; a margin that was computed counts, also against one that is stated."""
    found = judged("prior_knowledge", TaskFacts(modelled_noise=(0.1, 0.2), **facts), margin=margin)
    assert found[0] == standing
