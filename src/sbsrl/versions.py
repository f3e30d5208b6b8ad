"""The versions that results depend on besides code and configuration."""

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["versions_now"]

PACKAGES = ("sbsrl", "jax", "jaxlib", "equinox", "numpy", "gymnasium")
SIMULATORS = ("mujoco", "dm_control")
"""That tasks run on where they are installed."""


def versions_now() -> dict[str, str]:
    """Of Python and of the libraries."""
    needed = {name: version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **needed, **_installed(SIMULATORS)}


def _installed(names: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
