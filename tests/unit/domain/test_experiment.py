"""Experiments: the split is sticky and fair, and looking at the results at any time leads nobody astray."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter

import pytest

from tests.shows import shows
from waypost.domain.experiment import ALPHA, Arm, Verdict, log_evidence, result_of
from waypost.domain.variants import HOLDOUT, Part, Split, Variant, variant_for

TWO = Split((Variant("a"), Variant("b")))
SIMULATIONS = 2_000
LOOKS = 400
"""Successes of a simulated experiment; somebody looks after each."""


@shows("S3-119")
def test_a_user_has_the_same_variant_for_ever() -> None:
    """It follows from the campaign and the user, in every process and at every time: these are known by heart."""
    users = [f"user-{n}" for n in range(12)]
    assert "".join(variant_for(TWO, "spring", user) for user in users) == "baaabbaabbba"
    assert "".join(variant_for(TWO, "autumn", user) for user in users) == "ababbbaaabbb"


def test_the_split_follows_the_weights() -> None:
    """Of 20,000 users each of eight variants has its share, and the holdout too."""
    weights = [1, 2, 3, 4, 5, 6, 7, 8]
    split = Split(tuple(Variant(f"v{weight}", weight) for weight in weights), holdout=10)
    found = Counter(variant_for(split, "spring", f"user-{n}") for n in range(20_000))
    assert found.pop(HOLDOUT) == pytest.approx(2_000, rel=0.1)
    for weight in weights:
        assert found[f"v{weight}"] == pytest.approx(18_000 * weight / 36, rel=0.12)


def test_a_larger_holdout_moves_nobody_to_another_variant() -> None:
    """Whoever is still told something is told the same as before."""
    more = Split(TWO.variants, holdout=30)
    for n in range(500):
        now = variant_for(more, "spring", f"user-{n}")
        assert now in (HOLDOUT, variant_for(TWO, "spring", f"user-{n}"))


def test_parts_of_the_users_do_not_overlap_and_are_all() -> None:
    """Each user is in exactly one of the parts that bounds cut."""
    bounds = [0, 1, 10, 100]
    for n in range(2_000):
        parts = itertools.pairwise(bounds)
        assert sum(Part("spring", after, until).has(f"user-{n}") for after, until in parts) == 1
    tenth = sum(Part("spring", 0, 10).has(f"user-{n}") for n in range(20_000))
    assert tenth == pytest.approx(2_000, rel=0.1)


@pytest.mark.parametrize("weight", [1, 3])
def test_whoever_looks_after_each_success_is_wrong_in_one_of_twenty_at_most(weight: int) -> None:
    """2,000 simulated A/A tests, looked at 400 times each: those that ever call a difference are at most 5 %."""
    chance = weight / (weight + 1)
    draw = random.Random(20).random
    evidence = functools.cache(log_evidence)
    needed = -math.log(ALPHA)
    wrong = 0
    for _ in range(SIMULATIONS):
        ours = 0
        for n in range(1, LOOKS + 1):
            ours += draw() < chance
            if evidence(ours, n - ours, chance) >= needed:
                wrong += 1
                break
    assert 0 < wrong <= SIMULATIONS * ALPHA


def test_what_the_usual_test_would_do_to_whoever_looks_is_much_worse() -> None:
    """The same looks at a z-test of 5 %, as the reason for all this: far more than one in twenty is wrong."""
    draw = random.Random(20).random
    wrong = 0
    for _ in range(SIMULATIONS // 4):
        ours = 0
        for n in range(1, LOOKS + 1):
            ours += draw() < 0.5
            if n >= 30 and abs(ours - n / 2) > 1.96 * math.sqrt(n / 4):
                wrong += 1
                break
    assert wrong > 3 * SIMULATIONS // 4 * ALPHA


def test_many_variants_share_the_error() -> None:
    """120 A/A tests of eight variants, each user's open by chance: at most 5 % ever call any of them different."""
    draw = random.Random(8)
    wrong = 0
    for _ in range(120):
        told, opened = [0] * 8, [0] * 8
        for _look in range(16):
            for _user in range(50):
                n = draw.randrange(8)
                told[n] += 1
                opened[n] += draw.random() < 0.2
            arms = [Arm(f"v{n}", 1, told[n], opened[n]) for n in range(8)]
            if result_of(arms).verdict is not Verdict.NOT_ENOUGH_YET:
                wrong += 1
                break
    assert wrong <= 120 * ALPHA


