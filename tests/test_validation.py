"""Kinds of values: what they accept, the plain form they give it, and the sentence that refuses the rest."""

import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.validation import Function, Instance, Number, Numbers, Place, Switch, Whole, Word, Words

ACCEPTED = [
    (Number(), 3, 3.0),
    (Number(), np.float32(0.5), 0.5),
    (Number(), np.array(2), 2.0),
    (Number(), jnp.asarray(2.5), 2.5),
    (Number(finite=False), math.inf, math.inf),
    (Whole(0), np.uint8(7), 7),
    (Whole(0), 2**70, 2**70),
    (Switch(), np.False_, False),
    (Word(), "", ""),
    (Word(("a", "b")), "b", "b"),
    (Numbers(), 1, (1.0,)),
    (Numbers(), [1, np.float64(2)], (1.0, 2.0)),
    (Numbers(), np.array([1.0, 2.0]), (1.0, 2.0)),
    (Numbers(), np.array([3]), (3.0,)),
    (Words(), ["a", "b"], ("a", "b")),
    (Function(), len, len),
    (Function(optional=True), None, None),
    (Place(), "runs/a", Path("runs/a")),
    (Instance(dict, optional=True), None, None),
    (Instance(str, several=True), ["a", "b"], ("a", "b")),
]


@pytest.mark.parametrize(("kind", "value", "plain"), ACCEPTED)
def test_what_fits_is_returned_in_its_plain_form(kind, value, plain):
    found = kind.read("it", value)
    assert found == plain
    assert type(found) is type(plain)


REFUSED = [
    (Number(), "3", "it wants a number and got '3'."),
    (Number(), True, "it wants a number and got True."),
    (Number(), None, "it wants a number and got None."),
    (Number(), 1j, "it wants a number and got 1j."),
    (Number(), 10**400, "it=inf is not a finite number."),
    (Number(), -(10**400), "it=-inf is not a finite number."),
    (Whole(0), np.zeros((2, 2)), "it wants a whole number and got array([[0., 0.], [0., 0.]])."),
    (Words(), ("a", "b", "a"), "it has a word twice: a, b, a; use each once."),
    (Place(), 5, "it wants a path and got 5."),
    (Place(), "a\0b", "it wants a path and got 'a\\x00b'."),
    (Instance(dict), None, "it wants a dict and got None."),
    (Instance(dict, several=True), {}, "it wants one or more dicts and got {}."),
    (Instance(dict, several=True), [{}, 5], "it wants one or more dicts and got [{}, 5]."),
    (Number(), math.nan, "it=nan is not a finite number."),
    (Number(finite=False), math.nan, "it=nan is not a finite number."),
    (Number(), -math.inf, "it=-inf is not a finite number."),
    (Number(0), -1e-9, "it=-1e-09 is out of range; it must be at least 0."),
    (Number(0, 1), 1.5, "it=1.5 is out of range; it must be between 0 and 1."),
    (Whole(1), 1.0, "it wants a whole number and got 1.0."),
    (Whole(1), [[1], [2, 3]], "it wants a whole number and got [[1], [2, 3]]."),
    (Whole(1), False, "it wants a whole number and got False."),
    (Whole(0, 4294967295), 4294967296, "it=4294967296 is out of range; it must be between 0 and 4294967295."),
    (Switch(), 0, "it wants true or false and got 0."),
    (Word(empty=False), "", "it wants a word and got ''."),
    (Word(), 5, "it wants a word and got 5."),
    (Word(("alpha", "beta")), "alpa", "there is no it 'alpa'; did you mean 'alpha'?"),
    (Numbers(), (), "and got ()."),
    (Numbers(), np.zeros(0), "and got []."),
    (Numbers(), [[1.0]], "and got [[1.0]]."),
    (Numbers(), [[1.0], [2.0, 3.0]], "and got [[1.0], [2.0, 3.0]]."),
    (Numbers(), ["a"], "it wants a number and got 'a'."),
    (Numbers(), [1.0, math.nan], "it=nan is not a finite number."),
    (Words(), "ab", "it wants one or more words and got 'ab'."),
    (Words(), [], "it wants one or more words and got []."),
    (Words(), ["a", ""], "it wants a word and got ''."),
    (Function(), None, "it wants a function and got None."),
    (Function(optional=True), 3, "it wants a function and got 3."),
]


@pytest.mark.parametrize(("kind", "value", "said"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(kind, value, said):
    with pytest.raises(UserError) as refused:
        kind.read("it", value)
    assert str(refused.value).endswith(said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Number(), "1e-3", 1e-3),
        (Whole(0), "12", 12),
        (Switch(), "YES", True),
        (Switch(), "0", False),
        (Word(), "none", "none"),
        (Numbers(), "1,2.5", (1.0, 2.5)),
        (Words(), "a,b", ("a", "b")),
    ],
)
def test_texts_are_read(kind, text, value):
    assert kind.parse("it", text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Number(), "one"),
        (Whole(0), "1.0"),
        (Switch(), "maybe"),
        (Numbers(), "1,,2"),
        (Numbers(), "1;2"),
        (Function(), "f"),
    ],
)
def test_texts_that_mean_nothing_are_refused(kind, text):
    with pytest.raises(UserError, match=f"^it wants .* and got '{text}'"):
        kind.parse("it", text)
