"""Every quantity of the theory as a row: symbol, name, value, how far it can be trusted, how it was found."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

from ..errors import UserError
from .calculator import DEEPEST, Calculator
from .exploration import VARIANCE_SUM_FACTORS
from .lipschitz import uncertainty_holder
from .samples import closeness_exponent, failure_probability, log_sample_count, resampling_delta
from .tightening import MOST_STEPS, tightening
from .words import above, below, power

__all__ = ["EPISODES", "Quantity", "Status", "Unit", "quantities"]

Status = Literal["certified", "estimated", "heuristic", "impossible"]
Unit = Literal["", "log10", "nats", "steps", "cost", "return", "scale"]
EPISODES = (0, 1, 10)
"""The numbers of episodes n for which what depends on n is shown."""


class Quantity(NamedTuple):
    """A number of the theory."""

    group: str
    symbol: str
    name: str
    value: float | None
    """In its unit; with the unit `log10` it is the decimal logarithm. None where there is no finite value."""
    unit: Unit
    """`scale` is the unit of the model's outputs, `cost` and `return` are those of J_c and of J_c or J_r."""
    text: str
    """The value for people."""
    status: Status
    how: str


def quantities(c: Calculator) -> Iterator[Quantity]:
    """All of them, group by group."""
    yield from _tightening(c)
    yield from _samples(c)
    if c.premises.samples is not None:
        yield from _in_use(c)
    yield from _confidence(c)
    yield from _exploration(c)
    yield from _episodes(c)


def _row(
    group: str,
    symbol: str,
    name: str,
    compute: Callable[[], float],
    unit: Unit,
    how: str,
    status: Status = "certified",
) -> Quantity:
    """A number that cannot be computed, or is infinite, is `impossible`, with the reason."""
    try:
        value = float(compute())
    except UserError as error:
        return Quantity(group, symbol, name, None, unit, "none", "impossible", str(error))
    if not math.isfinite(value):
        return Quantity(group, symbol, name, None, unit, "infinite", "impossible", "no finite value is known")
    rounded = below if symbol in LOWER or symbol.startswith("d_sigma") else above
    return Quantity(group, symbol, name, value, unit, power(value) if unit == "log10" else rounded(value), status, how)


LOWER = {"Delta", "Delta_use", "zeta", "zeta_max", "zeta_use", "x(M)", "T(M)"}
"""What is rounded down, like d_sigma: no more than the number that is shown can be relied on. The others are upper
bounds."""


def _log10(log: Callable[[], float]) -> Callable[[], float]:
    return lambda: log() / math.log(10)


def _tightening(c: Calculator) -> Iterator[Quantity]:
    premises, zeta = c.premises, c.premises.closeness
    row, known = partial(_row, "tightening"), premises.margin is not None
    believed: Status = "certified" if known else "heuristic"
    yield row(
        "Delta",
        "margin of safe policies",
        lambda: premises.largest_margin,
        "cost",
        "given (assumption prior_knowledge)" if known else "not known: the most optimistic value",
        believed,
    )
    yield _largest_zeta(c, believed)
    chosen = "given" if premises.zeta is not None else "chosen: 0.9 of zeta_max"
    yield row("zeta", "closeness of a sample", lambda: zeta, "scale", chosen, believed)
    for form, how in (("sharp", "by coupling"), ("paper", "zeta sqrt(d_x) T^2 C_max / sigma_w")):
        name = "tightening for zeta" if form == "sharp" else "the same in the paper"
        symbol = "Delta_zeta" if form == "sharp" else "Delta_zeta'"
        yield row(symbol, name, partial(tightening, zeta, premises.shape, form), "cost", how)
    if premises.tightening is not None:
        yield from _tightening_in_use(c, premises.tightening)


def _largest_zeta(c: Calculator, status: Status) -> Quantity:
    found = _row(
        "tightening",
        "zeta_max",
        "largest zeta",
        lambda: c.premises.closeness_limit,
        "scale",
        "Delta_zeta stays below Delta",
        status,
    )
    if found.value is None:  # every dynamics is close enough
        return found._replace(text="any", status=status, how="costs cannot differ by more than Delta")
    return found


def _tightening_in_use(c: Calculator, in_use: float) -> Iterator[Quantity]:
    row = partial(_row, "tightening")
    suffices = c.tightening_suffices
    yield row(
        "Delta_use",
        "tightening in use",
        lambda: in_use,
        "cost",
        "enough, with the M in use" if suffices else "chosen, not derived",
        "certified" if suffices else "heuristic",
    )
    if 0 < c.covered < math.inf:
        yield row("zeta_use", "zeta that it covers", lambda: c.covered, "scale", "Delta_zeta = Delta_use there")
        needed = _log10(partial(c.log_samples, c.covered))
        yield row("M(zeta_use)", "samples for that zeta", needed, "log10", "as M(zeta) below")


