"""Checkpoints come back bit for bit; whatever is wrong with one, and whenever saving is killed, no learner is lost."""

import errno
import os
import shutil
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from sbsrl.errors import UserError
from sbsrl.runs.checkpoint import CURRENT, PREVIOUS, load_checkpoint, save_checkpoint

ME, OTHER = "0123abcd", "4567efab"


class Memory(eqx.Module):
    """A solver with memory, as a network and its optimiser have."""

    weights: jax.Array
    activation: object
    """No array: it stays the template's."""
    history: tuple
    nothing: None = None


class Learner(NamedTuple):
    memory: Memory
    key: jax.Array
    keys: jax.Array
    counters: dict
    empty: tuple = ()


def learner(number=0):
    """Learners of different numbers differ in every array that has entries."""
    single = jnp.linspace(-1.0, 1.0, 6, dtype=jnp.float32).reshape(2, 3) + number
    return Learner(
        memory=Memory(single, jnp.tanh, (jnp.array([number > 0, True]), jnp.array(np.inf) * (1 if number else -1))),
        key=jax.random.key(number),
        keys=jax.random.split(jax.random.key(number, impl="rbg"), 3),
        counters={
            "whole": jnp.array(number, jnp.int32),
            "double": np.array([1 / 3, -0.0, 5e-324]) + number,
            "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3) + number),
            "none": jnp.zeros((0, 4)),
            "plain": 7 + number,
            "truth": number > 0,
            "scalar": np.float32(0.1 + number),
        },
    )


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return leaf if callable(leaf) else np.asarray(leaf).tobytes()


def same(one, other):
    a, b = jax.tree.leaves(one), jax.tree.leaves(other)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        bits(x) == bits(y) and getattr(x, "dtype", type(x)) == getattr(y, "dtype", type(y)) and type(x) is type(y)
        for x, y in zip(a, b, strict=True)
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with two checkpoints: of learner 1 after one line, and of learner 2 after two."""
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, learner(1), 1, ME)
    save_checkpoint(folder, learner(2), 2, ME)
    return folder


def load(folder, template=None, **options):
    return load_checkpoint(folder, learner() if template is None else template, ME, **options)


def rewrite(path, arrays=None, **changes):
    """The same file with other arrays or other metadata, and the checksum it had."""
    with safe_open(path, framework="numpy") as file:
        old, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    path.write_bytes(save((arrays or (lambda a: a))(old), metadata={**metadata, **changes}))


def test_a_learner_comes_back_bit_for_bit(folder):
    loaded = load(folder)
    assert same(loaded.learner, learner(2))
    assert (loaded.lines, loaded.note) == (2, None)
    assert not same(learner(1), learner(2))


def test_what_comes_back_computes_the_same(folder):
    """Keys of any kind draw what they would have drawn; functions are the template's."""
    back = load(folder).learner
    assert back.memory.activation is jnp.tanh
    for key, wanted in ((back.key, learner(2).key), (back.keys[1], learner(2).keys[1])):
        assert jax.random.key_impl(key) == jax.random.key_impl(wanted)
        assert jax.random.normal(key) == jax.random.normal(wanted)


def test_there_are_two_checkpoints_and_nothing_else(folder):
    save_checkpoint(folder, learner(3), 3, ME)
    assert {path.name for path in folder.iterdir()} == {"learner.safetensors", "previous.safetensors"}
    (folder / CURRENT).unlink()
    assert same(load(folder).learner, learner(2))


def test_a_learner_without_any_array_comes_back(tmp_path):
    save_checkpoint(tmp_path, ((), None), 0, ME)
    assert load_checkpoint(tmp_path, ((), None), ME) == (((), None), 0, None)


def test_where_nothing_was_saved_there_is_nothing(tmp_path):
    assert load(tmp_path) is None
    assert load(tmp_path / "nowhere") is None


def test_a_missing_checkpoint_is_said_and_the_previous_one_used(folder):
    (folder / CURRENT).unlink()
    loaded = load(folder)
    assert same(loaded.learner, learner(1))
    assert loaded.lines == 1
    assert loaded.note == (
        f"{folder / CURRENT} is missing: the previous checkpoint is used, which accounts for 1 lines of the ledger."
    )


def poison(name):
    def change(arrays):
        return {**arrays, name: np.full_like(arrays[name], np.nan)}

    return change


