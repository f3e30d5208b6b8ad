"""What may import what. The rules are about all imports of a module, direct or not, wherever they stand."""

import ast
from functools import cache

import pytest

from sbsrl.imports import imported_modules, modules, source_of
from sbsrl.methods import METHODS


@cache
def reached(module):
    """All that is run because a module is imported, packages around included."""
    found, waiting = set(), [module]
    while waiting:
        for other in imported_modules(waiting.pop()) - found:
            found.add(other)
            waiting.append(other)
    return frozenset(found)


def within(module, *parts):
    """Whether a module is one of these parts of the package, or in one."""
    return any(f"{module}.".startswith(f"sbsrl.{part}.") for part in parts)


def of(*parts):
    return sorted(module for module in modules() if within(module, *parts))


def cycles(graph):
    """Sets of modules each of which reaches all others."""
    return {frozenset(b for b in graph[a] if a in graph[b]) for a in graph if a in graph[a]}


CYCLES = {frozenset({"sbsrl.kernels.base", "sbsrl.kernels.algebra", "sbsrl.kernels.finite"})}
"""Operators of a kernel make sums and products, which are kernels: they are imported when an operator is used."""


def test_there_is_no_cycle_but_that_of_kernels_and_their_algebra():
    assert cycles({module: reached(module) for module in modules()}) == CYCLES


def test_a_cycle_would_be_found():
    graph = {"a": {"b", "c"}, "b": {"a", "b", "c"}, "c": set()}
    graph["a"] |= {"a"}
    assert cycles(graph) == {frozenset({"a", "b"})}


BASICS = ("errors", "types", "_jax", "numerics", "costs", "validation")
ONLY = {"theory": (*BASICS, "kernels"), "kernels": BASICS}


@pytest.mark.parametrize("leaf", ONLY)
def test_leaves_import_nothing_above_them(leaf):
    above = {module: sorted(m for m in reached(module) if not within(m, leaf, *ONLY[leaf])) for module in of(leaf)}
    assert {module: found for module, found in above.items() if found} == {}


FORBIDDEN = {
    "own": ("tasks", "solve", "loop", "methods", "runs", "report", "laboratory", "cli"),
    "tasks": ("solve", "loop", "methods", "runs", "report", "laboratory", "cli"),
    "belief": ("solve", "problem", "methods", "loop", "runs", "report", "laboratory", "cli"),
    "solve": ("methods", "loop", "runs", "report", "laboratory", "cli", "parts"),
    "systems": ("solve", "belief", "loop", "runs", "methods", "report", "laboratory", "cli"),
    "problem": ("solve", "methods", "loop", "tasks", "settings"),
    "loop": ("runs", "report", "laboratory", "specification", "cli"),
    "runs": ("report", "laboratory", "cli"),
    "laboratory": ("report", "runs", "cli"),
}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_a_part_does_not_import_what_is_above_it(part):
    wrong = {module: sorted(m for m in reached(module) if within(m, *FORBIDDEN[part])) for module in of(part)}
    assert {module: found for module, found in wrong.items() if found} == {}


def test_solvers_know_beliefs_by_their_protocol_only():
    known = {m for module in of("solve", "problem", "methods", "loop") for m in reached(module) if within(m, "belief")}
    assert known == {"sbsrl.belief", "sbsrl.belief.protocol"}


def importers(*parts):
    """Who imports one of these directly, from outside."""
    outside = [module for module in modules() if not within(module, *parts)]
    return {module for module in outside if any(within(m, *parts) for m in imported_modules(module))}


def test_report_and_command_line_are_imported_by_nobody_below_them():
    assert importers("cli") == {"sbsrl.entry"}
    assert importers("entry") == {"sbsrl.__main__"}
    assert importers("report") == {"sbsrl.api", "sbsrl.cli", "sbsrl.cli_own"}
    assert importers("cli_own") == {"sbsrl.cli"}


