"""Archives of plain arrays (.npz): written whole, and read within bounds whoever made them.

A small file may unpack to gigabytes, and the header of an array may claim any size. So everything that a file says of
itself is compared with the limit, and with what else it says, before an array is made.
"""

import io
import math
import os
import re
import struct
import tokenize
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from .atomic import write_atomically
from .errors import UserError

__all__ = ["MOST_BYTES", "packed", "read_arrays", "write_arrays"]

MOST_BYTES = 512 * 2**20
"""The arrays of one archive together, by default: 3 million transitions of a system with ten states and two actions."""

MOST_MEMBERS, MOST_AXES = 1000, 32
MOST_HEADER = 4096
"""Bytes before the numbers of an array: a plain one needs 128."""
CHUNK = 2**20
"""What is read at a time. The table of contents is read at once and must fit as well."""

KINDS = "biufU"
"""Of numpy's types: truth values, whole and real numbers, text."""
ENCRYPTED = 0x0001 | 0x0040
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\.npy")

BROKEN = (
    ValueError, TypeError, EOFError, RuntimeError, MemoryError, SyntaxError, LookupError, AttributeError,
    ArithmeticError, BadZipFile, zlib.error, struct.error, tokenize.TokenError, Warning,
)  # fmt: skip
"""What zipfile and numpy raise at bytes that are no archive."""


class _RefusalError(Exception):
    """Why a file is not read, in a few words."""


class _Header(NamedTuple):
    """What a member says of itself."""

    info: ZipInfo
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    start: int
    """Where its numbers begin."""

    @property
    def name(self) -> str:
        return self.info.orig_filename.removesuffix(".npy")


def write_arrays(path: str | Path, /, **arrays: Any) -> None:
    """Writes an archive that `read_arrays` reads, in one step that survives a crash. Objects are refused."""
    write_atomically(Path(path), packed(path, arrays))


def packed(path: str | Path, arrays: Mapping[str, Any]) -> bytes:
    """The content of such an archive; `path` is where it is meant to be."""
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind not in KINDS or not NAME.fullmatch(f"{name}.npy"):
            raise UserError(
                f"{name!r} of type {np.asarray(array).dtype} cannot be saved in {path}; give numbers, truth values "
                "or text, under a simple name."
            )
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def read_arrays(
    path: str | Path,
    *,
    most_bytes: int = MOST_BYTES,
    what: str = "an archive of arrays",
    remedy: str = "restore it, or make it again",
) -> dict[str, np.ndarray]:
    """All arrays of an .npz file by name, bit for bit.

    Anything but an intact archive of plain arrays of at most `most_bytes` in total is refused with a UserError,
    '{path} cannot be read as {what} (why); {remedy}.', before memory is taken for an array. Nothing is unpickled.
    """
    try:
        return _read(Path(path), most_bytes)
    except _RefusalError as refusal:
        reason = str(refusal)
    except OSError as error:
        reason = error.strerror or _in_a_line(error)
    except BROKEN as error:
        reason = f"it is damaged, or no archive at all: {_in_a_line(error)}"
    raise UserError(f"{path} cannot be read as {what} ({reason}); {remedy}.")


def _read(path: Path, most_bytes: int) -> dict[str, np.ndarray]:
    if not path.is_file():  # opening a pipe would wait forever
        raise _RefusalError("it is not a file" if path.exists() else "there is no such file")
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > most_bytes + CHUNK:
            raise _RefusalError(_too_large(most_bytes))
        with ZipFile(_Bounded(file)) as archive:
            members = archive.infolist()
            _check_members(members, most_bytes)
            headers = [_read_header(archive, info, most_bytes) for info in members]
            return {header.name: _read_array(archive, header) for header in headers}


