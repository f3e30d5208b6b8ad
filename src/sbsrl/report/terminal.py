"""What a person sees in the terminal: progress with the time left, a line per episode, a table at the end."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ..record import Interruption, Record
from ..runs.promise import promise_in_a_line
from ..runs.view import CostView, RunView

__all__ = ["Terminal", "episode_line", "evaluation_table", "progress_bar", "summary_table"]


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
        self._view: RunView | None = None
        self._bar = self._progress.add_task("preparing", total=None)

    def __enter__(self) -> "Terminal":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def started(self, view: RunView, folder: Path | None) -> None:
        self._view = view
        place = f", in {escape(str(folder))}" if folder else ""
        limits = " and ".join(f"{cost.name} <= {cost.budget:g}" for cost in view.costs)
        self.console.print(
            f"[bold]{escape(view.task)}[/] by [bold]{escape(view.method)}[/]: {view.episodes} episodes, "
            f"{view.setting('method', 'samples')} samples, {escape(limits)}{place}",
            highlight=False,
            soft_wrap=True,
        )
        for record in view.records:
            self._line(record, note="done before")
        self.describe("compiling")

    def note(self, text: str) -> None:
        self.console.print(f"[yellow]note:[/] {escape(text)}", highlight=False)

    def stepped(self) -> None:
        """Programs are compiled before the first step: from then on the time left can be told."""
        assert self._view is not None
        if self._progress.tasks[0].total is None:
            steps, done = self._view.horizon, sum(record.episode >= 0 for record in self._view.records)
            self._progress.reset(self._bar, total=(self._view.episodes + 1) * steps, completed=done * steps)
            self._describe_episode(done)
        self._progress.advance(self._bar)

    def finished_episode(self, record: Record) -> None:
        self._line(record, note=f"{record.seconds:.1f} s")
        self._describe_episode(record.episode + 1)

    def _describe_episode(self, episode: int) -> None:
        assert self._view is not None
        self.describe(f"episode {episode}" if episode < self._view.episodes else "final policy")

    def describe(self, text: str) -> None:
        """Says what is being done, next to the bar."""
        self._progress.update(self._bar, description=text)

    def _line(self, record: Record, note: str) -> None:
        assert self._view is not None
        self.console.print(f"{episode_line(self._view, record)}   [dim]{note}[/]", highlight=False, soft_wrap=True)
        if record.infeasible_plans:
            self.console.print(f"       [yellow]{_infeasible(record)}[/]", highlight=False)
        if record.intervened:
            share = f"in {record.intervened:.0%} of the steps"
            self.console.print(f"       [yellow]another policy took over, {share}.[/]", highlight=False)
        for text in filter(None, (record.reason, record.calibration_warning)):
            self.console.print(f"       [yellow]{escape(text)}.[/]", highlight=False)


def episode_line(view: RunView, record: Record) -> str:
    """An episode in a line, with markup."""
    expected = view.above_expectation_only(record)
    word = "[yellow]above the budget by" if expected else "[bold red]VIOLATION"
    verdict = "[green]safe[/]" if record.safe else f"{word} {record.violation:.3g}[/]"
    early = "" if record.ended == "horizon" else f"   [yellow]{record.ended} after {record.steps} steps[/]"
    return (
        f"  {record.episode:3d}  {record.phase:8s} return {record.reward:9.2f}   "
        f"cost {record.cost:7.3f} of {record.budget:g}   {verdict}{early}"
    )


def evaluation_table(view: RunView, records: Sequence[Record]) -> Table:
    """Episodes of one policy in a few rows."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    returns = [record.reward for record in records]
    spread = f" ± {stdev(returns):.2f}" if len(returns) > 1 else ""
    table.add_row("return", f"{mean(returns):.2f}{spread} over {len(returns)} episodes")
    for name, text in _safety_rows(replace(view, records=records, interruptions=())):
        table.add_row(name, text)
    return table