def test_nobody_takes_a_name_from_the_root_package():
    """Its names are loaded when they are used, which the source does not tell."""
    assert [module for module in modules() if "sbsrl" in imported_modules(module)] == []


OPEN = {"sbsrl.belief.protocol", "sbsrl.solve.protocol"}
"""What everybody may know of beliefs and solvers; all else is loaded by name (`sbsrl.parts`, `sbsrl.tasks`)."""

EXCEPTIONS = {
    # The laboratory is about one world, the ledge, solved exactly, with a belief of weights.
    "sbsrl.laboratory.world": {
        "belief.weights",
        "solve.expectation",
        "solve.policy_search",
        "solve.robust",
        "tasks.ledge",
    },
    "sbsrl.laboratory.trial": {"belief.weights", "solve.policy_search", "tasks.ledge"},
    "sbsrl.laboratory.expansion": {"belief.weights", "solve.policy_search", "tasks.ledge"},
    "sbsrl.laboratory.theorems": {"tasks.ledge"},
    # Worlds that are drawn from the prior are drawn exactly.
    "sbsrl.laboratory.drawn_worlds": {"belief.sequential"},
    # The figure of the theorems draws systems of the laboratory.
    "sbsrl.report.theorems": {"tasks.ledge"},
    # The premises of the theorems: how sure a Gaussian process is asked to be, and what a policy costs at worst.
    "sbsrl.premises": {"belief.choices", "solve.robust"},
    # The prior of a user's system is fitted with the likelihood of the belief that will use it.
    "sbsrl.own.fitting": {"belief.fit", "belief.functions", "belief.gp_model"},
    # The figure about samples compares how they are drawn.
    "sbsrl.report.gp_samples": {"belief.blocks", "belief.posterior", "belief.sequential", "belief.truncation"},
    # The flagship draws the track of the race car, and reads places and headings from its observations.
    "sbsrl.report.drives": {"tasks.race_car"},
    "sbsrl.report.scene": {"tasks.pictures", "tasks.pictures.race_car", "tasks.race_car"},
}


@cache
def direct_imports_of_parts(module):
    """The tasks, solvers and implementations of beliefs that a module outside of their packages imports."""
    parts = {m for m in imported_modules(module) if m.count(".") > 1 and within(m, "belief", "solve", "tasks")}
    inside = {m for m in parts if within(module, m.split(".")[1])}
    return {m.removeprefix("sbsrl.") for m in parts - inside - OPEN}


def test_tasks_solvers_and_beliefs_are_imported_through_the_registries():
    found = {module: direct_imports_of_parts(module) for module in modules()}
    assert {module: parts for module, parts in found.items() if parts} == EXCEPTIONS


OTHER_MEANINGS = {"sbsrl.problem": {"mean"}, "sbsrl.own.knowledge": {"mean"}, "sbsrl.own.tracing": {"mean"}}
"""A kind of constraint; the prior mean; a function of numpy.

That `sbsrl` is also the name of the package needs no exception: it may stand anywhere.
"""


def literals(module):
    tree = ast.parse(source_of(module).read_text())
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_methods_are_named_where_they_are_made_and_by_reports_that_say_what_they_compare():
    elsewhere = modules() - {"sbsrl.methods"} - set(of("report"))
    found = {module: literals(module) & METHODS.keys() - {"sbsrl"} for module in elsewhere}
    assert {module: names for module, names in found.items() if names} == OTHER_MEANINGS
    assert literals("sbsrl.methods") >= METHODS.keys()


NAME_OF_THE_PACKAGE = {"_configure", "cli", "imports", "runs.export", "runs.study", "versions"}


def test_the_default_method_is_not_named_either_where_the_package_is_not_meant():
    found = {module.removeprefix("sbsrl.") for module in modules() if "sbsrl" in literals(module)}
    assert found - {"methods"} - {m.removeprefix("sbsrl.") for m in of("report")} == NAME_OF_THE_PACKAGE
