"""Archives come back bit for bit, and no file takes much memory or time before it is refused."""

import bz2
import io
import os
import re
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy

from sbsrl.archive import read_arrays, write_arrays
from sbsrl.errors import UserError

ARRAYS = {
    "matrix": np.arange(12.0).reshape(3, 4) / 7,
    "single": np.array([1.5, -np.inf, np.nan], np.float32),
    "whole": np.array([-(2**60), 2**60]),
    "flags": np.array([True, False, True]),
    "nothing": np.zeros((0, 3)),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "swapped": np.arange(3.0).astype(">f8"),
    "label": np.array("Käse"),
    "labels": np.array(["a", "long word"]),
    "number": np.array(7),
}


def header(shape="(3,)", descr="'<f8'", order="False"):
    """The first bytes of an array that claims this."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return npy.magic(1, 0) + len(text).to_bytes(2, "little") + text


def npz(members, method=zipfile.ZIP_STORED):
    """A zip file with these members, in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def plain(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


GOOD = header() + bytes(24)


@pytest.fixture
def refused(tmp_path):
    """Refuses a file with one sentence, within a second and 8 MB, and returns the reason."""

    def refuse(content, **options):
        path = tmp_path / "file.npz"
        path.write_bytes(content)
        tracemalloc.start()
        begin = time.perf_counter()
        with pytest.raises(UserError) as error:
            read_arrays(path, **options)
        seconds, (_, most) = time.perf_counter() - begin, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert seconds < 1
        assert most < 8 * 2**20
        assert str(error.value).startswith(f"{path} cannot be read as an archive of arrays (")
        assert str(error.value).endswith("); restore it, or make it again.")
        assert "\n" not in str(error.value)
        return str(error.value)

    return refuse


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def test_what_is_written_comes_back_bit_for_bit(tmp_path):
    write_arrays(tmp_path / "a.npz", **ARRAYS)
    back = read_arrays(tmp_path / "a.npz")
    assert list(back) == list(ARRAYS)
    assert all(same(back[name], array) for name, array in ARRAYS.items())


def test_it_is_the_format_of_numpy(tmp_path):
    write_arrays(tmp_path / "ours.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "theirs.npz", **ARRAYS)
    back = read_arrays(str(tmp_path / "theirs.npz"))
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as theirs:
        for name, array in ARRAYS.items():
            assert same(theirs[name], array)
            assert same(back[name], array)


def test_what_is_read_can_be_changed(tmp_path):
    write_arrays(tmp_path / "a.npz", x=np.zeros(3))
    array = read_arrays(tmp_path / "a.npz")["x"]
    array[1] = 2.0
    assert array.tolist() == [0.0, 2.0, 0.0]


@pytest.mark.parametrize("name", ["", "a/b", "../up", "with space", "é", "1st"])
def test_names_that_would_not_be_read_are_not_written(tmp_path, name):
    with pytest.raises(UserError, match="under a simple name"):
        write_arrays(tmp_path / "a.npz", **{name: np.zeros(2)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [{"any": "object"}, 1j, b"bytes", np.datetime64("2020-01-01")])
def test_what_would_not_be_read_is_not_written(tmp_path, value):
    with pytest.raises(UserError, match=r"cannot be saved in .*; give numbers, truth values or text"):
        write_arrays(tmp_path / "a.npz", x=value)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_explained(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot use .*a.npz \(No space left on device\)"):
        write_arrays(tmp_path / "a.npz", x=np.zeros(2))


def zeros(megabytes):
    """An array of so many megabytes of zeros, compressed: each compressed alone, so that one serves for all."""
    compressor, start = zlib.compressobj(9, zlib.DEFLATED, -15), header(f"({megabytes * 2**17},)")
    first = compressor.compress(start) + compressor.flush(zlib.Z_FULL_FLUSH)
    part = compressor.compress(bytes(2**20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return first + part * megabytes + compressor.flush(), len(start) + megabytes * 2**20


def bomb(megabytes, claimed=None):
    """A zip file with one member of that size, which claims another size if that is given; its checksum is for 1 MB."""
    content, size = zeros(megabytes)
    check = zlib.crc32(header(f"({megabytes * 2**17},)") + bytes(2**20))
    name, sizes = b"bomb.npy", [n.to_bytes(4, "little") for n in (check, len(content), claimed or size)]
    common = b"\x14\0\0\0\x08\0\0\0\0\0" + b"".join(sizes) + len(name).to_bytes(2, "little") + b"\0\0"
    local = b"PK\x03\x04" + common + name + content
    directory = b"PK\x01\x02\x14\0" + common + bytes(14) + name
    numbers = b"\x01\0\x01\0" + len(directory).to_bytes(4, "little") + len(local).to_bytes(4, "little")
    return local + directory + b"PK\x05\x06\0\0\0\0" + numbers + b"\0\0"


@pytest.mark.parametrize(
    ("claimed", "said"),
    [
        (None, "it unpacks to more than 512 MB"),
        (200, "Bad CRC-32"),
        (2**20, "it unpacks to more than 512 MB"),
        (4 * 2**30 - 1, "it unpacks to more than 512 MB"),
    ],
)
def test_a_bomb_does_not_go_off(refused, claimed, said):
    """2 MB that unpack to 2 GB, whether it says so, or claims less or more."""
    content = bomb(2048, claimed)
    assert len(content) < 2.5e6
    assert said in refused(content)


def test_the_helper_of_these_tests_makes_archives_that_are_read(tmp_path):
    (tmp_path / "a.npz").write_bytes(bomb(1))
    assert np.array_equal(read_arrays(tmp_path / "a.npz")["bomb"], np.zeros(2**17))


def test_a_bomb_of_many_members_does_not_go_off(refused):
    part = plain(np.zeros(2**20))
    assert "more than 64 MB" in refused(
        npz([(f"a{i}.npy", part) for i in range(9)], zipfile.ZIP_DEFLATED), most_bytes=64 * 2**20
    )


def test_the_limit_is_what_it_says(tmp_path, refused):
    content = npz([("a.npy", GOOD), ("b.npy", GOOD)])
    (tmp_path / "a.npz").write_bytes(content)
    assert len(read_arrays(tmp_path / "a.npz", most_bytes=2 * len(GOOD))) == 2
    assert "unpacks to more than" in refused(content, most_bytes=2 * len(GOOD) - 1)


def test_a_long_file_is_refused_by_its_length(tmp_path):
    with (tmp_path / "long.npz").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UserError, match="it unpacks to more than 512 MB"):
        read_arrays(tmp_path / "long.npz")


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (header("(10000000000000,)"), r"claims the shape \(10000000000000,\); it unpacks to more than 512 MB"),
        (header("(0, 10000000000000)"), "it unpacks to more than 512 MB"),
        (header("(10000000000000,)", "'<U0'"), "it unpacks to more than 512 MB"),
        (header("(1,)", "'<U2000000000'"), "damaged|unpacks to more than"),
        (header("(4,)"), "claims the shape .* and has another size"),
        (header("(2,)"), "claims the shape .* and has another size"),
        (header("(-3,)"), r"claims the shape \(-3,\)"),
        (header("(True, 3)"), "claims the shape"),
        (header(f"({'1, ' * 40})"), "claims the shape"),
        (header(f"({'9' * 3000},)"), r"claims the shape \(9+\.\.\."),
        (header("[3]"), "shape is not valid"),
        (header("(3,)", "'|O'"), "holds neither numbers nor text, but object"),
        (header("(3,)", "[('a', '<f4'), ('b', '|O')]"), "holds neither numbers nor text"),
        (header("(3,)", "('<f8', (1000000, 1000000))"), "damaged|neither numbers nor text"),
        (header("(3,)", "'<c8'"), "holds neither numbers nor text, but complex64"),
        (header("(3,)", "'<f9'"), "damaged"),
        (header("(3,)", "'<f8'", "1"), "fortran_order is not a valid bool"),
        (header("(3L,)"), "damaged"),
        (header("(" * 90 + "3" + ")" * 90), "damaged|shape is not valid"),
        (header("-" * 3000 + "3"), "damaged"),
        (header("__import__('os')"), "damaged"),
        (header("\x00"), "damaged"),
        (npy.magic(2, 0) + b"\xff\xff\xff\xff" + bytes(64), r"is in version \(2, 0\)"),
        (npy.magic(1, 0) + b"\xff\xff{", "damaged"),
        (npy.magic(1, 0), "damaged"),
        (b"", "damaged"),
        (b"\x80\x04N.", "damaged"),
    ],
)
def test_headers_that_lie_are_refused(refused, start, said):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert re.search(said, refused(npz([("good.npy", GOOD), ("bad.npy", start + bytes(24))], method)))


@pytest.mark.parametrize(
    "name", ["a", "a.txt", "../a.npy", "/a.npy", "in/a.npy", "a.npy/", ".npy", "a b.npy", "a\n.npy", "é.npy", "a" * 200]
)
def test_odd_names_are_refused(refused, name):
    assert "has no name that an array could have" in refused(npz([("good.npy", GOOD), (name, GOOD)]))


def test_a_name_that_ends_within_is_refused(refused):
    """zipfile cuts names at a zero byte: two of them could be one."""
    content = npz([("good.npy", GOOD), ("good.npyx.npy", GOOD)]).replace(b"good.npyx.npy", b"good.npy\0.npy")
    assert "has no name that an array could have" in refused(content)


def test_two_members_of_one_name_are_refused(refused):
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = npz([("a.npy", GOOD), ("a.npy", GOOD)])
    assert "it has two members 'a.npy'" in refused(content)


def flagged(content, flag):
    """With a flag set in the local and in the central header."""
    content = bytearray(content)
    content[content.index(b"PK\x03\x04") + 6] |= flag
    content[content.index(b"PK\x01\x02") + 8] |= flag
    return bytes(content)


@pytest.mark.parametrize("flag", [0x01, 0x41])
def test_encrypted_members_are_refused(refused, flag):
    assert "its member 'a.npy' is encrypted" in refused(flagged(npz([("a.npy", GOOD)]), flag))


def test_other_ways_to_compress_are_refused(refused):
    """A few bytes of bzip2 or LZMA unpack to megabytes at once."""
    assert len(bz2.compress(bytes(10**7))) < 100
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert "is compressed in a way that numpy does not use" in refused(npz([("a.npy", GOOD)], method))


def test_too_many_members_are_refused(tmp_path, refused):
    (tmp_path / "many.npz").write_bytes(npz([(f"a{i}.npy", GOOD) for i in range(1000)]))
    assert len(read_arrays(tmp_path / "many.npz")) == 1000
    assert "it has 1001 members, and at most 1000 are read" in refused(npz([(f"a{i}.npy", GOOD) for i in range(1001)]))


def test_a_long_table_of_contents_is_refused_unread(refused):
    entry = npz([("a.npy", b"")])
    entry = entry[entry.index(b"PK\x01\x02") : entry.index(b"PK\x05\x06")]
    table = entry * 400_000
    end = b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff" + len(table).to_bytes(4, "little") + b"\0\0\0\0\0\0"
    assert "its table of contents is too long" in refused(table + end)


def test_a_wrong_checksum_is_refused(refused):
    content = bytearray(npz([("a.npy", GOOD)]))
    content[content.index(GOOD) + len(GOOD) - 1] ^= 1
    assert "Bad CRC-32 for file 'a.npy'" in refused(bytes(content))


def test_bytes_that_are_no_text_and_no_truth_values_are_refused(refused):
    for start, wrong in (
        (header("(2,)", "'|b1'"), b"\x01\x02"),
        (header("()", "'<U1'"), b"\0\0\x11\0"),
        (header("()", "'<U1'"), b"\0\xd8\0\0"),
        (header("()", "'>U1'"), b"\0\x11\0\0"),
    ):
        assert "'a.npy' holds bytes that are not" in refused(npz([("a.npy", start + wrong)]))


@pytest.mark.parametrize("content", [b"", b"states,actions\n", b"\x80\x04N.", plain(np.zeros(3)), bytes(10**6)])
def test_what_is_no_archive_is_refused(refused, content):
    assert "it is damaged, or no archive at all: File is not a zip file" in refused(content)


def test_what_is_no_file_is_refused(tmp_path):
    """Nothing, a folder, a pipe that would block, an unreadable name."""
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        ("none", "there is no such file"),
        ("", "it is not a file"),
        ("pipe", "it is not a file"),
        ("x" * 300, "File name too long"),
    ):
        with pytest.raises(UserError, match=rf"cannot be read as an archive of arrays \({reason}\); restore it"):
            read_arrays(tmp_path / name)


def test_the_sentence_is_the_callers(tmp_path):
    with pytest.raises(UserError) as error:
        read_arrays(tmp_path / "none", what="a song", remedy="sing it")
    assert str(error.value) == f"{tmp_path / 'none'} cannot be read as a song (there is no such file); sing it."


SMALL = npz([("a.npy", GOOD), ("b.npy", plain(np.arange(4) > 2)), ("c.npy", plain(np.array("word")))])
PACKED = npz([("a.npy", GOOD), ("c.npy", plain(np.array("word")))], zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize("content", [SMALL, PACKED])
def test_half_of_an_archive_is_refused(refused, content):
    for length in range(0, len(content), 7):
        refused(content[:length])


def damaged(content, changes):
    content = bytearray(content)
    for position, value in changes:
        content[position % len(content)] = value
    return bytes(content)


@settings(max_examples=600)
@given(st.sampled_from([SMALL, PACKED]), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4))
def test_damage_is_refused_or_does_no_harm(tmp_path_factory, content, changes):
    """Any bytes may be wrong: either one sentence says so, or what is read are arrays of at most that size."""
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(damaged(content, changes))
    try:
        arrays = read_arrays(path, most_bytes=2**20)
    except UserError as error:
        assert str(error).startswith(f"{path} cannot be read")  # noqa: PT017
    else:
        assert sum(array.nbytes for array in arrays.values()) <= 2**20
        assert all(array.dtype.kind in "biufU" for array in arrays.values())
