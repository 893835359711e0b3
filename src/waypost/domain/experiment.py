"""The statistics of an experiment: whether one variant is better than another, at whatever time somebody looks. Pure.

Users are split by chance with known weights. If two variants are equally good, each success (an open, an action, a
conversion) is one of either with the odds of these weights, independently of the others, whatever the rate of successes
is and however it changes over a day. So the successes of both, in the order in which they come, are tosses of a coin of
known bias. The evidence against that is the likelihood ratio of a mixture of other biases (a mixture sequential
probability ratio test, here with a beta distribution); under equality it is a martingale that begins at 1, and exceeds
1/alpha at any time ever with a probability of at most alpha (Ville 1939). It needs the counts alone, and holds exactly,
without normal approximation, for any number of looks.

Sources: M. Lindon, A. Malek, "Anytime-Valid Inference for Multinomial Count Data", NeurIPS 2022 (arXiv 2011.03567);
H. Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm", Ann. Math. Stat. 41 (1970); R. Johari,
P. Koomen, L. Pekelis, D. Walsh, "Peeking at A/B Tests", KDD 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.words import Words

ALPHA: Final = 0.05
"""The probability that some variant is ever called better or worse although all are equal."""
_CONCENTRATIONS: Final = (100.0, 4.0)
"""The widths of the two halves of the mixture: one is quick to find lifts of about a fifth, the other large ones."""
_SPLIT_ALPHA: Final = 0.001
"""The probability that a split that is right is ever called wrong."""
_STEPS: Final = 60
"""Halvings that place a bound of an interval to far below what is shown."""


class Verdict(Words):
    """The verdict on a variant, beside the control."""

    CONTROL = "control"
    NOT_ENOUGH_YET = "not_enough_yet"
    BETTER = "better"
    WORSE = "worse"


class Arm(Struct, frozen=True):
    """A variant as counted so far."""

    name: str
    weight: float
    told: int | None
    """Users who were told something; None of those who are told nothing, for comparison."""
    successes: int


class ArmResult(Struct, frozen=True):
    """The result of a variant."""

    name: str
    told: int | None
    successes: int
    rate: float | None
    """Successes by users told; None where nobody was."""
    verdict: Verdict
    lift: float | None = None
    """The successes relative to the control's, for its weight, less one: 0.1 is a tenth more."""
    lift_from: float | None = None
    """The lower bound of the lift, right at all times together with the confidence of the experiment."""
    lift_to: float | None = None
    """The upper bound of the lift; None is without bound."""
    p: float | None = None
    """The always-valid p-value; corrected for the number of variants."""


class Result(Struct, frozen=True):
    """The result of an experiment so far."""

    arms: tuple[ArmResult, ...]
    verdict: Verdict
    """``better`` or ``worse`` where some variant differs from the control; else ``not_enough_yet``."""
    is_split_right: bool
    """Whether as many users were told of each variant as its weight says: otherwise nothing here can be trusted."""


def result_of(arms: Sequence[Arm], alpha: float = ALPHA) -> Result:
    """Compare each arm with the first one, the control, with an error of *alpha* in all."""
    control, *others = arms
    each_alpha = alpha / max(1, len(others))
    results = [
        _alone(control, Verdict.CONTROL),
        *(_compared(control, each, each_alpha, len(others)) for each in others),
    ]
    found = [each.verdict for each in results if each.verdict in (Verdict.BETTER, Verdict.WORSE)]
    better = Verdict.BETTER if Verdict.BETTER in found else Verdict.WORSE
    return Result(tuple(results), better if found else Verdict.NOT_ENOUGH_YET, _is_split_right(arms))


def log_evidence(ours: int, theirs: int, chance: float) -> float:
    """Return the log of the evidence that a success is ours with another probability than *chance*."""
    return _log_mixed(ours, theirs, chance) - ours * math.log(chance) - theirs * math.log1p(-chance)


def _log_mixed(ours: int, theirs: int, chance: float) -> float:
    """Return the log of the likelihood under the mixture, which lies around *chance*."""
    logs = []
    for width in _CONCENTRATIONS:
        a, b = width * chance, width * (1 - chance)
        logs.append(_log_beta(a + ours, b + theirs) - _log_beta(a, b))
    largest = max(logs)
    return largest + math.log(sum(math.exp(each - largest) for each in logs) / len(logs))


def _alone(arm: Arm, verdict: Verdict) -> ArmResult:
    return ArmResult(arm.name, arm.told, arm.successes, arm.successes / arm.told if arm.told else None, verdict)


def _compared(control: Arm, arm: Arm, alpha: float, comparisons: int) -> ArmResult:
    chance = arm.weight / (arm.weight + control.weight)
    p = min(1.0, comparisons * math.exp(-max(0.0, log_evidence(arm.successes, control.successes, chance))))
    lowest, highest = _interval(arm.successes, control.successes, chance, alpha)
    odds = (1 - chance) / chance
    lift_from, lift_to = _lift(lowest, odds), _lift(highest, odds)
    verdict = Verdict.NOT_ENOUGH_YET
    if lift_from is not None and lift_from > 0:
        verdict = Verdict.BETTER
    elif lift_to is not None and lift_to < 0:
        verdict = Verdict.WORSE
    lift = arm.successes / control.successes * odds - 1 if control.successes else None
    rate = arm.successes / arm.told if arm.told else None
    return ArmResult(arm.name, arm.told, arm.successes, rate, verdict, lift, lift_from, lift_to, p)


def _lift(probability: float, odds: float) -> float | None:
    """Turn the probability that a success is ours into how much our rate exceeds theirs."""
    return None if probability >= 1 else probability / (1 - probability) * odds - 1


def _interval(ours: int, theirs: int, chance: float, alpha: float) -> tuple[float, float]:
    """Return the probabilities that the successes so far do not refute: together they are right at all times.

    The mixture lies around *chance* whatever is asked of it, as a mixture must be chosen beforehand.
    """
    mixed = _log_mixed(ours, theirs, chance)

    def is_refuted(probability: float) -> bool:
        likelihood = (ours * math.log(probability) if ours else 0.0) + (
            theirs * math.log1p(-probability) if theirs else 0.0
        )
        return mixed - likelihood >= -math.log(alpha)

    best = ours / (ours + theirs) if ours + theirs else chance
    lowest = 0.0 if not ours else _bound(0.0, best, is_refuted)
    highest = 1.0 if not theirs else _bound(1.0, best, is_refuted)
    return lowest, highest


def _bound(refuted: float, kept: float, is_refuted: Callable[[float], bool]) -> float:
    """Find where what is refuted ends, between *refuted* and *kept*."""
    for _ in range(_STEPS):
        middle = (refuted + kept) / 2
        if is_refuted(middle):
            refuted = middle
        else:
            kept = middle
    return refuted


def _is_split_right(arms: Sequence[Arm]) -> bool:
    """Test the numbers of users told against the weights, with the same evidence for several arms at once."""
    counted = [(each.weight, each.told) for each in arms if each.told is not None]
    total = sum(weight for weight, _ in counted)
    width = _CONCENTRATIONS[0]
    log = math.lgamma(width) - math.lgamma(width + sum(told for _, told in counted))
    for weight, told in counted:
        chance = weight / total
        prior = width * chance
        log += math.lgamma(prior + told) - math.lgamma(prior) - told * math.log(chance)
    return log < -math.log(_SPLIT_ALPHA)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
