"""Pictures of what MuJoCo simulates."""

import atexit
import weakref
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8

from .graphics import context
from .physics import load_mujoco

__all__ = ["Camera", "View"]

Pixels = UInt8[np.ndarray, "h w 3"]
GEOMS = 2000
"""The most things that a scene may have."""
SHADOWS, SAMPLES = 512, 0
"""Side of the map that shadows are looked up in, and points per pixel: as usual, 2048 and 4, a picture takes four
times as long and looks hardly better."""
FARTHEST, SKY = 1.0, (52, 74, 98)
"""The depth of pixels that show nothing, and what they show then."""
PLATE, RED = (0.02, 0.12, 0.16), (0.8, 0.1, 0.15, 1.0)


class View(NamedTuple):
    """Where pictures of a model are taken from: a camera that it has, or one that follows one of its bodies."""

    camera: str = ""
    """Its name in the model; none: one that follows."""
    body: str = ""
    """Which body is followed."""
    distance: float = 3.0
    """Metres."""
    azimuth: float = 90.0
    elevation: float = -15.0
    """Degrees."""
    size: tuple[int, int] = (320, 240)
    """Width and height in pixels."""
    marks: tuple[tuple[float, float, float], ...] = ()
    """Places at which a red plate is shown that the model does not have: what the task forbids."""


class Camera:
    """Takes pictures of the states of one model until it is closed."""

    def __init__(self, model: Any, view: View, task: str) -> None:
        """`task` is named where a library is missing."""
        self._mujoco = mj = load_mujoco(task)
        width, height = view.size
        self._model, self._rectangle = model, mj.MjrRect(0, 0, width, height)
        self._scene, self._option = mj.MjvScene(model, GEOMS), mj.MjvOption()
        self._scene.flags[mj.mjtRndFlag.mjRND_REFLECTION] = 0  # takes as long as all the rest
        self._scene.flags[mj.mjtRndFlag.mjRND_SKYBOX] = 0  # its stars say nothing, and make films large
        self._camera, self._marks = _placed(mj, model, view), view.marks
        self._context = context(width, height)
        self._context.make_current()
        self._drawn = _drawn(mj, model)
        mj.mjr_setBuffer(mj.mjtFramebuffer.mjFB_OFFSCREEN.value, self._drawn)
        self._free = weakref.finalize(self, _free, self._drawn, self._context)
        atexit.register(self._free)  # after the library registered its own end, hence called before it

    def picture(self, data: Any) -> Pixels:
        """What is seen of the model in that state."""
        mj, rectangle = self._mujoco, self._rectangle
        self._context.make_current()  # another camera's may be
        mj.mjv_updateScene(
            self._model, data, self._option, None, self._camera, mj.mjtCatBit.mjCAT_ALL.value, self._scene
        )
        for place in self._marks:
            self._mark(place)
        pixels = np.empty((rectangle.height, rectangle.width, 3), np.uint8)
        depths = np.empty((rectangle.height, rectangle.width), np.float32)
        mj.mjr_render(rectangle, self._scene, self._drawn)
        mj.mjr_readPixels(pixels, depths, rectangle, self._drawn)
        pixels[depths == FARTHEST] = SKY
        return np.ascontiguousarray(pixels[::-1])  # the first row is the lowest

    def _mark(self, place: tuple[float, float, float]) -> None:
        """Adds a plate to the scene."""
        geom = self._scene.geoms[self._scene.ngeom]
        box, upright = self._mujoco.mjtGeom.mjGEOM_BOX, np.eye(3).ravel()
        self._mujoco.mjv_initGeom(geom, box, np.array(PLATE), np.array(place), upright, np.array(RED, np.float32))
        self._scene.ngeom += 1

    def close(self) -> None:
        """Gives back what the graphics library holds; nothing can be drawn any more."""
        self._free()
        atexit.unregister(self._free)


def _placed(mj: Any, model: Any, view: View) -> Any:
    camera = mj.MjvCamera()
    if view.camera:
        camera.type, camera.fixedcamid = mj.mjtCamera.mjCAMERA_FIXED, model.camera(view.camera).id
        return camera
    camera.type, camera.trackbodyid = mj.mjtCamera.mjCAMERA_TRACKING, model.body(view.body).id
    camera.distance, camera.azimuth, camera.elevation = view.distance, view.azimuth, view.elevation
    return camera


def _drawn(mj: Any, model: Any) -> Any:
    """The model as the graphics library knows it, with our quality; the model itself stays as it is."""
    quality = model.vis.quality
    usual = quality.shadowsize, quality.offsamples
    quality.shadowsize, quality.offsamples = SHADOWS, SAMPLES
    try:
        return mj.MjrContext(model, mj.mjtFontScale.mjFONTSCALE_100.value)
    finally:
        quality.shadowsize, quality.offsamples = usual


def _free(drawn: Any, graphics: Any) -> None:
    graphics.make_current()
    drawn.free()
    graphics.free()
