"""Words for systems and functions: what is named is found again, and what is not there is explained in a line."""

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rail

from sbsrl.errors import UserError
from sbsrl.own import names, signals
from sbsrl.own.names import PROCESS, bind, bind_new, find, is_local, name_of

SYSTEM = """
FROM, count = __name__, 0

def cost(x, a, y):
    return 2.0

class Motor:
    def hum(self):
        pass
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """Words of one test are not those of another."""
    monkeypatch.setattr(names, "_KNOWN", {})
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(names.FILE) or name.startswith("bench_"):
            del sys.modules[name]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench_rig.py").write_text(SYSTEM)
    return tmp_path


@pytest.mark.parametrize(
    ("word", "thing"),
    [("math:pi", math.pi), ("math:", math), ("math", math), ("sbsrl.own.signals:Sources.of", signals.Sources.of)],
)
def test_a_word_stands_for_a_module_or_something_in_it(word, thing):
    assert find(word, "system") == thing


def test_modules_and_files_of_the_working_folder_are_found(here):
    path = list(sys.path)
    assert find("bench_rig:cost", "cost")(0, 0, 0) == 2.0
    assert find("bench_rig.py:Motor.hum", "cost").__name__ == "hum"
    assert find(f"{here}/bench_rig.py:cost", "cost") is find("bench_rig.py:cost", "cost")
    assert find("bench_rig.py", "system").FROM.startswith(names.FILE)
    assert sys.path == path


def test_a_file_is_executed_once(here):
    find("bench_rig.py", "system").count += 1
    assert find("bench_rig.py:count", "system") == 1


def test_a_file_that_failed_is_executed_again(here):
    (here / "bench_late.py").write_text("1 / 0")
    with pytest.raises(UserError, match=r"the system bench_late.py cannot be imported: ZeroDivisionError: division"):
        find("bench_late.py", "system")
    (here / "bench_late.py").write_text("speed = 3")
    assert find("bench_late.py:speed", "system") == 3


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("bench_nowhere:cost", "the cost bench_nowhere:cost: there is no module 'bench_nowhere' here"),
        ("bench_nowhere.part:cost", "there is no module 'bench_nowhere.part' here"),
        ("bench_nowhere.py:cost", "there is no file bench_nowhere.py; give module:name, or file.py:name"),
        ("bench_rig:price", "bench_rig has no 'price'; it has FROM, Motor, cost, count"),
        ("bench_rig:count.more", "bench_rig has no 'count.more'; it has "),
        (
            "bench_jaxlike.py:cost",
            "bench_jaxlike.py:cost cannot be imported: ModuleNotFoundError: No module named 'bench_",
        ),
        ("", "cannot be imported: ValueError: Empty module name"),
    ],
)
def test_what_is_not_there_is_explained_in_a_line(here, word, said):
    (here / "bench_jaxlike.py").write_text("import bench_jax")
    with pytest.raises(UserError, match=said) as caught:
        find(word, "cost")
    assert "\n" not in str(caught.value)


def local_function(x, a, y):
    return 0.0


def test_what_can_be_imported_is_named_so():
    assert name_of("motor:cost", "cost") == "motor:cost"
    assert name_of(signals.function, "cost") == "sbsrl.own.signals:function"
    assert name_of(signals.Sources, "system") == "sbsrl.own.signals:Sources"
    assert name_of(signals, "system") == "sbsrl.own.signals:"


@pytest.mark.parametrize(
    "thing",
    [
        lambda x, a, y: 0.0,
        partial(local_function, 1.0),
        SimpleNamespace(reset=1),
        (local_function, local_function),
        np.zeros(2),
        signals.Sources(None, ()).functions,
    ],
)
def test_what_cannot_be_imported_has_a_word_of_this_program_only(thing):
    word = name_of(thing, "cost")
    assert is_local(word)
    assert find(word, "cost") is thing
    assert name_of(thing, "cost") == word


def test_something_that_was_replaced_in_its_module_is_not_named_by_it(monkeypatch):
    old = signals.function
    monkeypatch.setattr(signals, "function", lambda: None)
    assert is_local(name_of(old, "cost"))


def test_a_function_of_a_file_keeps_the_word_of_the_program(here):
    """The module has a name that another program would not know."""
    assert is_local(name_of(find("bench_rig.py:cost", "cost"), "cost"))


def test_the_file_of_a_word_is_where_its_thing_is_written(here):
    (here / "plant.py").write_text("speed = 3")
    assert names.file_of("plant.py") == names.file_of("plant.py:speed") == (here / "plant.py").resolve()
    assert names.file_of("rail:place") == Path(rail.__file__)


@pytest.mark.parametrize(
    "word", ["cpu", "gymnasium:Pendulum-v1", "local:system-1", "nowhere:x", "absent.py", "sys:path", ":"]
)
def test_words_that_name_nothing_in_a_file_have_none(here, word):
    assert names.file_of(word) is None


def test_new_words_are_new_and_can_be_bound_again():
    assert [bind_new("data", 1), bind_new("data", 1), bind_new("cost", 1)] == [
        f"local:data-{PROCESS}-1",
        f"local:data-{PROCESS}-2",
        f"local:cost-{PROCESS}-1",
    ]
    bind(f"local:data-{PROCESS}-1", 7)
    assert (find(f"local:data-{PROCESS}-1", "data"), find(f"local:data-{PROCESS}-2", "data")) == (7, 1)


def test_a_word_of_another_program_that_is_bound_here_does_not_change_the_new_ones():
    bind("local:data-00000000-1", 3)
    assert bind_new("data", 4) == f"local:data-{PROCESS}-1"
    assert find("local:data-00000000-1", "data") == 3


def test_a_word_of_another_program_is_explained():
    bind_new("system", 1)
    said = r"cannot be found again; say it once more from Python, as in sbsrl\.resume\(DIR, system=\.\.\.\), or put it"
    with pytest.raises(UserError, match=said) as caught:
        find("local:system-00000000-1", "system")
    assert "\n" not in str(caught.value)


# scripts

SCRIPT = """
from sbsrl.own.names import PROCESS, find, name_of

