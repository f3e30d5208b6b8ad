"""What a person sees in the terminal: progress with the time left, a line an episode, a table at the end."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ..loop import Experiment, Record
from ..runs.certificate import verdict
from .reference import Reference

__all__ = ["Terminal", "progress_bar", "summary_table"]


def progress_bar(console: Console) -> Progress:
    """What long work shows: how far it is, and the time left. It vanishes when the work is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Terminal:
    """Shows a run as it happens. Use it as a context, so that the display ends with the run."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = progress_bar(console)
        self._episodes = 0
        self._expected = False
        """Whether the budget bounds the expected cost, so that a single episode may cost more."""
        self._bar = self._progress.add_task("preparing", total=None)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def started(self, experiment: Experiment, done: list[Record], folder: Path | None) -> None:
        settings, task = experiment.settings, experiment.task
        self._episodes = settings.episodes
        self._expected = task.aggregation == "sum"
        place = f", in {escape(str(folder))}" if folder else ""
        self.console.print(
            f"[bold]{task.name}[/] by [bold]{experiment.method.name}[/]: {settings.episodes} episodes, "
            f"{settings.samples} samples, {task.cost_name} <= {task.budget:g}{place}",
            highlight=False,
            soft_wrap=True,
        )
        self._progress.start()
        total = (settings.episodes + 1) * task.horizon
        self._progress.update(self._bar, total=total, completed=len(done) * task.horizon)
        self._describe_episode(len(done))
        for record in done:
            self._line(record, note="done before")

    def note(self, text: str) -> None:
        self.console.print(f"[yellow]note:[/] {escape(text)}", highlight=False)

    def stepped(self) -> None:
        self._progress.advance(self._bar)

    def finished_episode(self, record: Record) -> None:
        self._line(record, note=f"{record.seconds:.1f} s")
        self._describe_episode(record.episode + 1)

    def _describe_episode(self, episode: int) -> None:
        self.describe(f"episode {episode}" if episode < self._episodes else "final policy")

    def describe(self, text: str) -> None:
        """Says what is being done, next to the bar."""
        self._progress.update(self._bar, description=text)

    def _line(self, record: Record, note: str) -> None:
        word = "[yellow]above the budget by" if self._expected else "[bold red]VIOLATION"
        verdict = "[green]safe[/]" if record.safe else f"{word} {record.violation:.3g}[/]"
        self.console.print(
            f"  {record.episode:3d}  {record.phase:8s} return {record.reward:9.2f}   "
            f"cost {record.cost:7.3f} of {record.budget:g}   {verdict}   [dim]{note}[/]",
            highlight=False,
        )
        if not record.feasible:
            self.console.print(
                f"       [yellow]{record.infeasible_plans} plans were infeasible: no candidate met the tightened "
                f"budget on every sample (by up to {record.worst_plan:.3g}); the least-violating was followed.[/]",
                highlight=False,
            )
        if record.objection:
            self.console.print(f"       [yellow]{escape(record.objection)}.[/]", highlight=False)


def summary_table(experiment: Experiment, records: Sequence[Record], reference: Reference | None) -> Table:
    """The run in a few rows."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    last, unsafe = records[-1], [r for r in records if not r.safe]
    infeasible = sum(r.infeasible_plans for r in records)
    table.add_row("final return", f"{last.reward:.2f}")
    if reference:
        scale = (
            f"0 = doing nothing, {reference.idle:.2f}; 1 = the same planner knowing the system, {reference.oracle:.2f}"
        )
        table.add_row("  normalised", f"{reference.normalised(last.reward):.3f}  ({scale})")
    for name, text in _cost_rows(experiment, records, unsafe):
        table.add_row(name, text)
    table.add_row("infeasible plans", "[green]none[/]" if not infeasible else f"[yellow]{infeasible}[/]")
    if objection := next((r.objection for r in records if r.objection), None):
        table.add_row("calibration", f"[yellow]{escape(objection)}[/]")
    explored = sum(r.phase == "explore" for r in records)
    table.add_row("episodes", f"{len(records)}, of which {explored} under the exploration constraint")
    table.add_row("time", f"{sum(r.seconds for r in records):.0f} s")
    table.add_row("guarantee", escape(verdict(experiment, records)))
    return table


def _cost_rows(
    experiment: Experiment, records: Sequence[Record], unsafe: Sequence[Record]
) -> Iterator[tuple[str, str]]:
    budget, count = f"{experiment.task.budget:g}", f"{len(unsafe)} of {len(records)}"
    largest = max(r.cost for r in records)
    if experiment.task.aggregation == "sum":
        yield "mean cost", f"{sum(r.cost for r in records) / len(records):.3f}; {budget} bounds the expected cost"
        yield "largest cost", f"{largest:.3f}; {count} single episodes cost more than {budget}"
        return
    yield "largest cost", f"{largest:.3f} of {budget}"
    yield "violating episodes", "[green]none[/]" if not unsafe else f"[bold red]{count}[/]"
