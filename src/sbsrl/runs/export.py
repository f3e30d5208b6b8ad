"""A learned policy where it can stand alone: as ONNX if it is a network, else with all that it needs to run."""

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..atomic import disk, write_atomically
from ..errors import UserError
from ..loop import greedy_policy
from ..own.names import is_local
from ..own.settings import INFO, OwnSettings
from ..policy import Memoryless
from ..task import Task
from .borrowed_phase import KEPT
from .folder import DATA, PRIOR
from .load import load
from .train import Result

__all__ = ["Exported", "export"]

NEEDED = ("config.json", "episodes.jsonl", "certificate.json", "checkpoint", DATA, PRIOR, KEPT)
"""What of a run folder a policy that plans needs to run."""
COMPARED = 1000
"""Random observations at which an exported network is compared with the original."""
TOLERANCE = 1e-4
"""By which actions may differ there, as a share of their range: both compute in single precision."""


class Exported(NamedTuple):
    """What was written."""

    path: Path
    error: float | None
    """The largest difference from the original, as a share of the range of actions; None where it is a copy."""


def export(path: str | Path, out: str | Path | None = None, **things: Any) -> Exported:
    """Writes the policy that a run has learned: a file policy.onnx, or for a planner a folder that `load` understands.

    The network takes `observation`, rows of single precision, and gives `action`. `things` are objects that the run
    began with and that have no name, as for `resume`.
    """
    result = load(path, **things)
    assert result.folder is not None
    policy = greedy_policy(result.experiment, result.learner)
    if isinstance(policy, Memoryless):
        return _network(policy, result, Path(out or result.folder / "policy.onnx"))
    return _bundle(result, Path(out or result.folder.with_name(f"{result.folder.name}-policy")))


def _network(policy: Memoryless, result: Result, out: Path) -> Exported:
    runtime, to_onnx = _tools()
    task, names = result.experiment.task, {"input_names": ["observation"], "output_names": ["action"]}
    model = to_onnx(policy.actions, [("n", task.state_size)], model_name="policy", **names)
    model.graph.doc_string = _description(result)
    content = model.SerializeToString()
    error = _difference(runtime.InferenceSession(content), policy, task, _typical(result))
    if not error <= TOLERANCE:
        raise UserError(
            f"the exported network differs from the original by {error:.2g} of the range of actions, so nothing was "
            "written; this is a fault of the conversion, please report it."
        )
    with disk(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, content)
    return Exported(out, error)


def _tools() -> tuple[Any, Any]:
    try:
        import onnxruntime  # noqa: PLC0415
        from jax2onnx import to_onnx  # noqa: PLC0415
    except ImportError:
        raise UserError("to export a network install the extra: pip install 'sbsrl[onnx]'.") from None
    return onnxruntime, to_onnx


def _description(result: Result) -> str:
    task = result.experiment.task
    return (
        f"Policy of {task.name}, learned by {result.config['method']} with sbsrl {version('sbsrl')}. observation: "
        f"{', '.join(task.state_names)}. action: between {list(task.action_low)} and {list(task.action_high)}."
    )


def _typical(result: Result) -> Float[np.ndarray, "n dx"]:
    """Random observations around those that the policy knows, and far from them."""
    rng = np.random.default_rng(0)
    data = result.experiment.task.prior.data
    known = np.zeros((1, result.experiment.task.state_size)) if data is None else data.states
    middle, spread = known.mean(axis=0), known.std(axis=0) + 1e-3
    scales = rng.choice([0.3, 1.0, 3.0, 10.0], size=(COMPARED, 1))
    return middle + scales * spread * rng.normal(size=(COMPARED, len(middle)))


def _difference(session: Any, policy: Memoryless, task: Task, observations: Float[np.ndarray, "n dx"]) -> float:
    x = observations.astype(np.float32)
    found = session.run(["action"], {"observation": x})[0]
    wanted = np.asarray(policy.actions(jnp.asarray(x)))
    half = np.asarray(task.action_high) - np.asarray(task.action_low)
    return float(np.max(np.abs(found - wanted) / half))


def _bundle(result: Result, out: Path) -> Exported:
    """A copy of what a planner needs: what is believed, and how it plans. It runs where sbsrl is installed."""
    assert result.folder is not None
    needed = _own_code(result)
    if local := [word for word in needed if is_local(word)]:
        raise UserError(
            f"the planner needs {', '.join(local)}, objects of the program that began the run, which cannot be written "
            "down; put them into a module, and begin anew."
        )
    if out.exists():
        raise UserError(f"{out} exists already; choose another --out.")
    with disk(out):
        out.mkdir(parents=True)
        for name in NEEDED:
            source = result.folder / name
            if source.is_dir():
                shutil.copytree(source, out / name)
            elif source.exists():
                shutil.copy2(source, out / name)
        (out / "trajectories").mkdir()
        (out / "README.md").write_text(_how_to_use(result))
    return Exported(out, None)


def _own_code(result: Result) -> list[str]:
    """What of the user's own code a planner asks: functions by their names."""
    given = result.experiment.settings.task
    if not isinstance(given, OwnSettings):
        return []
    words = (*(source for _, source in given.costs), given.reward, given.simulator, given.fallback)
    return [word for word in words if ":" in word and not word.startswith(f"{INFO}:")]


def _how_to_use(result: Result) -> str:
    code = "".join(f"- `{word}`\n" for word in _own_code(result))
    wanted = f", and your own code, importable from where it runs:\n\n{code}" if code else ".\n"
    return (
        f"# A policy of {result.experiment.task.name.rstrip(':')}\n\nIt plans anew at every step, with the belief in "
        f"`checkpoint/`. It needs `pip install sbsrl`{wanted}\n    import sbsrl\n\n"
        '    policy = sbsrl.load("FOLDER").policy\n    policy.reset()              # at the beginning of an episode\n'
        "    action = policy(observation)\n    policy.observe(reward, costs)  # only where a cost is summed over the "
        "episode\n"
    )
