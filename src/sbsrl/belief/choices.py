"""How a Gaussian-process belief answers: what a sample is, how features are drawn, what uncertainty and width mean."""

from dataclasses import dataclass

from ..errors import UserError
from ..kernels import ESTIMATORS
from ..theory.confidence import CONVENTIONS
from ..validation import Number, Switch, Whole, Word, declared, validate
from .uncertainty import UNCERTAINTIES

__all__ = ["DEFAULT", "SAMPLERS", "GPChoices"]

SAMPLERS = {
    "pathwise": "functions drawn anew from the posterior before each episode",
    "truncated": "functions drawn once from the prior, cut to all confidence sets so far (the paper's analysis)",
    "particles": "fresh posterior noise at every step, TS1 (the paper's experiments)",
}


@dataclass(frozen=True)
class GPChoices:
    """What both Gaussian-process beliefs are told; none of it is knowledge about the system."""

    sampler: str = declared(Word(tuple(SAMPLERS)), "pathwise", "what samples are: pathwise, truncated or particles")
    features: int = declared(Whole(2, 1_000_000), 128, "Fourier features of a sampled function (even)")
    estimator: str = declared(
        Word(tuple(ESTIMATORS)), "paired", "how Fourier features are drawn: paired, phased or orthogonal"
    )
    uncertainty: str = declared(
        Word(tuple(UNCERTAINTIES)), "information", "s_n: information (nats) or deviation (units of the state)"
    )
    delta: float = declared(Number(1e-12, 1 - 1e-12), 0.1, "probability with which confidence sets may fail")
    convention: str = declared(Word(CONVENTIONS), "corrected", "of the confidence width beta_n: corrected, or paper")
    fitted: bool = declared(Switch(), False, "fit kernel, scale and noise after each episode; then no guarantee holds")

    def __post_init__(self) -> None:
        validate(self, "belief.")
        if self.features % 2:
            raise UserError(
                f"belief.features={self.features} must be even: half are cosines, half sines; use {self.features + 1}."
            )
        if self.sampler == "truncated" and self.fitted:
            raise UserError(
                "truncated samples are functions of one prior, kept over all episodes, and a fitted model changes it; "
                "use fitted=false, or another sampler."
            )


DEFAULT = GPChoices()
