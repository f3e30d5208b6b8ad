"""Counts what the ledgers of runs with networks say, in a page beside it: `python results/deep-runs/summarise.py`.

`ledgers.tar.xz` holds config.json, offline.json and episodes.jsonl of every run that had ended, as `sbsrl reproduce`
leaves them in `runs/study`. Unpacked there, a study of the same code goes on from them.
"""

import json
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DEFAULTS = {"samples": "combinations", "adapted": True, "networks": 5, "prior_scale": 3.0}
KAPPA = {"race-car": 2.0, "rwrl-cartpole": 0.75}
HEAD = "| world | d | offline data | method | differs | priors | runs x policies | violating policies |"
MORE = " largest true cost | violating episodes | true return: final, last 10 | constraint active | covered |"


def read() -> dict[str, list[list[dict[str, Any]]]]:
    """The episodes of every run, by what was compared."""
    files: dict[str, dict[str, str]] = defaultdict(dict)
    with tarfile.open(HERE / "ledgers.tar.xz") as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                run, name = Path(member.name).parts[-2:]
                files[run][name] = file.read().decode()
    arms = defaultdict(list)
    for run in sorted(files):
        arms[arm(json.loads(files[run]["config.json"]))].append(
            [json.loads(line) for line in files[run]["episodes.jsonl"].splitlines()]
        )
    return arms


def arm(config: dict[str, Any]) -> str:
    """The first cells of a row."""
    settings = config["settings"]
    run, task, belief = settings["run"], settings.get("task", {}), settings["belief"]
    differs = [f"{name}={belief[name]}" for name, usual in DEFAULTS.items() if belief[name] != usual]
    differs += [f"kappa={belief['kappa']}"] * (belief["kappa"] != KAPPA[config["task"]])
    differs += [f"cost={task.get('cost')}"] * (task.get("cost", "places") != "places")
    differs += [f"tightening={settings['method']['tightening'][0]:g}"] * any(settings["method"]["tightening"])
    behaviour, episodes, prior = run["data"].split(":")
    world = f"{config['task']} {task.get('contact', '')}".strip()
    priors = f"from {100 * (int(prior) // 100) + 1}"
    cells = (world, f"{run['budget'][0]:g}", f"{episodes} {behaviour}", config["method"], ", ".join(differs), priors)
    return " | ".join((*cells, str(run["episodes"] + 1)))


def row(name: str, runs: list[list[dict[str, Any]]]) -> str:
    """One row of the table."""
    *cells, policies = name.split(" | ")
    lines = [line for run in runs for line in run]
    true = [line["metrics"]["true_cost"] for line in lines]
    budget = lines[0]["budget"]
    violating = [sum(line["metrics"]["true_cost"] > budget for line in run) for run in runs]
    final = ", ".join(f"{run[-1]['metrics']['true_return']:.0f}" for run in runs)
    last = sum(line["metrics"]["true_return"] for run in runs for line in run[-10:]) / (10 * len(runs))
    covered = [line["metrics"]["covered"] for line in lines if "covered" in line["metrics"]]
    active = sum(line["metrics"]["multiplier"] > 1e-3 for line in lines) / len(lines)
    more = (
        f"{len(runs)} x {policies}",
        f"{sum(violating)}, in {sum(v > 0 for v in violating)} runs",
        f"{max(true):.1f}",
        f"{sum(not line['safe'] for line in lines)}",
        f"{final}; {last:.0f}",
        f"{100 * active:.0f} %",
        f"{100 * sum(covered) / len(covered):.0f} %" if covered else "",
    )
    return "| " + " | ".join((*cells, *more)) + " |"


def main() -> None:
    """Writes the page."""
    arms = read()
    table = [HEAD + MORE, "|" + "---|" * 13, *(row(name, arms[name]) for name in sorted(arms))]
    (HERE / "README.md").write_text((HERE / "about.md").read_text() + "\n" + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
