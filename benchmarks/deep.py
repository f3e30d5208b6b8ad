"""Speed and memory with networks: whole runs on one core, and what one update of a policy is made of; writes `deep.md`.

taskset -c 0 python benchmarks/deep.py
taskset -c 0 python benchmarks/deep.py bodies    # all methods on the tasks without equations; writes `bodies.md`
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from sbsrl._configure import cache_folder

HERE = Path(__file__).parent
RUNS = {
    ("race-car", "gradient"): (75, 180.0),
    ("rwrl-cartpole", "gradient"): (30, 300.0),
    ("race-car", "actor-critic"): (25, None),
    ("rwrl-cartpole", "actor-critic"): (25, None),
}
"""By task and solver: episodes after the offline phase, and the CPU-seconds that both may take together, if limited."""
MEMORY = 1.5
"""GB."""
BODIES = ("rwrl-quadruped", "rwrl-humanoid", "go-to-goal")
METHODS, EPISODES = ("sbsrl", "mean", "mbpo", "sooper"), 3
"""On each of them; all that a run compiles and keeps is there after so many episodes."""
FEW = {"race-car": "careless:25:0", "rwrl-cartpole": "pump:25:0"}
"""Data for a profile, which learns nothing from them."""


class Measured(NamedTuple):
    """A run in a process of its own."""

    recorded: float
    """To make the offline data, which a user has: it is not part of the rest."""
    offline: float
    total: float
    """The offline phase and all episodes."""
    gigabytes: float
    compiled_late: int
    """Programs that were compiled after the first episode."""


# in the process of one run -----------------------------------------------------------------------------------------


def run(task: str, solver: str, episodes: int, method: str = "sbsrl") -> None:
    """Trains in memory and prints what it took, as JSON."""
    import resource  # noqa: PLC0415

    import jax  # noqa: PLC0415

    from sbsrl.loop import algorithm_1, prepared  # noqa: PLC0415
    from sbsrl.runs.system import LazySystem  # noqa: PLC0415
    from sbsrl.specification import Specification  # noqa: PLC0415
    from sbsrl.systems.episode import Guard, run_episode  # noqa: PLC0415

    compiled = [0]

    def heard(event: str, duration_secs: float, **_: Any) -> None:
        compiled[0] += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(heard)
    spec = Specification.make(task, method, 7, "cpu", {"episodes": episodes, "solver": solver})
    began = time.process_time()
    spec.make_task()
    started = time.process_time()
    experiment, learner = spec.start()
    learner, _ = prepared(experiment, learner)
    offline = time.process_time() - started
    late, guard = 0, Guard.of(experiment.task, experiment.settings.run.step_timeout)
    with LazySystem(experiment.task, lambda text: None) as system:

        def play(policy: Any, turn: Any) -> Any:
            horizon = experiment.task.horizon
            return run_episode(system.open(), policy, turn.seed, turn.key, horizon, guard=guard)

        for number, _ in enumerate(algorithm_1(experiment, learner, play)):
            if number == 0:
                late = compiled[0]
    total = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps(Measured(started - began, offline, total, peak, compiled[0] - late)._asdict()))


def profile(task: str) -> None:
    """Prints the CPU-seconds of one update of the policy and of parts of it, the least of several."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    from sbsrl.learner import context_of  # noqa: PLC0415
    from sbsrl.solve.gradient.whole import sizes_of  # noqa: PLC0415
    from sbsrl.solve.network.episodes import episodes, rows_of  # noqa: PLC0415
    from sbsrl.solve.network.forecast import spread_starts  # noqa: PLC0415
    from sbsrl.specification import Specification  # noqa: PLC0415
    from sbsrl.starts import draw_starts  # noqa: PLC0415

    experiment, learner = Specification.make(task, "sbsrl", 7, "cpu", {"data": FEW[task]}).start()
    solver, state, belief = cast("Any", experiment.solver), learner.solver, cast("Any", learner.belief)
    problem = experiment.method.problem(context_of(experiment, learner))
    sizes = sizes_of(solver.choices, solver.domain.horizon)
    key = jax.random.key(0)
    rows = rows_of(problem, sizes.each, sizes.nominal)
    starts = draw_starts(solver.domain.start, sizes.each + sizes.nominal, key)
    placed = spread_starts(starts, experiment.settings.method.samples, sizes.each, sizes.nominal)
    steps = solver.choices.segment or sizes.horizon
    n, M = len(placed), belief.ensemble.nets.count

    def whole(network: Any) -> Any:
        totals = episodes(network, solver.domain.units, rows, placed, problem, steps, 0.1, True, key)
        return jnp.sum(totals.rewards) + jnp.sum(totals.costs)

    members = belief.ensemble.nets.members

    def products(x: Any) -> Any:
        """The matrix products of the networks alone, forwards; x has the inputs of all, those of the costs first."""

        def step(x: Any, _: None) -> tuple[Any, None]:
            total = jnp.zeros((), jnp.float32)
            for network in members:
                h = jnp.broadcast_to(x[None, :, : network[0].weights.shape[1]], (M, n, network[0].weights.shape[1]))
                for layer in network:
                    h = h @ layer.weights
                total = total + jnp.sum(h)
            return x + 0 * total, None

        return jax.lax.scan(step, x, None, length=steps)[0]

    wide = jnp.zeros((n, max(network[0].weights.shape[1] for network in members)), jnp.float32)
    parts = {
        "update": seconds(lambda: solver._block(problem, state, key)) / (sizes.updates * solver.choices.rounds),
        "gradient": seconds(jax.jit(jax.grad(whole)), state.network),
        "forward": seconds(jax.jit(whole), state.network),
        "products": seconds(jax.jit(products), wide),
    }
    print(json.dumps({**parts, "rows": n, "steps": steps}))


