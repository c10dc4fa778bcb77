import contextlib
import itertools
import math
import pickle
from pathlib import Path

import pytest
from episodes import REPLY, SOURCE, correct, every_outcome

from kevin_env.episode import Episode
from kevin_env.outcome import HACK_KINDS, Category, Correct, Outcome, is_hack
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import Problem
from kevin_env.record import Reply, Turn, Usage
from kevin_env.roofline import Ceilings, Roofline, Work, roofline_of
from kevin_env.score import (
    COMPILE,
    CORRECTNESS,
    COVERAGE,
    KERNRL,
    SCORES,
    SPEED,
    Scored,
    WeightedSum,
    capped,
    earned,
    resolve_score,
    score_name,
    score_of,
)
from kevin_env.score.components import OFTEN_BUGS
from kevin_env.settings import Settings
from kevin_env.turn import Question, begin_turn

NOISY = Correct(message="Correct.", kind="too_noisy")
FAILURES = [outcome for outcome in every_outcome() if outcome.category != "correct"]
HACKS = [each for each in FAILURES if is_hack(each) and each.kind not in OFTEN_BUGS]
SPEEDUPS = [10 ** (power / 4) for power in range(-16, 17)]


def at(fraction: float) -> Roofline:
    """A time that reaches this fraction of the roofline, `fraction` seconds."""
    work = Work(read=1000, written=0, products={}, operations=1)
    return roofline_of(
        work, Ceilings(reading=1000 / max(fraction, 1e-9), copying=1.0, rates={"fp32": 1e30}), 1.0
    )


def measured(
    speedup: float | None, *, roofline: float = 0.5, coverage: float | None = None
) -> Correct:
    told = correct(speedup) if speedup else NOISY
    return told.model_copy(update={"roofline": at(roofline), "coverage": coverage})


def outcome(category: Category, kind: str) -> Outcome:
    return next(each for each in FAILURES if (each.category, each.kind) == (category, kind))


def scored(outcome: Outcome) -> Scored:
    """With code half as long as is paid for, and reasoning half way to the floor."""
    return Scored(outcome, code_tokens=1062.5, reasoning_tokens=750)


ENDINGS = (
    outcome("format", "no_code"), outcome("compile", "syntax"), outcome("runtime", "exception"),
    outcome("correctness", "values"), outcome("runtime", "protocol"), NOISY, correct(0.5),
    correct(2.0), correct(40.0),
)  # fmt: skip

GOLDEN = {
    "kevin": (0, 0, 0, 0, 0, 0.3, 0.8, 2.3, 40.3),
    "kernrl": (-0.5, -0.5, -0.25, -0.25, -0.5, 0, -0.25, 1, 2),
    "kernrl_blog": (0, 0, 0.1, 0.1, 0, 0.4, 0.4, 1.0, 1.3),
    "kernel_rl_default": (0, 0.1, 0.3, 0.3, 0, 1.41, 1.41, 1.41, 1.41),
    "kernel_rl_stage1": (0, 0.3, 0.8, 0.8, 0, 1, 1, 1, 1),
    "kernel_rl_stage2": (0, 0.1, 0.3, 0.3, 0, 1, 1, 1, 1),
    "kernel_rl_stage3": (0, 0.05, 0.15, 0.15, 0, 0.65, 0.65, 1.0, 4.15),
    "kernel_rl_stage3_2025": (0, 0.05, 0.15, 0.15, 0, 0.65, 0.65, 0.825, 1.0),
    "kernel_rl_sparse": (0, 0, 0, 0, 0, 1, 1, 1.5, 6),
    "kernel_rl_sparse_2025": (0, 0, 0, 0, 0, 1, 1, 1.25, 1.5),
    "dr_kernel": (0, 0, 0, 0, 0, 1, 1.5, 3, 4),
    "milestones": (-1, -1, -1, -1, -1, 1, 1, 3, 3),
    "log_speed": (0, 0, 0, 0, 0, 0.3, 0.3 + 0.584963, 0.3 + 1.584963, 0.3 + 5.357552),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name: str) -> None:
    assert [SCORES[name](scored(each)) for each in ENDINGS] == pytest.approx(GOLDEN[name], abs=1e-6)


def test_every_named_score_has_golden_values() -> None:
    assert SCORES.keys() - GOLDEN.keys() == {"roofline"}


def test_coverage_pays_where_it_was_measured() -> None:
    dr_kernel = SCORES["dr_kernel"]
    assert [dr_kernel(measured(2.0, coverage=share)) for share in (None, 0.25, 1.0, 7.0)] == [
        3.0,
        3.25,
        4.0,
        4.0,
    ]


def test_the_roofline_pays_its_fraction() -> None:
    roofline = SCORES["roofline"]
    pays = [roofline(measured(2.0, roofline=fraction)) for fraction in (0.0, 0.5, 1.0, 3.0)]
    assert pays == pytest.approx([0.3, 0.8, 1.3, 1.3])
    assert roofline(NOISY) == 0.3
    assert [roofline(failure) for failure in FAILURES] == [0.0] * len(FAILURES)


