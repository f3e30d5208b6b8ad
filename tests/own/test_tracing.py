"""Functions that were written with numpy can be traced where they can, and are used only where both agree."""

import math
from functools import partial
from math import dist, gcd, hypot

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import sin

from sbsrl._jax import EXACT
from sbsrl.own.tracing import agrees, traceable, translated

RNG = np.random.default_rng(0)
POINTS = [tuple(RNG.normal(size=size) for size in (2, 1, 2)) for _ in range(10)]
FRESH = [tuple(RNG.normal(size=size) for size in (2, 1, 2)) for _ in range(10)]
TARGET = np.array([1.0, 2.0])


def helper(z):
    return np.sqrt(1.0 + z**2) + math.exp(-abs(z))


def helped(x, a, y):
    return helper(float(y[0])) + deeper(y)


def deeper(y):
    return helper(y[1]) + sum([math.sin(v) for v in y])


def scaled(factor, x, a, y, *, offset=0.0):
    return factor * np.sin(y[0]) + offset


class Rig:
    """Its cost is a method that uses what the object has."""

    limit = 0.5

    def cost(self, x, a, y):
        return np.maximum(math.fabs(y[0]) - self.limit, 0.0)


def closure(weight):
    shift = np.array([0.5, -0.5])

    def inner(z):
        return math.cos(z)

    return lambda x, a, y: weight * inner(float(y[0])) + np.dot(shift, y)


def with_lists(x, a, y):
    features = [y[0], a[0] ** 2, 1.0]
    return np.array(features) @ np.array([1.0, 2.0, 3.0]) + np.sum([x[0], x[1]]) + max([1, 2])


def with_parts(x, a, y):
    joined = np.concatenate([x, [a[0], 3.0], y])
    return np.stack([joined, 2 * joined]).sum() + np.hstack([x, y]).mean() + np.max([x[0], y[0]])


def nested(x, a, y):
    def weight(v):
        return [np.exp(-(float(z) ** 2)) for z in v]

    return sum(weight(y))


WORKING = {
    "plain arithmetic": lambda x, a, y: y[0] ** 2 + 3 * a[0] - x @ y,
    "numpy": lambda x, a, y: np.sqrt(np.sum((y - TARGET) ** 2)) + np.abs(a[0]) * np.pi,
    "linear algebra": lambda x, a, y: np.linalg.norm(y - x),
    "clip": lambda x, a, y: np.clip(y[0], -0.5, 0.5),
    "where": lambda x, a, y: np.where(y[0] > 0.3, y[0], -1.0),
    "math": lambda x, a, y: math.atan2(y[0], y[1]) + math.pow(x[0], 2) + math.pi + math.tanh(a[0]),
    "names of their own": lambda x, a, y: sin(y[0]) + hypot(y[0], y[1]),
    "float": lambda x, a, y: float(y[0]) + float(np.cos(y[1])),
    "abs": lambda x, a, y: abs(float(y[0])) + abs(y[1]),
    "lists": with_lists,
    "parts": with_parts,
    "arrays": lambda x, a, y: np.array([y[0], math.sin(a[0])]).sum() + np.asarray([1, 2])[1],
    "closures": closure(2.0),
    "methods": Rig().cost,
    "partials": partial(scaled, 2.0, offset=1.0),
    "helpers": helped,
    "functions in functions": nested,
    "functions of JAX": lambda x, a, y: jnp.sum(jnp.tanh(y)),
    "a constant": lambda x, a, y: 0.0,
    "a truth value": lambda x, a, y: y[0] > 0.3,
}


@pytest.mark.parametrize("name", WORKING)
def test_what_is_written_with_numpy_can_be_traced_and_agrees_elsewhere(name):
    """Within 1e-9, at points that it was not compared at."""
    function = WORKING[name]
    traced = traceable(function, POINTS)
    assert traced is not None
    compiled = jax.jit(traced)
    for point in FRESH:
        found = compiled(*map(jnp.asarray, point))
        assert (found.shape, found.dtype) == ((), EXACT)
        np.testing.assert_allclose(found, float(function(*point)), atol=1e-9)


