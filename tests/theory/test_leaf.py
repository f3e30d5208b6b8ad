"""The theory is pure mathematics: it knows kernels, and neither tasks nor settings nor beliefs."""

import ast
from pathlib import Path

import pytest

import sbsrl.theory

FOLDER = Path(sbsrl.theory.__file__).parent
ALLOWED = {"_jax", "costs", "errors", "kernels", "numerics", "theory", "types"}
"""The parts of the package that the theory may import; of costs only the words for how they are aggregated."""


def imported(module):
    """The parts of the package that a module imports, and the names it takes from them, wherever the imports stand."""
    found = []
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name.partition(".")[2], "*") for alias in node.names if alias.name.startswith("sbsrl")]
        elif isinstance(node, ast.ImportFrom):
            base = ["", "theory", ""][min(node.level, 2)]
            path = ".".join(part for part in (base, node.module) if part)
            if node.level == 0 and not path.startswith("sbsrl"):
                continue
            path = path.removeprefix("sbsrl").lstrip(".")
            found += [(path or alias.name, alias.name) for alias in node.names]
    return [(path.split(".")[0], name) for path, name in found]


@pytest.mark.parametrize("module", sorted(FOLDER.rglob("*.py")), ids=lambda module: module.stem)
def test_a_module_of_the_theory_imports_nothing_above_it(module):
    foreign = [(part, name) for part, name in imported(module) if part not in ALLOWED]
    assert foreign == []
    assert all(name == "Aggregation" for part, name in imported(module) if part == "costs")


def test_an_import_from_above_would_be_seen(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "import math\nimport sbsrl.task\nfrom sbsrl import loop\nfrom sbsrl.solve.robust import x\n"
        "from ..settings import Settings\nfrom .. import prior\nfrom .samples import y\n"
        "def late():\n    from ..belief.gp import z\n"
    )
    parts = [part for part, _ in imported(module)]
    assert sorted(parts) == ["belief", "loop", "prior", "settings", "solve", "task", "theory"]
