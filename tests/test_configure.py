"""What `import sbsrl` does: it configures JAX, without loading it, and loads names when they are used."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

import sbsrl
from sbsrl._configure import WIDE, processor_features


def answer(code, **environment):
    """What a fresh Python prints, as JSON."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_importing_the_package_loads_no_library():
    """What makes an import slow; the package itself takes milliseconds."""
    loaded = set(answer("import json, sys, sbsrl; print(json.dumps(list(sys.modules)))"))
    assert "sbsrl" in loaded
    heavy = {"jax", "jaxlib", "numpy", "scipy", "equinox", "gymnasium", "matplotlib", "rich"}
    assert not loaded & heavy
    assert {name for name in loaded if name.startswith("sbsrl.")} == {"sbsrl._configure", "sbsrl._lazy"}


def test_the_public_names_are_those_of_their_modules():
    assert list(sbsrl._MODULES) == sbsrl.__all__
    assert set(sbsrl.__all__) <= set(dir(sbsrl))
    for name, module in sbsrl._MODULES.items():
        assert getattr(sbsrl, name) is getattr(import_module(f"sbsrl.{module}"), name)


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match="module 'sbsrl' has no attribute 'lern'"):
        sbsrl.lern  # noqa: B018
    with pytest.raises(ImportError):
        from sbsrl import lern  # noqa: F401


CONFIGURATION = """
import json, os, jax, jax.numpy as jnp
names = ["compilation_cache_dir", "persistent_cache_min_compile_time_secs", "persistent_cache_min_entry_size_bytes"]
cache = [jax.config.values[f"jax_{name}"] for name in names]
print(json.dumps([str(jnp.zeros(1).dtype), os.environ["OPENBLAS_NUM_THREADS"], *cache]))
"""

either_first = pytest.mark.parametrize("imports", ["import sbsrl.errors", "import jax, sbsrl", "import sbsrl._jax"])


@either_first
def test_jax_is_configured_whatever_is_imported_first(tmp_path, imports):
    found = answer(imports + CONFIGURATION, XDG_CACHE_HOME=str(tmp_path), OPENBLAS_NUM_THREADS="1")
    assert found == ["float64", "1", str(tmp_path / "sbsrl" / "jax"), 0.2, -1]
    assert (tmp_path / "sbsrl" / "jax").is_dir()


@either_first
def test_the_cache_is_where_the_user_wants_it_and_float64_is_not_a_choice(tmp_path, imports):
    found = answer(
        imports + CONFIGURATION,
        XDG_CACHE_HOME=str(tmp_path),
        JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine"),
        JAX_ENABLE_X64="0",
        OPENBLAS_NUM_THREADS="2",
    )
    assert found[:3] == ["float64", "2", str(tmp_path / "mine")]
    assert not (tmp_path / "sbsrl").exists()


@either_first
def test_without_a_place_for_a_cache_there_is_none(tmp_path, imports):
    (tmp_path / "file").write_text("")
    assert answer(imports + CONFIGURATION, XDG_CACHE_HOME=str(tmp_path / "file"))[2] is None


def test_one_thread_of_openblas_unless_the_user_says_more():
    code = "import json, os; os.environ.pop('OPENBLAS_NUM_THREADS', None); import sbsrl\n"
    assert answer(code + "print(json.dumps(os.environ['OPENBLAS_NUM_THREADS']))") == "1"


FLAGS = (
    "import json, os; os.environ.setdefault('XLA_FLAGS', ''); {}; print(json.dumps(os.environ['XLA_FLAGS'].split()))"
)
WIDTH = "--xla_cpu_prefer_vector_width"


def offered():
    """What is added to the flags on this machine."""
    return [f"{WIDTH}=512"] if WIDE in processor_features() else []


@either_first
def test_vectors_are_as_wide_as_the_processor_offers(imports):
    """Beside what the user wants of XLA; a program compiles with that, and processes that are started inherit it."""
    code = FLAGS.format(imports + "; import jax; jax.jit(lambda: 1.0)()")
    assert answer(code, XLA_FLAGS="--xla_dump_to=") == ["--xla_dump_to=", *offered()]


@either_first
def test_a_width_that_the_user_wants_stays(imports):
    assert answer(FLAGS.format(imports), XLA_FLAGS=f"{WIDTH}=128") == [f"{WIDTH}=128"]


def test_nothing_changes_once_jax_computes():
    """It would not count any more, and programs would be kept under a width that they do not have."""
    assert answer(FLAGS.format("import jax; jax.numpy.zeros(1); import sbsrl"), XLA_FLAGS="") == []


def test_what_a_processor_offers_is_read_from_linux(tmp_path):
    told = tmp_path / "cpuinfo"
    told.write_text("processor: 0\nflags\t\t: fpu avx2 avx512_vbmi2\n\nprocessor: 1\nflags\t\t: fpu\n")
    assert processor_features(str(told)) == {"fpu", "avx2", "avx512_vbmi2"}
    assert processor_features(str(tmp_path / "none")) == set()