def _infeasible(record: Record) -> str:
    """What was done for want of something feasible."""
    beyond = f"by up to {record.worst_plan:.3g}"
    if "checks" in record.metrics:
        return f"no policy passed its checks; the one that was played exceeds the budget on fresh samples {beyond}."
    plans = f"{record.infeasible_plans} plan{'s were' if record.infeasible_plans > 1 else ' was'} infeasible"
    then = "the least-violating was followed"
    return f"{plans}: no candidate met the tightened budget on every sample ({beyond}); {then}."


def summary_table(view: RunView, waited: float | None = None) -> Table:
    """The run in a few rows; `waited` is how long the user did, in seconds."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    records = view.records
    if records:
        for name, text in (*_return_rows(view), *_safety_rows(view)):
            table.add_row(name, text)
    explored = sum(r.phase == "explore" for r in records)
    table.add_row("episodes", f"{len(records)}, of which {explored} under the exploration constraint")
    table.add_row("time", _time(sum(r.seconds for r in records), waited))
    table.add_row("guarantee", escape(view.verdict))
    if view.certificate and (promised := view.certificate.get("risk")):
        table.add_row("risk", escape(promise_in_a_line(promised)))
    return table


def _return_rows(view: RunView) -> Iterator[tuple[str, str]]:
    last, ends = next((r for r in reversed(view.records) if r.planned), view.records[-1]), view.reference
    yield ("final return" if last.phase == "final" else "return so far"), f"{last.reward:.2f}"
    if last.ended == "fault":
        yield "cut short", f"[yellow]episode {last.episode}, after {last.steps} steps: {escape(last.reason)}[/]"
    elif ends:
        scale = f"0 = doing nothing, {ends.idle:.2f}; 1 = the same planner knowing the system, {ends.oracle:.2f}"
        yield "  normalised", f"{ends.normalised(last.reward):.3f}  ({scale})"


def _safety_rows(view: RunView) -> Iterator[tuple[str, str]]:
    for cost in view.costs:
        if len(view.costs) > 1:
            yield escape(cost.name), ""
        yield from _cost_rows(cost, [view.cost_of(r, cost) for r in view.records])
    infeasible = sum(r.infeasible_plans for r in view.records)
    yield "infeasible plans", "[green]none[/]" if not infeasible else f"[yellow]{infeasible}[/]"
    if any(r.intervened is not None for r in view.records):
        taken_over = sum(bool(r.intervened) for r in view.records)
        yield "interventions", f"another policy took over in {taken_over} of {len(view.records)} episodes"
    if view.interruptions:
        yield "interrupted", _interrupted(view.interruptions)
    if warning := next((r.calibration_warning for r in view.records if r.calibration_warning), None):
        yield "calibration", f"[yellow]{escape(warning)}[/]"


def _interrupted(stopped: Sequence[Interruption]) -> str:
    """Episodes that were stopped were played as well."""
    unsafe = sum(not each.safe for each in stopped)
    steps = ", ".join(str(each.steps) for each in stopped)
    found = f"[bold red]{unsafe} of them violated a budget[/]" if unsafe else "[green]no violation[/]"
    return f"{len(stopped)} more, stopped by the user after {steps} steps and played anew; {found}"


def _time(played: float, waited: float | None) -> str:
    return f"{played:.0f} s of episodes" if waited is None else f"{waited:.0f} s, of which episodes {played:.0f} s"


def _cost_rows(cost: CostView, values: Sequence[float]) -> Iterator[tuple[str, str]]:
    unsafe = sum(value > cost.budget for value in values)
    budget, count = f"{cost.budget:g}", f"{unsafe} of {len(values)}"
    if cost.expected:
        yield "mean cost", f"{sum(values) / len(values):.3f}; {budget} bounds the expected cost"
        yield "largest cost", f"{max(values):.3f}; {count} single episodes cost more than {budget}"
        return
    yield "largest cost", f"{max(values):.3f} of {budget}"
    yield "violating episodes", "[green]none[/]" if not unsafe else f"[bold red]{count}[/]"