METHODS = {
    "exact": "exact for this kernel",
    "features": "upper bound by the kernel's features",
    "chaining": "upper bound by chaining over nets",
    "rank": "upper bound by the rank of the kernel",
    "split": "upper bound, a share of zeta for each summand",
}


def _samples(c: Calculator) -> Iterator[Quantity]:
    row, zeta = partial(_row, "samples"), c.premises.closeness
    how = "; ".join(METHODS.get(method, "") for method in c.methods(zeta))
    if len(c.premises.kernels) > 1:
        how += "; mean over outputs"
    yield row("phi", "small-ball exponent", partial(_small_ball, c, zeta), "nats", how)
    yield row("x", "exponent of one sample", lambda: c.exponent(zeta), "nats", "d_x (B^2/2 + phi): close with e^-x")
    needed = _log10(partial(c.log_samples, zeta))
    yield row("M(zeta)", "samples needed", needed, "log10", "ln delta / ln(1 - e^-x)")
    yield from _simulated(c)
    yield from _resampled(c)


def _small_ball(c: Calculator, zeta: float) -> float:
    """phi, or a complaint that says why it has no bound."""
    unknown = [method for method in c.methods(zeta) if method not in METHODS]
    if unknown:
        raise UserError(unknown[0])
    return c.small_ball(zeta)


def _simulated(c: Calculator) -> Iterator[Quantity]:
    """The same with a simulated exponent."""
    row = partial(_row, "samples")
    phi = row("phi~", "phi, simulated", lambda: c.simulated.value, "nats", "", "estimated")
    if phi.value is None:
        deep = phi.text == "infinite"
        yield phi._replace(text=f"> {DEEPEST:g}", how=f"no simulation beyond {DEEPEST:g} nats") if deep else phi
        return
    yield phi._replace(how=f"subset simulation +- {c.simulated.error:.2g}, no bound")
    exponent = partial(closeness_exponent, small_ball=phi.value, outputs=c.premises.outputs)
    needed = _log10(lambda: log_sample_count(exponent(c.bound), c.premises.delta))
    yield row("M~(zeta)", "samples, by simulation", needed, "log10", "M(zeta) with phi~ for phi", "estimated")


def _resampled(c: Calculator) -> Iterator[Quantity]:
    """The variant of appendix A: new samples from the posterior before every episode."""
    n = EPISODES[-1]
    shares = {
        "M_10": (f"drawn anew, {n + 1} episodes", resampling_delta(c.premises.delta, n, n + 1), f"delta / {n + 1}"),
        "M_10'": ("drawn anew, without end", resampling_delta(c.premises.delta, n), "6 delta/(pi (n+1))^2"),
    }
    for symbol, (name, delta, share) in shares.items():

        def needed(delta: float = delta) -> float:
            return log_sample_count(c.resampled_exponent(n), delta)

        how = f"beta_{n} for B, {share}"
        yield _row("samples", symbol, name, _log10(needed), "log10", how, _of_beta(c))


def _of_beta(c: Calculator) -> Status:
    """What rests on beta_n is proven if beta_n is."""
    return "certified" if c.calibrated else "heuristic"


def _in_use(c: Calculator) -> Iterator[Quantity]:
    """What the M in use buys."""
    row, zeta = partial(_row, "what M samples buy"), c.premises.closeness
    enough = c.premises.bound is not None and c.enough(zeta)
    yield row(
        "M",
        "samples in use",
        lambda: c.premises.samples or 0,
        "",
        "enough for zeta" if enough else "chosen, not derived",
        "certified" if enough else "heuristic",
    )
    yield row("x(M)", "exponent they afford", lambda: c.affordable, "nats", "-ln(1 - delta^(1/M))")
    yield _failure(c)
    yield row("zeta(M)", "smallest zeta they certify", lambda: _bought(c), "scale", "where M(zeta) = M")
    needs = row("Delta(M)", "tightening that needs", lambda: c.tightening(_bought(c)), "cost", "Delta_zeta at zeta(M)")
    if needs.value is not None and needs.value >= c.premises.largest_margin:
        needs = needs._replace(status="impossible", how="not below the margin Delta")
    yield needs
    yield _longest(c)


def _bought(c: Calculator) -> float:
    """The smallest zeta that the M in use certifies."""
    c.bound  # noqa: B018  (says that it is missing)
    if c.smallest_zeta is None:
        reason = "B alone needs more" if c.norm_exponent >= c.affordable else "phi is too large at every zeta"
        raise UserError(f"there is none: {reason}")
    return c.smallest_zeta