print("executed", __name__ == "__main__")

def price(x, a, y):
    return 2.0

class Motor:
    def hum(self):
        pass

def maker():
    def within(x, a, y):
        return 3.0
    return within

if __name__ == "__main__":
    for thing in (price, Motor, maker(), lambda: None, Motor(), Motor.hum):
        word = name_of(thing, "cost")
        print(word.replace(PROCESS, "HERE"), find(word, "cost") is thing, name_of(thing, "cost") == word)
"""


def printed(*arguments, cwd):
    """The lines that another process of Python writes."""
    found = subprocess.run([sys.executable, *arguments], cwd=cwd, stdout=subprocess.PIPE, text=True, check=True)
    return found.stdout.splitlines()


def test_what_is_at_the_top_of_a_running_script_is_named_by_its_file_and_found_by_other_processes(here):
    """It is executed once, although its words are looked up; nothing else in it has a word for others."""
    (here / "bench_script.py").write_text(SCRIPT)
    assert printed("bench_script.py", cwd=here) == [
        "executed True",
        "bench_script.py:price True True",
        "bench_script.py:Motor True True",
        "local:cost-HERE-1 True True",
        "local:cost-HERE-2 True True",
        "local:cost-HERE-3 True True",
        "local:cost-HERE-4 True True",
    ]
    seek = "from sbsrl.own.names import find; print(find('bench_script.py:price', 'cost')(0, 0, 0))"
    assert printed("-c", seek, cwd=here) == ["executed False", "2.0"]


def test_a_script_of_another_folder_is_named_by_its_whole_path(here):
    (here / "bench_script.py").write_text(SCRIPT)
    (here / "elsewhere").mkdir()
    _, found, *_ = printed("../bench_script.py", cwd=here / "elsewhere")
    word = f"{here.resolve()}/bench_script.py:price"
    assert found == f"{word} True True"
    assert find(word, "cost")(0, 0, 0) == 2.0


def test_functions_of_a_program_without_a_file_have_local_words(here):
    lines = "from sbsrl.own.names import is_local, name_of\ndef price(): pass\nprint(is_local(name_of(price, 'cost')))"
    assert printed("-c", lines, cwd=here) == ["True"]