def with_checksum(path, monkeypatch, arrays):
    """A file with these arrays whose checksum is right, as a saver without scruples would make it."""
    monkeypatch.setattr("sbsrl.runs.checkpoint.to_arrays", lambda tree: arrays)
    monkeypatch.setattr("sbsrl.runs.checkpoint.with_nan", lambda arrays: None)
    save_checkpoint(path.parent / "made", (), 2, ME)
    monkeypatch.undo()
    os.replace(path.parent / "made" / CURRENT, path)


def tensors(path):
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def shorten(path):
    path.write_bytes(path.read_bytes()[:-1])


def to_folder(path):
    path.unlink()
    path.mkdir()


WEIGHTS = ".memory.weights"
DAMAGE = {
    "empty": (lambda path: path.write_bytes(b""), "is damaged"),
    "short": (shorten, "is damaged"),
    "junk": (lambda path: path.write_bytes(b"\x80\x04N." * 9), "is damaged"),
    "long header": (lambda path: path.write_bytes(b"\xff" * 64), "is damaged"),
    "folder": (to_folder, "is not a file"),
    "older": (lambda path: path.write_bytes(save(tensors(path), metadata={"lines": "2"})), "has no checksum"),
    "no metadata": (lambda path: path.write_bytes(save(tensors(path))), "has no checksum"),
    "lines": (lambda path: rewrite(path, lines="9"), "is damaged .its checksum is not that of its content"),
    "no number": (lambda path: rewrite(path, lines="many"), "has no checksum"),
    "identity": (lambda path: rewrite(path, identity=OTHER), "is damaged .its checksum"),
    "checksum": (lambda path: rewrite(path, sha256="0" * 64), "is damaged .its checksum"),
    "numbers": (lambda path: rewrite(path, lambda a: {**a, WEIGHTS: a[WEIGHTS] + 1}), "is damaged .its checksum"),
    "nan": (lambda path: rewrite(path, poison(WEIGHTS)), "is damaged .its checksum"),
    "type": (lambda path: rewrite(path, lambda a: {**a, WEIGHTS: a[WEIGHTS].view(np.int32)}), "is damaged .its"),
    "shape": (lambda path: rewrite(path, lambda a: {**a, WEIGHTS: a[WEIGHTS].reshape(3, 2)}), "is damaged .its"),
    "name": (lambda path: rewrite(path, lambda a: {("x" + n): v for n, v in a.items()}), "is damaged .its checksum"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_said_and_the_previous_one_used(folder, kind):
    damage, said = DAMAGE[kind]
    damage(folder / CURRENT)
    loaded = load(folder)
    assert same(loaded.learner, learner(1))
    assert loaded.lines == 1
    assert loaded.note.startswith(f"{folder / CURRENT} {said.split('.')[0].rstrip()}")
    assert loaded.note.endswith(": the previous checkpoint is used, which accounts for 1 lines of the ledger.")
    assert "\n" not in loaded.note


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("alone", [True, False])
def test_where_none_is_good_the_remedy_is_said(folder, kind, alone):
    damage, said = DAMAGE[kind]
    for path in (folder / CURRENT, folder / PREVIOUS):
        damage(path)
    if alone:
        shutil.rmtree(folder / PREVIOUS) if kind == "folder" else (folder / PREVIOUS).unlink()
    with pytest.raises(UserError, match=rf"learner.safetensors {said}") as error:
        load(folder)
    assert (f", and {folder / PREVIOUS} " in str(error.value)) != alone
    assert str(error.value).endswith(
        f"; restore it, or delete the folder {folder} to have the learner rebuilt from the trajectories."
    )
    assert "\n" not in str(error.value)


def test_no_flipped_bit_goes_unnoticed(folder):
    """At every 3rd byte of the file, one of its bits in turn: the previous one is used."""
    content = (folder / CURRENT).read_bytes()
    for position in range(0, len(content), 3):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position // 3 % 8)
        (folder / CURRENT).write_bytes(flipped)
        loaded = load(folder)
        assert loaded.note, position
        assert same(loaded.learner, learner(1))
    (folder / CURRENT).write_bytes(content)
    assert load(folder).note is None


def test_no_lost_end_goes_unnoticed(folder):
    content = (folder / CURRENT).read_bytes()
    for length in range(0, len(content), 29):
        (folder / CURRENT).write_bytes(content[:length])
        assert load(folder).note


def test_a_foreign_checkpoint_is_refused(folder):
    with pytest.raises(UserError, match=r"belongs to another run \(its configuration, seed or data differ\).*restore"):
        load_checkpoint(folder, learner(), OTHER)


def test_a_foreign_current_one_does_not_hide_the_own_previous_one(folder):
    save_checkpoint(folder, learner(3), 3, OTHER)
    loaded = load(folder)
    assert same(loaded.learner, learner(2))
    assert "belongs to another run" in loaded.note


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w[:1], r"\.memory\.weights is float32 \(2, 3\) and not float32 \(1, 3\)"),
        (lambda w: w.astype(jnp.float64), r"\.memory\.weights is float32 \(2, 3\) and not float64 \(2, 3\)"),
        (lambda w: (w, w), r"it has no \.memory\.weights\[0\]"),
        (lambda w: None, r"it has \.memory\.weights, which the learner has not"),
    ],
)
def test_what_does_not_fit_the_template_is_refused(folder, change, said):
    fresh = learner()
    template = fresh._replace(memory=eqx.tree_at(lambda m: m.weights, fresh.memory, change(fresh.memory.weights)))
    with pytest.raises(UserError, match=rf"does not fit the learner of this configuration \({said}\)"):
        load(folder, template)


