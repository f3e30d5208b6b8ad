"""Which modules a module needs, read from its source."""

import pytest

from sbsrl import imports

FILES = {
    "__init__.py": "from .a import x\n",
    "a.py": "import math\nimport numpy.linalg\n",
    "b.py": "from .inner.leaf import x\n",
    "c.py": "from . import a\nfrom .inner import leaf, name\n",
    "d.py": "import made.inner.leaf\nfrom made import b\n",
    "late.py": "def f():\n    if True:\n        from .a import x\n    return x\n",
    "typed.py": (
        "import typing\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from .a import x\nelse:\n    from .b import x\n"
        "if typing.TYPE_CHECKING:\n    from .c import y\n"
    ),
    "inner/__init__.py": "from ..a import name\n",
    "inner/leaf.py": "",
    "inner/up.py": "from ..b import x\nfrom .. import c\nfrom . import leaf\n",
    "inner/taking.py": "from . import name\n",
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A small package in the place of this one."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(imports, "PACKAGE", tmp_path)
    monkeypatch.setattr(imports, "NAME", "made")
    functions = (imports.modules, imports.named_modules, imports.imported_modules)
    for function in functions:
        function.cache_clear()
    yield
    for function in functions:
        function.cache_clear()


def short(modules):
    return {module.removeprefix("made").lstrip(".") or "made" for module in modules}


@pytest.mark.usefixtures("made")
def test_modules_are_all_files_and_packages():
    names = {"made", "a", "b", "c", "d", "late", "typed", "inner", "inner.leaf", "inner.up", "inner.taking"}
    assert short(imports.modules()) == names
    assert imports.source_of("made.inner").parts[-2:] == ("inner", "__init__.py")
    assert imports.source_of("made.inner.leaf").parts[-2:] == ("inner", "leaf.py")


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("module", "named", "imported"),
    [
        ("made", {"a"}, {"a"}),
        ("made.a", set(), set()),  # others' packages do not count
        ("made.b", {"inner.leaf"}, {"inner.leaf", "inner"}),
        ("made.c", {"a", "inner.leaf", "inner"}, {"a", "inner.leaf", "inner"}),
        ("made.d", {"inner.leaf", "b"}, {"inner.leaf", "inner", "b"}),
        ("made.late", {"a"}, {"a"}),  # wherever the import stands
        ("made.typed", {"b"}, {"b"}),  # not for type checkers only, but what is done otherwise
        ("made.inner", {"a"}, {"a"}),
        ("made.inner.up", {"b", "c", "inner.leaf"}, {"b", "c", "inner.leaf"}),
        ("made.inner.taking", {"inner"}, {"inner"}),  # a name of the package around it is needed
    ],
)
def test_named_and_imported_modules_are_those_of_the_source(module, named, imported):
    assert short(imports.named_modules(module)) == named
    assert short(imports.imported_modules(module)) == imported


@pytest.mark.usefixtures("made")
def test_the_closure_follows_names_and_not_the_packages_around_them():
    """b uses a module of the inner package, whose own `__init__` is run and not used; c takes a name from it."""
    assert short(imports.closure(["made.b"])) == {"b", "inner.leaf"}
    assert short(imports.closure(["made.c"])) == {"c", "a", "inner", "inner.leaf"}
    assert short(imports.closure(["made.inner.taking", "made.late"])) == {"inner.taking", "inner", "a", "late"}


def test_of_this_package_a_planned_run_uses_its_solver_and_no_certificate():
    roots = ["sbsrl.loop", "sbsrl.specification", "sbsrl.solve.receding", "sbsrl.belief.settings"]
    used = imports.closure(roots)
    assert {"sbsrl.solve.icem", "sbsrl.belief.gp", "sbsrl.methods", "sbsrl.theory.confidence"} <= used
    unused = {
        "sbsrl.runs.certificate",
        "sbsrl.solve.slsqp",
        "sbsrl.theory.calculator",
        "sbsrl.api",
        "sbsrl.premises",
    }
    assert not unused & used


def test_a_module_that_is_not_imported_is_not_needed_to_answer():
    """Nothing is imported to find out: a part that would fail to load can be looked at."""
    assert "sbsrl.report.canvas" in imports.modules()
    assert imports.imported_modules("sbsrl.__main__")
