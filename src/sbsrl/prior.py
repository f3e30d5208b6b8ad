"""What is known before the first episode. It is the user's, and explicit."""

from dataclasses import dataclass

from .errors import UserError
from .kernels import Kernel
from .policy import Policy
from .transitions import Transitions
from .types import Dynamics
from .validation import Function, Instance, Number, Numbers, Switch, Word, declared, validate

__all__ = ["GPPrior", "Prior"]


@dataclass(frozen=True, eq=False, kw_only=True)
class GPPrior:
    """A Gaussian process around a mean (assumptions 2 and 3 of the paper).

    The true dynamics is f(z) = mean(z) + scale * g(z), where each g_j has norm at most `bound` in the RKHS of the
    kernel, and is observed with noise of standard deviation `noise`. In units of `scale` this is the paper's model,
    with one kernel and one sigma_w for all outputs, or one of each for every output.
    """

    mean: Dynamics = declared(Function())
    """mu: the best guess of the next state, often an imperfect simulator."""
    scale: tuple[float, ...] = declared(Numbers())
    """Size of the mismatch of one control step, one number per state."""
    kernel: Kernel | tuple[Kernel, ...]
    """k, a function of (x, a): one for all outputs, which is fast, or one for each."""
    noise: float | tuple[float, ...]
    """sigma_w, in units of `scale`."""
    bound: float | None
    """B, or None where no bound is known."""
    bound_source: str = declared(Word())
    """Where the bound comes from, in words for the certificate."""

    def __post_init__(self) -> None:
        validate(self, "the prior's ")
        positive = Numbers(Number(0.0))
        for name in ("scale", "noise"):
            values = positive.read(f"the prior's {name}", getattr(self, name))
            if min(values) <= 0:
                raise UserError(f"the prior's {name} must be positive, and {list(values)} is not.")
        if self.bound is not None:
            object.__setattr__(self, "bound", Number(0.0).read("the prior's bound", self.bound))
        given = self.kernel if isinstance(self.kernel, tuple | list) else (self.kernel,)
        if not given or not all(isinstance(kernel, Kernel) for kernel in given):
            raise UserError(f"the prior's kernel must be a kernel, or one for each state, and got {self.kernel!r}.")
        object.__setattr__(self, "noise", values if len(values) > 1 else values[0])
        for name, count in (("kernels", len(self.kernels)), ("noise", len(values))):
            if count not in (1, len(self.scale)):
                raise UserError(
                    f"the prior has {count} {name} for {len(self.scale)} outputs; give one for all, or one for each."
                )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """One, shared by all outputs, or one per output."""
        return (self.kernel,) if isinstance(self.kernel, Kernel) else tuple(self.kernel)

    def describe_kernel(self) -> str:
        """The kernel, or the kernels of all outputs, in a line."""
        return ", ".join(kernel.describe() for kernel in self.kernels)


@dataclass(frozen=True, eq=False)
class Prior:
    """All that is known before the first episode: a model and how wrong it may be, data, a safe policy; or nothing."""

    name: str = declared(Word(empty=False))
    informative: bool = declared(Switch())
    """Whether it says enough for plans of the first episode to be feasible on its samples."""
    gp: GPPrior | None = declared(Instance(GPPrior, optional=True), None)
    """A simulator and how wrong it may be, for beliefs that are Gaussian processes."""
    data: Transitions | None = declared(Instance(Transitions, optional=True), None)
    """Transitions of a safe behaviour."""
    policy: Policy | None = declared(Instance(Policy, optional=True), None)
    """A policy that is safe, though it may earn little."""

    def __post_init__(self) -> None:
        validate(self, "the prior's ")