def test_nan_is_not_saved(folder):
    broken = learner(3)._replace(counters={**learner(3).counters, "scalar": np.float32(np.nan)})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UserError, match=r"not saved, since its \.counters\['scalar'\] has NaN: look for readings"):
        save_checkpoint(folder, broken, 3, ME)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", [WEIGHTS, ".counters['double']", ".counters['scalar']"])
def test_nan_is_not_loaded(folder, monkeypatch, name):
    """Even if the checksum is right."""
    with_checksum(folder / CURRENT, monkeypatch, poison(name)(tensors(folder / CURRENT)))
    loaded = load(folder)
    assert same(loaded.learner, learner(1))
    assert f"has NaN in {name}: the previous" in loaded.note


class Killed(BaseException):
    """The process ends here."""


def kill_at(monkeypatch, call, after):
    """Ends the process at this call to the operating system, before or after it took effect."""
    left = iter(range(call))

    def guard(function):
        def guarded(*arguments, **options):
            if next(left, None) is not None:
                return function(*arguments, **options)
            if after:
                function(*arguments, **options)
            raise Killed

        return guarded

    for name in ("replace", "link", "fsync"):
        monkeypatch.setattr(os, name, guard(getattr(os, name)))


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("call", range(6))
@pytest.mark.parametrize("damage", [None, CURRENT, PREVIOUS])
def test_killed_at_any_moment_a_good_checkpoint_is_left(folder, monkeypatch, call, after, damage):
    """Calls: link, flush, replace, flush of the folder, replace; one more is never reached.

    Also where one of the two had been damaged before, so that the other was the only good one.
    """
    if damage:
        shorten(folder / damage)
    with monkeypatch.context() as patch:
        kill_at(patch, call, after)
        if call < 5:
            with pytest.raises(Killed):
                save_checkpoint(folder, learner(3), 3, ME)
        else:
            save_checkpoint(folder, learner(3), 3, ME)
    loaded = load(folder)
    old = 1 if damage == CURRENT else 2
    assert loaded.lines in (old, 3)
    assert same(loaded.learner, learner(loaded.lines))
    assert loaded.lines == 3 or call <= 2

    save_checkpoint(folder, learner(4), 4, ME)  # and what a kill leaves behind is in nobody's way
    assert load(folder)[1:] == (4, None)
    assert {path.name for path in folder.iterdir()} == {CURRENT, PREVIOUS}


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("call", range(3))
def test_killed_at_the_very_first_save_there_is_one_or_none(tmp_path, monkeypatch, call, after):
    with monkeypatch.context() as patch:
        kill_at(patch, call, after)
        with pytest.raises(Killed):
            save_checkpoint(tmp_path / "checkpoint", learner(1), 1, ME)
    loaded = load(tmp_path / "checkpoint")
    assert (loaded is None) == (call == 0 or (call == 1 and not after))
    assert loaded is None or same(loaded.learner, learner(1))


def test_file_systems_without_second_names_are_served(folder, monkeypatch):
    def not_supported(*paths):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", not_supported)
    save_checkpoint(folder, learner(3), 3, ME)
    assert load(folder).lines == 3
    (folder / CURRENT).unlink()
    assert same(load(folder).learner, learner(2))


@pytest.mark.parametrize("name", ["replace", "fsync"])
def test_a_full_disk_is_explained_and_harms_nothing(folder, monkeypatch, name):
    """The message is one sentence, and both learners are left."""

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        with pytest.raises(UserError, match=r"cannot use .* \(No space left on device\); make room there"):
            save_checkpoint(folder, learner(3), 3, ME)
    assert load(folder)[1:] == (2, None)
    (folder / CURRENT).unlink()
    assert same(load(folder).learner, learner(1))