def integrator() -> None:
    """Prints the CPU-seconds of a gradient through 250 steps of 30 cars whose equations are known, in two ways."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    from sbsrl.tasks import race_car  # noqa: PLC0415

    starts = jnp.tile(race_car.reset(jax.random.key(0)).astype(jnp.float32), (30, 1))
    actions = jnp.full((30, 2), 0.3, jnp.float32)

    def gradient() -> Any:
        def final(actions: Any) -> Any:
            step = jax.checkpoint(lambda x, _: (jax.vmap(race_car.ghost)(x, actions), None))
            return jnp.sum(jax.lax.scan(step, starts, None, length=250)[0])

        return jax.jit(jax.grad(final))

    loop = seconds(gradient(), actions)
    race_car.runge_kutta = unrolled  # type: ignore[attr-defined]
    plain = seconds(gradient(), actions, repeats=2)
    print(json.dumps({"loop": loop, "plain": plain}))


def unrolled(slope: Callable[[Any], Any], place: Any, dt: float) -> Any:
    """The same method with its four stages written one after the other."""
    import jax  # noqa: PLC0415

    def along(seconds: float, way: Any) -> Any:
        return jax.tree.map(lambda y, rate: y + seconds * rate, place, way)

    first = slope(place)
    second = slope(along(dt / 2, first))
    third = slope(along(dt / 2, second))
    fourth = slope(along(dt, third))
    return along(dt / 6, jax.tree.map(lambda a, b, c, d: a + 2 * b + 2 * c + d, first, second, third, fourth))


def seconds(work: Callable[..., Any], *inputs: Any, repeats: int = 5) -> float:
    """CPU-seconds, the least of several."""
    import jax  # noqa: PLC0415

    jax.block_until_ready(work(*inputs))
    found = []
    for _ in range(repeats):
        started = time.process_time()
        jax.block_until_ready(work(*inputs))
        found.append(time.process_time() - started)
    return min(found)


# the page ----------------------------------------------------------------------------------------------------------


def asked(*words: str) -> dict[str, Any]:
    """What a process of its own printed. It finds compiled programs, but no recorded data."""
    with tempfile.TemporaryDirectory() as nothing:
        places = {"JAX_COMPILATION_CACHE_DIR": cache_folder("jax"), "XDG_CACHE_HOME": nothing}
        words = (sys.executable, __file__, *words)
        done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **places})
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    lines = [
        "# Speed and memory with networks",
        "",
        "`taskset -c 0 python benchmarks/deep.py`: CPU-seconds of a whole run on one core, compilation included; to "
        "record the offline data takes the time in the last column, which is not part of the others.",
        "",
        "| run | offline | all | allowed | met | peak memory | compiled after the first episode | data |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (task, solver), (episodes, allowed) in RUNS.items():
        found = Measured(**asked("run", task, solver, str(episodes)))
        met = found.total <= (allowed or found.total) and found.gigabytes <= MEMORY
        limit = f"{MEMORY} GB" if allowed is None else f"{allowed:.0f} s, {MEMORY} GB"
        lines.append(
            f"| {task}, {solver}, offline and {episodes} episodes | {found.offline:.0f} s | {found.total:.0f} s | "
            f"{limit} | {'yes' if met else '**no**'} | {found.gigabytes:.2f} GB | "
            f"{found.compiled_late} | {found.recorded:.0f} s |"
        )
    lines += [
        "",
        "One update of the policy, ratios of CPU-seconds measured in one run. Matrix products of the networks are done "
        "once forwards; gradients need them again (the body of the scan is recomputed) and once more backwards, since "
        "the networks themselves are constants here.",
        "",
        "| task | rows x steps | update | gradient: share | forwards | products, forwards | 3 x products / gradient |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in FEW:
        p = asked("profile", task)
        shares = " | ".join(f"{p[part] / p['update']:.2f}" for part in ("gradient", "forward", "products"))
        size, needed = f"{p['rows']} x {p['steps']}", 3 * p["products"] / p["gradient"]
        lines.append(f"| {task} | {size} | {1e3 * p['update']:.0f} ms | {shares} | {needed:.2f} |")
    cars = asked("integrator")
    lines += [
        "",
        f"A gradient through 250 steps of 30 cars whose equations are known: {1e3 * cars['loop']:.0f} ms with the "
        f"stages of Runge-Kutta as a loop; {cars['plain'] / cars['loop']:.0f} times as long with the stages one after "
        "the other.",
    ]
    (HERE / "deep.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def bodies() -> None:
    """Every method on every task without equations."""
    lines = [
        "# Memory of a run on the tasks without equations",
        "",
        "`taskset -c 0 python benchmarks/deep.py bodies`: each run in a process of its own on one core, the offline "
        f"phase and {EPISODES} episodes. CPU-seconds with compilation, but without recording the data.",
        "",
        "| task | method | offline | per episode after it | peak memory |",
        "|---|---|---|---|---|",
    ]
    for task in BODIES:
        for method in METHODS:
            found = Measured(**asked("run", task, "gradient", str(EPISODES), method))
            each = (found.total - found.offline) / EPISODES
            lines.append(f"| {task} | {method} | {found.offline:.0f} s | {each:.0f} s | {found.gigabytes:.2f} GB |")
            print(lines[-1], flush=True)
    (HERE / "bodies.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
    elif sys.argv[1:2] == ["bodies"]:
        bodies()
    elif sys.argv[1:2] == ["profile"]:
        profile(sys.argv[2])
    elif sys.argv[1:2] == ["integrator"]:
        integrator()
    else:
        main()