def _failure(c: Calculator) -> Quantity:
    exponent = partial(c.exponent, c.premises.closeness)
    found = _row(
        "what M samples buy",
        "delta(M)",
        "chance that none is close",
        lambda: failure_probability(exponent(), c.log_in_use),
        "",
        "(1 - e^-x)^M",
    )
    if found.value is None or found.value < 1 - 1e-6:
        return found
    missing = (exponent() - c.log_in_use) / math.log(10)
    return found._replace(text=f"1 - 10^{math.floor(-missing)}", how=f"{found.how}: nothing is promised")


def _longest(c: Calculator) -> Quantity:
    row = partial(_row, "what M samples buy", "T(M)", "longest episode certified")
    if c.premises.bound is None:
        return row(lambda: c.bound, "steps", "")
    if c.longest is None:
        found = row(lambda: math.inf, "steps", "")
        return found._replace(text="any", status="certified", how="a cost never exceeds the margin")
    harmless = c.longest == c.harmless and c.longest > 0
    how = "costs so little for any dynamics" if harmless else "largest T with Delta_zeta < Delta"
    found = row(lambda: c.longest or 0, "steps", how)
    return found._replace(text=f"> {found.text}") if c.longest >= MOST_STEPS else found


def _confidence(c: Calculator) -> Iterator[Quantity]:
    row, premises = partial(_row, "confidence"), c.premises
    yield row("sigma_max", "largest k(z, z)", lambda: premises.supremum, "", "from the kernel and the limits")
    for n in EPISODES[1:]:
        points = n * premises.horizon
        trivial = c.gain(points) >= 0.999 * c.trivial_gain(points)
        how = "trivial: every point counts as new" if trivial else "upper bound for any points"
        yield row(f"gamma_{points}", f"information, n = {n}", partial(c.gain, points), "nats", how)
    width = "B + sqrt(2(gamma+1+ln(d_x/delta)))"
    if premises.convention == "paper":
        width = "B + sigma_w sqrt(..): too narrow" if not c.calibrated else "B + sigma_w sqrt(..)"
    yield row("beta_0", "confidence width, n = 0", lambda: c.bound, "", "B")
    for n in EPISODES[1:]:
        yield row(f"beta_{n}", f"confidence width, n = {n}", partial(c.width, n), "", width, _of_beta(c))
    yield row("L_k", "Lipschitz constant of k", lambda: premises.steepest, "", "of k(z, .) on the box")
    holder = partial(uncertainty_holder, outputs=premises.outputs)
    yield row("L_s", "Hoelder constant of s_n", lambda: holder(premises.steepest), "", "sqrt(2 d_x L_k)")


def _exploration(c: Calculator) -> Iterator[Quantity]:
    row, premises = partial(_row, "exploration"), c.premises
    chosen: Status = "certified" if premises.epsilon is not None else "heuristic"
    how = "given" if premises.epsilon is not None else "half of what Delta_zeta leaves"
    accuracy = row("epsilon", "accuracy of returns", lambda: premises.accuracy, "return", how, chosen)
    if c.vacuous_accuracy:
        accuracy = accuracy._replace(status="impossible", how="epsilon + Delta_zeta leaves nothing of the budget")
    yield accuracy
    yield row("xi", "margin of what is compared", lambda: c.reach, "cost", "epsilon + Delta_zeta", accuracy.status)
    steps = "T" if premises.delay or premises.form == "paper" else "(T-1)"
    factor = f"G_max {steps} beta_n/" + ("(sigma_w sqrt(2 pi))" if premises.form == "sharp" else "sigma_w")
    for n in EPISODES:
        status = _of_beta(c) if n else "certified"
        yield row(f"lambda_{n}", f"error per s_n, n = {n}", partial(c.return_factor, n), "", factor, status)
    for n in EPISODES:
        found = row(
            f"d_sigma^{n}",
            f"least exploration, n = {n}",
            partial(c.threshold, n),
            "scale",
            f"epsilon / (2 lambda_{n})",
            _of_beta(c) if n else "certified",
        )
        yield found._replace(how="beta_0 = 0: nothing is unknown") if found.text == "infinite" else found


def _episodes(c: Calculator) -> Iterator[Quantity]:
    """n_bar with both factors of the variance sum."""
    for source, factor in VARIANCE_SUM_FACTORS.items():
        derived = source == "derived"
        yield _row(
            "episodes",
            "n_bar" if derived else "n_bar'",
            "most episodes" if derived else "the same in the paper",
            partial(_log10_episodes, c, factor),
            "log10",
            f"worst case, kappa = {factor:g}" + ("" if derived else " (not proven)"),
            _of_beta(c) if derived else "heuristic",
        )


def _log10_episodes(c: Calculator, factor: float) -> float:
    return math.log10(c.episode_bound(factor))