def test_a_true_difference_is_found() -> None:
    """Of 200 experiments in which 12 % open instead of 10 %, nine of ten find it before 40,000 users are told."""
    found = 0
    draw = random.Random(7)
    for _ in range(200):
        opened_a = opened_b = told = 0
        while told < 20_000:
            told += 1_000
            opened_a += draw.binomialvariate(1_000, 0.10) if hasattr(draw, "binomialvariate") else _tossed(draw, 0.10)
            opened_b += draw.binomialvariate(1_000, 0.12) if hasattr(draw, "binomialvariate") else _tossed(draw, 0.12)
            result = result_of([Arm("a", 1, told, opened_a), Arm("b", 1, told, opened_b)])
            if result.verdict is Verdict.BETTER:
                found += 1
                break
    assert found >= 180


def _tossed(draw: random.Random, probability: float) -> int:
    """Count successes of 1,000, by the normal distribution that they nearly have."""
    return round(draw.gauss(1_000 * probability, math.sqrt(1_000 * probability * (1 - probability))))


def test_the_result_says_how_much_and_how_sure() -> None:
    """A clear lift has its bounds on one side; a small one says that it is not enough yet."""
    clear = result_of([Arm("a", 1, 10_000, 1_000), Arm("b", 1, 10_000, 1_500), Arm("c", 1, 10_000, 700)])
    control, better, worse = clear.arms
    assert (control.verdict, better.verdict, worse.verdict) == (Verdict.CONTROL, Verdict.BETTER, Verdict.WORSE)
    assert better.lift == pytest.approx(0.5)
    assert better.lift_from is not None and better.lift_to is not None and better.p is not None
    assert 0.25 < better.lift_from < 0.5 < better.lift_to < 0.8
    assert better.p < 0.001
    assert worse.lift_to is not None and worse.lift_to < 0
    early = result_of([Arm("a", 1, 100, 10), Arm("b", 1, 100, 14)])
    assert early.verdict is Verdict.NOT_ENOUGH_YET and early.arms[1].p == 1.0


@pytest.mark.parametrize(
    "arms",
    [
        [Arm("a", 1, 0, 0), Arm("b", 1, 0, 0)],
        [Arm("a", 1, 5, 0), Arm("b", 1, 5, 5)],
        [Arm("a", 1, 5, 5), Arm("b", 1, 5, 0)],
        [Arm("a", 1, 9, 4)],
    ],
)
def test_next_to_nothing_is_not_enough(arms: list[Arm]) -> None:
    """No counts so small, and no variant alone, make a verdict or an error."""
    assert result_of(arms).verdict is Verdict.NOT_ENOUGH_YET


def test_the_interval_holds_the_truth_at_all_times() -> None:
    """In 150 experiments with a true lift of a quarter, at most 5 % have an interval that ever leaves it out."""
    draw = random.Random(3)
    chance = 1.25 / 2.25
    missed = 0
    for _ in range(150):
        ours = theirs = 0
        for _look in range(25):
            for _success in range(20):
                if draw.random() < chance:
                    ours += 1
                else:
                    theirs += 1
            arm = result_of([Arm("a", 1, 1, theirs), Arm("b", 1, 1, ours)]).arms[1]
            assert arm.lift_from is not None
            if arm.lift_from > 0.25 or (arm.lift_to is not None and arm.lift_to < 0.25):
                missed += 1
                break
    assert missed <= 150 * ALPHA


def test_a_split_that_is_off_is_noticed() -> None:
    """Fewer users told of one variant than its weight says: something loses them, and nothing else can be trusted."""
    assert result_of([Arm("a", 1, 10_050, 9), Arm("b", 1, 9_950, 9)]).is_split_right
    assert not result_of([Arm("a", 1, 10_600, 9), Arm("b", 1, 9_400, 9)]).is_split_right
    assert result_of([Arm("a", 3, 30_000, 9), Arm("b", 1, 10_100, 9)]).is_split_right
