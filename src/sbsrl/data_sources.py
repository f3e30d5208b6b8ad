"""Where offline data can come from: a file, a dataset of Minari, or a recipe that makes them."""

from pathlib import Path

from .minari_data import check_minari, is_minari, read_minari, write_minari
from .offline import OfflineData, find_data
from .task import Task

__all__ = ["check_out", "find", "given_content", "keep"]


def find(task: Task, data: str) -> OfflineData:
    """The data under that name; refuses what does not fit the task."""
    return read_minari(data, task) if is_minari(data) else find_data(task, data)


def given_content(task: Task, data: str) -> bytes:
    """The bytes of a file of data; a dataset as such a file."""
    return find(task, data).content if is_minari(data) else Path(data).read_bytes()


def check_out(out: Path) -> None:
    """Refuses a place where data cannot be kept, as far as that can be known before there are any."""
    if is_minari(out):
        check_minari(str(out))


def keep(data: OfflineData, task: Task, out: Path) -> None:
    """Writes data to a file, or as a dataset."""
    if is_minari(out):
        write_minari(data, task, str(out))
    else:
        data.save(out)