MEASURED = {"milestones": {"baseline": "compile"}, "dr_kernel": {"profile": "ncu"}}
"""The settings that a score needs."""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"score": "milestones"},
            "score milestones pays for milestones, .* only with baseline='compile', not 'auto'",
        ),
        (
            {"score": "dr_kernel"},
            "score dr_kernel pays for coverage, .* only with profile='ncu', not 'none'",
        ),
        (
            {"score": WeightedSum(((1.0, COVERAGE),)), "profile": "kernels"},
            r"score 1\*coverage pays for coverage",
        ),
        (
            {"score": "dr_kernel", "profile": "ncu", "device": "cpu"},
            "only with device='auto' or 'cuda', not 'cpu'",
        ),
    ],
)
def test_a_score_is_refused_where_a_part_of_it_can_never_pay(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        Settings.of(settings)
    assert "\n" not in str(error.value)


def test_a_score_is_refused_on_the_device_that_auto_means() -> None:
    problem = Problem(id="double", source=SOURCE, name="double")
    settings = Settings.of({"score": "dr_kernel", "profile": "ncu"})
    with contextlib.closing(ScriptedPool([])) as pool, pytest.raises(ValueError, match="not 'cpu'"):
        Episode(problem, pool, settings).start()
    with contextlib.closing(ScriptedPool([], device=SCRIPTED_GPU)) as pool:
        assert Episode(problem, pool, settings).start()


def test_a_time_without_its_roofline_is_an_error() -> None:
    with pytest.raises(ValueError, match="no fraction of the roofline; choose another score"):
        SCORES["roofline"](correct(2.0))


def everything() -> list[Scored]:
    """Every kind of outcome and many speedups, with everything else known and not known."""
    figures = (None, 0.0, 0.3, 1.0, 9.0)
    right = [
        measured(speedup, coverage=figure, roofline=figure or 0.0)
        for speedup, figure in itertools.product((None, *SPEEDUPS), figures)
    ]
    codes, thoughts = (None, 0, 125, 2250), (None, 0, 1, 2250)
    return [Scored(*each) for each in itertools.product([*FAILURES, *right], codes, thoughts)]


EVERYTHING = everything()


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_a_score_pays_all_of_its_range_and_nothing_else(score: WeightedSum) -> None:
    pays, (low, high) = [score_of(each, score) for each in EVERYTHING], score.range
    assert math.isfinite(low)
    assert (min(pays), min(max(pays), 12)) == pytest.approx((low, min(high, 12)))


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_a_score_agrees_with_the_outcome(score: WeightedSum) -> None:
    failed = [score(scored(each)) for each in FAILURES]
    noisy = score(scored(NOISY))
    timed = [score(scored(measured(speedup))) for speedup in SPEEDUPS]
    assert {kind.kind for kind in HACKS} | OFTEN_BUGS > HACK_KINDS
    assert max(score(scored(each)) for each in HACKS) == min(failed)
    if score is not SCORES["kernrl"]:  # it pays slow kernels less than wrong ones
        assert max(failed) < noisy <= min(timed)
    assert timed == sorted(timed)
    assert len({score(scored(each)) for each in HACKS}) == 1


@pytest.mark.parametrize("kind", sorted(OFTEN_BUGS))
def test_a_bug_in_what_is_written_is_paid_as_wrong_values_are(kind: str) -> None:
    bug, values = outcome("correctness", kind), outcome("correctness", "values")
    assert all(score(scored(bug)) == score(scored(values)) for score in SCORES.values())


def test_what_is_not_known_is_not_paid() -> None:
    default = SCORES["kernel_rl_default"]
    assert default(correct(2.0)) == pytest.approx(1.3)
    assert default(Scored(correct(2.0), reasoning_tokens=0)) == pytest.approx(1.35)
    assert default(Scored(correct(2.0), code_tokens=125)) == pytest.approx(1.35)


def test_a_sum_of_ones_own() -> None:
    own = WeightedSum(
        ((1.0, CORRECTNESS), (-0.5, capped(SPEED, 3.0)), (2.0, COMPILE)), low=-1.0, high=2.25
    )
    assert own.range == (-1.0, 2.25)
    assert [own(each) for each in (WRONG, correct(1.0), correct(9.0), HACKS[0])] == [
        2.0,
        2.25,
        1.5,
        -1.0,
    ]
    assert own.parts(Scored(correct(9.0))) == (
        ("correctness", 1.0),
        ("min(speed, 3)", -1.5),
        ("compile", 2.0),
    )
    assert own.parts(Scored(HACKS[0])) == (("hack", -1.0),)
    assert score_name(own) == "clip(1*correctness + -0.5*min(speed, 3) + 2*compile, -1, 2.25)"
    assert Settings(score=own).model_dump()["score"] == score_name(own)
    assert pickle.loads(pickle.dumps(own)) == own


WRONG = outcome("correctness", "values")


@pytest.mark.parametrize(
    "terms", [(), ((0.0, SPEED),), ((math.nan, SPEED),), ((-1.0, SPEED),), ((math.inf, KERNRL),)]
)
def test_a_sum_without_a_meaning_is_refused(terms) -> None:
    with pytest.raises(
        ValueError,
        match=r"at least one component|a finite number other than 0|has no lower bound; cap components",
    ):
        WeightedSum(terms)
    with pytest.raises(ValueError, match="low must not exceed high"):
        WeightedSum(((1.0, CORRECTNESS),), low=1.0, high=0.0)
    with pytest.raises(ValueError, match=r"setting score=.*speed is a component: give WeightedSum"):
        Settings.of({"score": SPEED})


@pytest.mark.parametrize(
    "name", ["kevin", "kernel_rl_stage3", "kernrl", "kernrl_blog", "log_speed"]
)
def test_the_lower_end_of_a_speedup_can_be_paid(name: str) -> None:
    assert score_of(correct(2.0), SCORES[name], "lower") == pytest.approx(
        SCORES[name](correct(1.8))
    )


def test_names_are_told_and_recorded() -> None:
    assert {score_name(score) for score in SCORES.values()} == SCORES.keys()
    assert [resolve_score(name) for name in GOLDEN] == [SCORES[name] for name in GOLDEN]
    for name in GOLDEN:
        assert Settings.of({"score": name} | MEASURED.get(name, {})).model_dump()["score"] == name
    with pytest.raises(ValueError, match=r"give one of kevin, kernrl, .*, log_speed"):
        resolve_score("kernel_rl")


def played(reply: Reply, score: str, tokenizer: str = "") -> Turn:
    problem = Problem(id="double", source=SOURCE, name="double")
    values = {"score": score, "tokenizer": tokenizer, "rules": "open"}
    settings = Settings.of(values | MEASURED.get(score, {}))
    question = Question(problem, 1, (), settings, "ab" * 16)
    with contextlib.closing(ScriptedPool([correct(2.0)])) as pool:
        return begin_turn(question, reply, pool).result()


CODE = REPLY[REPLY.index("```") :].replace("import torch\n", f"# {'x' * 1000}\nimport torch\n")


@pytest.mark.parametrize(
    ("reply", "thinking"),
    [
        (Reply(content=CODE), 0.5),
        (Reply(content=f"<think>{'x' * 3000}</think>\n{CODE}"), 0.85),
        (Reply(content=CODE, reasoning="x" * 3000), 0.85),
        # What the endpoint told goes before four characters a token.
        (
            Reply(
                content=CODE,
                usage=Usage(completion_tokens=len(CODE) // 4 + 750, reasoning_tokens=750),
            ),
            0.85,
        ),
        (
            Reply(
                content=CODE,
                reasoning="x" * 2000,
                usage=Usage(completion_tokens=(len(CODE) + 2000) // 2),
            ),
            0.7,
        ),
    ],
)
def test_a_turn_is_scored_with_its_code_and_its_reasoning(reply: Reply, thinking: float) -> None:
    turn = played(reply, "kernel_rl_default")
    assert turn.submission is not None
    tokens = len(turn.submission.code) / (2 if reply.usage and reply.reasoning else 4)
    length = (2000 - tokens) / 1875
    assert length < 1 and turn.score == pytest.approx(
        1.3 + 0.05 * length + 0.1 * thinking, abs=1e-4
    )


def test_the_tokenizer_of_the_settings_counts_code_and_reasoning(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    usage = Usage(completion_tokens=9999, reasoning_tokens=9999)
    turn = played(
        Reply(content=CODE, reasoning="long " * 750, usage=usage),
        "kernel_rl_default",
        str(tmp_path),
    )
    assert turn.submission is not None
    length = (2000 - len(turn.submission.code.split())) / 1875
    assert turn.score == pytest.approx(1.3 + 0.05 * min(length, 1.0) + 0.1 * 0.85, abs=1e-4)


@pytest.mark.parametrize(
    ("score", "before", "earns"),
    [
        (2.3, None, 2.3), (2.3, 2.3, 0.0), (2.3, 0.3, 2.0), (0.3, 2.3, 0.0), (-0.5, -0.5, -0.5),
        (0.0, -0.5, 0.0),
    ],
)  # fmt: skip
def test_code_is_paid_once(score: float, before: float | None, earns: float) -> None:
    assert earned(score, before) == pytest.approx(earns)


def test_a_reply_without_code_is_scored() -> None:
    assert played(Reply(content="<think>Hm."), "kernel_rl_default").score == 0.0
    assert played(Reply(content="Never."), "milestones").score == -1.0
