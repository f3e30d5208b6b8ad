"""Which library draws what MuJoCo simulates, on machines with and without a display.

The environment variable MUJOCO_GL names one; where it does not, EGL is tried and then OSMesa, which need no display.
Each is tried in a program of its own, since a library that was loaded and does not work cannot be unloaded.
"""

import os
import subprocess
import sys
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import UserError

__all__ = ["context", "offer_backend", "settle_backend"]

HEADLESS = ("egl", "osmesa")
"""Backends that need no display, the better one first."""
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
OFF = ("disable", "disabled", "off", "false", "0")
"""Values of MUJOCO_GL that forbid drawing."""
PACKAGES = {"egl": "libegl1 libegl-mesa0 libgl1-mesa-dri", "osmesa": "libosmesa6"}
"""Of Debian and Ubuntu."""
TRIAL = """
import mujoco
from mujoco.{0} import GLContext
context = GLContext(8, 8)
context.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 100).free()
context.free()
"""
"""What a backend must be able to do: some say only here that they have no display."""
PATIENCE = 60.0
"""Seconds that a trial may take."""


def settle_backend() -> str:
    """The backend that draws from now on in this program and in those that it starts, as MUJOCO_GL says.

    A UserError says what was seen of each if none works.
    """
    given = os.environ.get("MUJOCO_GL", "").lower().strip()
    if given in OFF:
        raise UserError(f"nothing can be drawn while MUJOCO_GL={given}; unset it, and a library is looked for.")
    if given or offer_backend():
        return os.environ["MUJOCO_GL"].lower().strip()
    what = "; ".join(f"{backend}: {fault}" for backend, fault in _search(_display()).seen.items())
    ways = ", or ".join(f"apt-get install {packages}" for packages in PACKAGES.values())
    raise UserError(f"there is no library to draw with ({what}); install one: {ways}.")


def offer_backend() -> bool:
    """Settles a backend for whoever may need one, if none is named and one works; says whether it did."""
    if os.environ.get("MUJOCO_GL", "").strip() or not (found := _search(_display()).works):
        return False
    os.environ["MUJOCO_GL"] = found
    return True


def context(width: int, height: int) -> Any:
    """A place in memory of this size that can be drawn into, of the backend that is settled."""
    backend = settle_backend()
    try:
        return import_module(f"mujoco.{backend}").GLContext(width, height)
    except Exception as error:  # whatever a graphics library raises
        raise UserError(
            f"MUJOCO_GL={backend} cannot draw here ({_last(str(error))}); unset it, and another one is looked for."
        ) from error


class _Search(NamedTuple):
    """What a search for a backend found."""

    works: str
    """The first that does, perhaps none."""
    seen: dict[str, str]
    """What was wrong with those before."""


def _display() -> bool:
    return any(os.environ.get(name) for name in DISPLAYS)


@lru_cache
def _search(display: bool) -> _Search:
    """Tries the backends that need no display, and with a display the one that opens windows; once in a program."""
    seen: dict[str, str] = {}
    for backend in (*HEADLESS, *(("glfw",) if display else ())):
        if not (fault := _tried(backend)):
            return _Search(backend, seen)
        seen[backend] = fault
    return _Search("", seen)


def _tried(backend: str) -> str:
    """What is wrong with a backend; nothing if it works."""
    unset = {name: value for name, value in os.environ.items() if name not in {"MUJOCO_GL", "PYOPENGL_PLATFORM"}}
    command = [sys.executable, "-c", TRIAL.format(backend)]
    try:
        done = subprocess.run(
            command, env={**unset, "MUJOCO_GL": backend}, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE:g} s"
    return "" if done.returncode == 0 else _last(done.stderr) or f"ended with code {done.returncode}"


def _last(text: str) -> str:
    """The last line that says something."""
    return next((line.strip().rstrip(".") for line in reversed(text.splitlines()) if line.strip()), "")
