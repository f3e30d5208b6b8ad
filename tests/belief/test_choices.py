"""What a Gaussian-process belief can be told, and what it refuses to be told."""

import numpy as np
import pytest

from sbsrl import UserError
from sbsrl.belief.choices import DEFAULT, SAMPLERS, GPChoices
from sbsrl.validation import kinds


def test_every_choice_is_declared_with_its_help():
    assert list(kinds(GPChoices)) == list(vars(DEFAULT))
    assert all(field.metadata["help"] for field in GPChoices.__dataclass_fields__.values())
    assert all(sampler in GPChoices.__dataclass_fields__["sampler"].metadata["help"] for sampler in SAMPLERS)


@pytest.mark.parametrize("kind", ["sampler", "estimator", "uncertainty", "convention"])
def test_unknown_words_are_refused_by_name(kind):
    with pytest.raises(UserError, match=f"there is no belief.{kind} 'misspelt'; choose one of: "):
        GPChoices(**{kind: "misspelt"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"features": 63}, "^belief.features=63 must be even: half are cosines, half sines; use 64.$"),
        ({"features": 0}, "^belief.features=0 is out of range; it must be between 2 and 1000000.$"),
        ({"delta": 0.0}, "^belief.delta=0 is out of range"),
        ({"delta": 1.0}, "^belief.delta=1 is out of range"),
        ({"delta": np.nan}, "^belief.delta=nan is not a finite number.$"),
        ({"sampler": "truncated", "fitted": True}, "^truncated samples are functions of one prior"),
    ],
)
def test_values_that_make_no_sense_are_refused(changes, said):
    with pytest.raises(UserError, match=said):
        GPChoices(**changes)


def test_numbers_of_numpy_are_numbers():
    found = GPChoices(delta=np.float64(0.5))
    assert type(found.delta) is float
    assert hash(found) == hash(GPChoices(delta=0.5))
