"""What a run may claim about safety, in words and numbers."""

from collections.abc import Sequence
from typing import Any

from ..belief import SAMPLERS
from ..loop import Experiment, Record

__all__ = ["certificate", "first_episode_warning"]


FIRST_EPISODE = (
    "not certified: assumption 3 asks for a policy that is safe for every dynamics within B sqrt(k) of the prior mean, "
    "which was not checked; see 'infeasible_episodes' for whether its plans were safe on all samples"
)


def first_episode_warning(experiment: Experiment) -> str | None:
    """A plain word for runs whose first episode nothing can make safe."""
    if experiment.task.prior.informative:
        return None
    return (
        f"prior '{experiment.task.prior.name}': nothing is known of the system, so episode 0 is not certified to be "
        "safe, and no choice of settings can make it so. Use a prior on anything that can break."
    )


def certificate(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any]:
    """No guarantee is claimed for a sample count that was chosen and not derived; what was seen is counted."""
    task, settings = experiment.task, experiment.settings
    return {
        "guarantee": "none",
        "reason": (
            f"M = {settings.samples} samples and the tightening {settings.tightening:g} are heuristic choices, not "
            f"derived from the sample-count lemma; samples are {SAMPLERS[settings.sampler]}; plans are found by search."
        ),
        "first_episode": first_episode_warning(experiment) or FIRST_EPISODE,
        "assumptions": {
            "prior": task.prior.name,
            "rkhs_bound": task.prior.bound,
            "rkhs_bound_source": task.prior.bound_source,
            "noise": task.prior.noise,  # in units of scale
            "scale": list(task.prior.scale),
            "kernel": task.prior.describe_kernel(),
            "hyper_parameters": "fitted to the data, which voids the guarantee" if settings.fitted else "fixed",
            "delta": settings.delta,
            "calibration": next((r.objection for r in records if r.objection), "not contradicted by the data"),
        },
        "observed": {
            "episodes": len(records),
            "violating_episodes": [r.episode for r in records if not r.safe],
            "largest_violation": max((r.violation for r in records), default=0.0),
            "infeasible_episodes": [r.episode for r in records if not r.feasible],
            "infeasible_plans": sum(r.infeasible_plans for r in records),
        },
    }