class _Bounded:
    """A file from which no more than `CHUNK` bytes are read at a time, whatever sizes are claimed in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(CHUNK + 1 if size < 0 else min(size, CHUNK + 1))
        if len(content) > CHUNK:
            raise _RefusalError("its table of contents is too long")
        return content


def _check_members(members: Sequence[ZipInfo], most_bytes: int) -> None:
    """Refuses by what the table of contents says alone."""
    if len(members) > MOST_MEMBERS:
        raise _RefusalError(f"it has {len(members)} members, and at most {MOST_MEMBERS} are read")
    if sum(info.file_size for info in members) > most_bytes:
        raise _RefusalError(_too_large(most_bytes))
    seen = set[str]()
    for info in members:
        name = info.orig_filename
        if not NAME.fullmatch(name):
            raise _RefusalError(f"its member {name[:100]!r} has no name that an array could have")
        if name in seen:
            raise _RefusalError(f"it has two members {name!r}")
        if info.flag_bits & ENCRYPTED:
            raise _RefusalError(f"its member {name!r} is encrypted")
        if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            raise _RefusalError(f"its member {name!r} is compressed in a way that numpy does not use")
        seen.add(name)


def _read_header(archive: ZipFile, info: ZipInfo, most_bytes: int) -> _Header:
    """Reads the first bytes of a member and refuses it if type, shape and size do not fit together."""
    with archive.open(info) as member:
        first = io.BytesIO(member.read(MOST_HEADER))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of headers that numpy would have to guess at
        version = npy.read_magic(first)
        if version != (1, 0):  # others are for arrays of records
            raise _RefusalError(f"'{info.filename}' is in version {version} of the format, and only (1, 0) is read")
        header = _Header(info, *npy.read_array_header_1_0(first), start=first.tell())
    _check_header(header, most_bytes)
    return header


def _check_header(header: _Header, most_bytes: int) -> None:
    name, shape, dtype = header.info.filename, header.shape, header.dtype
    if dtype.kind not in KINDS or dtype.shape:
        raise _RefusalError(f"'{name}' holds neither numbers nor text, but {_cut(str(dtype))}")
    if any(type(size) is not int or size < 0 for size in shape) or len(shape) > MOST_AXES:
        raise _RefusalError(f"'{name}' claims the shape {_cut(str(shape))}")
    # a size of 0 must not hide what the others claim
    if math.prod(max(size, 1) for size in (*shape, dtype.itemsize)) > most_bytes:
        raise _RefusalError(f"'{name}' claims the shape {_cut(str(shape))}; {_too_large(most_bytes)}")
    if header.start + math.prod(shape) * dtype.itemsize != header.info.file_size:
        raise _RefusalError(f"'{name}' claims the shape {_cut(str(shape))} of {dtype} and has another size")


def _read_array(archive: ZipFile, header: _Header) -> np.ndarray:
    content = bytearray(header.info.file_size - header.start)
    with archive.open(header.info) as member:
        member.read(header.start)
        done = 0
        while done < len(content):  # up to the end, where zipfile compares the checksum
            part = member.read(min(CHUNK, len(content) - done))
            if not part:
                raise _RefusalError(f"'{header.info.filename}' ends too early")
            content[done : done + len(part)] = part
            done += len(part)
    _check_content(header, content)
    return np.ndarray(header.shape, header.dtype, content, order="F" if header.fortran_order else "C")


def _check_content(header: _Header, content: bytearray) -> None:
    """Refuses bytes that are no truth values or no text: numpy does not look, and later fails in odd places."""
    if header.dtype.kind == "b":
        valid = np.all(np.frombuffer(content, np.uint8) <= 1)
    elif header.dtype.kind == "U":
        letters = np.frombuffer(content, np.dtype(np.uint32).newbyteorder(header.dtype.byteorder))
        valid = np.all((letters < 0xD800) | ((letters > 0xDFFF) & (letters <= 0x10FFFF)))
    else:
        return
    if not valid:
        raise _RefusalError(f"'{header.info.filename}' holds bytes that are not {header.dtype}")


def _too_large(most_bytes: int) -> str:
    return f"it unpacks to more than {most_bytes / 2**20:g} MB"


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."


def _in_a_line(error: BaseException) -> str:
    return _cut(" ".join((str(error) or type(error).__name__).split()).rstrip("."))
