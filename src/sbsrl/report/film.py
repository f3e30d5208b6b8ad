"""Episodes as films, in real time: a GIF, or an MP4 where imageio-ffmpeg is installed."""

import io
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from ..atomic import disk, write_atomically
from ..errors import UserError, unknown
from ..runs.replay import FIRST, LAST, Replay, replays
from .caption import framed

__all__ = ["FORMATS", "check_format", "make_films", "read_episodes"]

HOLD = 1.0
"""Seconds for which the last picture is seen."""


def make_films(
    folder: Path, episodes: str, form: str = "", on_film: Callable[[Path], None] = lambda path: None
) -> list[Path]:
    """Writes `videos/episode-NNNN.FORM` of these episodes of a run into its folder, and tells of each.

    An episode is played again on a system that is opened for it, and must go as it did; see `replays`.
    """
    chosen, kind, written = read_episodes(episodes), check_format(form), []
    for replay in replays(folder, chosen, FORMATS[kind].most):
        path = folder / "videos" / f"episode-{replay.record.episode:04d}.{kind}"
        with disk(path.parent):
            path.parent.mkdir(exist_ok=True)
        write_atomically(path, FORMATS[kind].film(replay))
        on_film(path)
        written.append(path)
    return written


def read_episodes(text: str) -> list[str | int]:
    """Numbers of episodes, 'first' and 'last', between commas."""
    found: list[str | int] = []
    for word in (part.strip() for part in text.split(",")):
        if word not in {FIRST, LAST} and not word.removeprefix("-").isdecimal():
            raise UserError(f"'{word}' is no episode; give numbers, '{FIRST}' and '{LAST}', such as 0,5,{LAST}.")
        found.append(word if word in {FIRST, LAST} else int(word))
    return found


def check_format(form: str) -> str:
    """The format, by default the best that is installed; a UserError if it is not known or not installed."""
    has_mp4 = find_spec("imageio_ffmpeg") is not None
    if form and form not in FORMATS:
        raise unknown("video format", form, FORMATS)
    if form == "mp4" and not has_mp4:
        raise UserError("an mp4 needs imageio-ffmpeg; install it with pip install 'sbsrl[video]', or choose gif.")
    return form or ("mp4" if has_mp4 else "gif")


TICK = 10
"""Milliseconds: times in a GIF are whole numbers of these."""
COLOURS, SAMPLED = 64, 6
"""Of a GIF; from how many of its frames they are chosen."""


def _gif(replay: Replay) -> bytes:
    """One palette for all frames: what stays does not flicker."""
    frames = [framed(replay, t) for t in replay.pictures]
    palette = _palette([frames[i] for i in np.linspace(0, len(frames) - 1, SAMPLED).astype(int)])
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    times = np.array([*replay.pictures, len(replay.episode.actions) + HOLD * replay.rate]) / replay.rate
    milliseconds = [TICK * int(n) for n in np.diff(np.round(1000 * times / TICK))]
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=False)
    return buffer.getvalue()


def _palette(frames: Sequence[Image.Image]) -> Image.Image:
    """The colours that serve these frames best."""
    board = Image.new("RGB", (frames[0].width, len(frames) * frames[0].height))
    for i, frame in enumerate(frames):
        board.paste(frame, (0, i * frame.height))
    return board.quantize(COLOURS, Image.Quantize.MEDIANCUT)


def _mp4(replay: Replay) -> bytes:
    """With the codec that every browser plays."""
    import imageio_ffmpeg  # noqa: PLC0415  (an extra: only who uses it needs it)

    steps = list(replay.pictures)
    rate = replay.rate / max(1, steps[1] - steps[0])
    size = framed(replay, 0).size
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "film.mp4"
        given = [*IN, "-s", f"{size[0]}x{size[1]}", "-r", f"{rate:.4f}", "-i", "-"]
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", *given, *OUT, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
            assert ffmpeg.stdin is not None
            with suppress(BrokenPipeError):  # it has ended, and says why
                for t in [*steps, *[steps[-1]] * round(HOLD * rate)]:
                    ffmpeg.stdin.write(framed(replay, t).tobytes())
            _, said = ffmpeg.communicate()
        if ffmpeg.returncode:
            raise UserError(f"the film could not be made ({said.decode().strip()}); choose gif.")
        return path.read_bytes()


IN = ("-f", "rawvideo", "-pix_fmt", "rgb24")
OUT = ("-an", "-c:v", "libx264", "-crf", "23", "-pix_fmt", "yuv420p", "-movflags", "+faststart")
"""What ffmpeg is given, and what it makes."""


class _Format(NamedTuple):
    """A kind of file."""

    film: Callable[[Replay], bytes]
    most: float
    """Pictures per second, at most: more of them make files large and show nothing new."""


FORMATS = {"mp4": _Format(_mp4, 25.0), "gif": _Format(_gif, 10.0)}
"""By the end of their names."""
