"""What it costs to learn from an episode and to draw new samples; writes `belief.md`."""

from pathlib import Path

import equinox as eqx
import jax
from common import EPISODE, belief_at, episodes, paper_size, seconds, table

from sbsrl.belief.gp import GPBelief
from sbsrl.belief.posterior import Posterior


def main() -> None:
    experiment = paper_size()
    belief = belief_at(experiment, 450, 500)
    data = episodes(10)[9]
    key = jax.random.key(0)

    @eqx.filter_jit
    def from_scratch(belief: GPBelief) -> Posterior:
        old = belief.groups[0].posterior
        return Posterior.given(old.kernel, old.noise, old.inputs, old.targets, old.count)

    def refresh() -> object:
        return belief.update(data, key).samples(key, 30)

    tasks = {
        "append an episode and draw 30 new samples": refresh,
        "append an episode of 50 points": lambda: belief.update(data, key),
        "factorise 450 points anew": lambda: from_scratch(belief),
        "draw 30 samples": lambda: belief.samples(key, 30),
        "nominal dynamics": belief.nominal,
        "uncertainty": belief.uncertainty,
        "look for empty intersections at all data": belief.calibration_warning,
    }
    times = seconds(list(tasks.values()), 15)
    rows = [[name, f"{t / times[1]:.2f}", f"{1000 * t:.1f} ms"] for name, t in zip(tasks, times, strict=True)]
    centres = int(belief.groups[0].centres.count)
    lines = [
        "# The belief (`make bench`)",
        "",
        f"450 points of the pendulum in 9 episodes of {EPISODE}; {centres} centres stand for them in planning.",
        "Processor time of one process, measured in turns in one run.",
        "",
        *table(["what", "ratio to appending", "time"], rows),
    ]
    (Path(__file__).parent / "belief.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