@pytest.mark.parametrize("name", ["numpy", "closures", "helpers", "methods"])
def test_it_can_be_differentiated(name):
    """Within 1e-5 of finite differences."""
    function, (x, a, y) = WORKING[name], FRESH[0]
    slope = jax.grad(traceable(function, POINTS), argnums=2)(*map(jnp.asarray, (x, a, y)))
    for i in range(2):
        nudge = 1e-6 * np.eye(2)[i]
        expected = (float(function(x, a, y + nudge)) - float(function(x, a, y - nudge))) / 2e-6
        assert abs(slope[i] - expected) < 1e-5


SIMULATORS = {
    "list": lambda x, a: [x[0] + 0.1 * x[1], x[1] + 0.1 * math.sin(x[0])],
    "tuple": lambda x, a: (x[0] + a[0], float(x[1])),
    "array": lambda x, a: x + 0.1 * np.array([x[1], a[0] - np.sin(x[0])]),
}


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_simulator_may_return_a_list_a_tuple_or_an_array(name):
    """Within 1e-12."""
    traced = traceable(SIMULATORS[name], [point[:2] for point in POINTS])
    for x, a, _ in FRESH:
        np.testing.assert_allclose(jax.jit(traced)(jnp.asarray(x), jnp.asarray(a)), SIMULATORS[name](x, a), atol=1e-12)


def branching(x, a, y):
    return 1.0 if y[0] > 0.3 else 0.0


def looping(x, a, y):
    n = 0
    while n * a[0] ** 2 < 1:
        n += 1
    return n


def assigning(x, a, y):
    y[0] = 3.0
    return y.sum()


def rolling(x, a, y):
    return y[0] + np.random.default_rng().normal()


FORGOTTEN = []


def remembering(x, a, y):
    FORGOTTEN.append(0)
    return y[0] + len(FORGOTTEN)


def failing(x, a, y):
    raise OSError("gone")


@pytest.mark.parametrize(
    "function",
    [
        branching,
        looping,
        assigning,
        rolling,
        remembering,
        failing,
        lambda x, a, y: np.nan * y[0],
        lambda x, a, y: dist(x, y),  # which JAX does not have
        lambda x, a, y: gcd(int(y[0]), 2),
        lambda x, a, y: "far",
        lambda x: x[0],
    ],
)
def test_what_branches_on_values_is_random_or_fails_is_none(function):
    assert traceable(function, POINTS) is None


def test_a_branch_on_what_is_no_value_is_no_obstacle():
    def careful(x, a, y, squared=True):
        return y[0] ** 2 if squared and len(y) == 2 else y[0]

    assert traceable(careful, POINTS) is not None


def test_a_copy_that_disagrees_is_not_used():
    """By more than 1e-6, relative to what comes out, at one of the points."""
    assert not agrees(lambda x: x[0], lambda x: x[0] + 1e-5, [(np.ones(1),)])
    assert not agrees(lambda x: x[0], lambda x: x, [(np.ones(1),)])  # another shape
    assert agrees(lambda x: x[0], lambda x: x[0] + 1e-9, [(np.ones(1),)])
    assert agrees(lambda x: 1e6 * x[0], lambda x: 1e6 * x[0] + 0.1, [(np.ones(1),)])
    wrong_somewhere = [(np.array([value]),) for value in (0.0, 1.0, 2.0)]
    assert not agrees(lambda x: min(x[0], 1.5), lambda x: x[0], wrong_somewhere)


def test_the_original_is_left_as_it_is():
    before = dict(helped.__globals__)
    copy = translated(helped)
    assert copy is not helped
    assert helped.__globals__ == before
    assert helped(*POINTS[0]) == WORKING["helpers"](*POINTS[0])


@pytest.mark.parametrize("thing", [max, np.sin, Rig, partial(max)])
def test_what_is_no_function_of_python_has_no_copy(thing):
    assert translated(thing) is None


def endless(x, a, y):
    return endless(x, a, y)


def test_a_module_whose_name_begins_as_that_of_a_library_is_a_users():
    def jaxed(z):
        return math.sin(z)

    jaxed.__module__ = "jax_of_all_trades"
    assert traceable(lambda x, a, y: jaxed(y[0]), POINTS) is not None


def test_functions_that_call_themselves_end():
    assert traceable(endless, POINTS[:1]) is None
