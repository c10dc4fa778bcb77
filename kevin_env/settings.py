"""The settings of an episode, the single source of their names, defaults and help."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from kevin_env.history import resolve_context
from kevin_env.judge.api import DEVICES, MOST_BUILD_SECONDS, MOST_CALL_SECONDS, Options
from kevin_env.languages import LANGUAGES, Name
from kevin_env.outcome import Correct, Frozen, Outcome, ProfileKind, speedup_of
from kevin_env.problem import Baseline, Dtype, KernelFile
from kevin_env.rules import Rules
from kevin_env.score import (
    SCORES,
    Bound,
    Noisy,
    Pay,
    ReturnsKind,
    Score,
    at_bound,
    require_payable,
    resolve_score,
    score_name,
)

Language = Literal["auto", "any", Name]
Templates = Literal["default", "kevin-paper"]

RENAMED = {"precision": "timing_precision"}
"""Names of settings in older records, and their current names."""
_EXAMPLES = re.compile(r"zero|one|few|retrieved(:[1-9]\d?)?")


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that someone meant: `max_turns` for `turns`; None if none is like it."""
    names = list(known)
    whole = [each for each in names if name in each.split("_")]
    return next(iter(whole or difflib.get_close_matches(name, names, n=1)), None)


def wrong_value(errors: Iterable[Any]) -> str:
    """What is wrong with one value, from pydantic's errors of all types that it may have."""
    said = dict.fromkeys(error["msg"].removeprefix("Value error, ") for error in errors)
    first, *others = said
    return " or ".join([first, *(each.removeprefix("Input should be ") for each in others)])


class Settings(Frozen):
    """How an episode is played.

    `gym.make`, the command line and the table `settings` of an evaluation derive their arguments
    from these fields, and records hold them as `config`. The first paragraph below a field is its
    help on the command line.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    max_turns: int = Field(default=4, ge=1)
    """Number of turns in an episode."""
    gamma: float = Field(default=0.4, ge=0, le=1)
    """Discount of the returns from one turn to the next, 0 to 1."""
    returns: ReturnsKind = "sum"
    """Whether a return is the sum or the maximum of the discounted scores."""
    device: str = Field(default="auto", examples=["auto", "cpu", "cuda", "cuda:1", "cuda:0,1"])
    """Device that judges; auto is a GPU if there is one.

    `cuda:0,1` spreads the work over several GPUs of one kind.
    """
    language: Language = "auto"
    """Language that the prompt asks for; auto is Triton on a GPU and C++ on a CPU.

    With `any` the model chooses among those that are installed where kernels are judged.
    """
    rules: Rules = "kernel"
    """Code that is allowed: custom kernels only, at least one custom kernel, or any code."""
    glue: float = Field(default=0.0, ge=0, lt=1)
    """Under the rules "kernel", let torch compute on tensors below this share of the largest one.

    The share is of the elements of the largest tensor among inputs, weights and outputs: 0.01
    allows the mean of partial sums.
    """
    score: str | Score = Field(default="kevin", examples=[*SCORES])
    """Score of a turn.

    A name in `kevin_env.score.SCORES`; a `WeightedSum`, recorded by its formula; or a function from
    an `Outcome` to a finite number, recorded by its name.
    """
    bound: Bound = "median"
    """Pay the median speedup, capped at 1.25 times its interval's lower end, or that lower end.
    """
    pay: Pay = "turn"
    """Pay each turn its score, or only its gain over the episode's best score so far.

    With `improvement`, which makes `pay_repeats` meaningless, no resubmission ever pays.
    """
    pay_repeats: bool = False
    """Pay again for code that an earlier turn of the episode submitted, as the paper does.

    By default repeated code earns only what exceeds its score so far: see `kevin_env.score.earned`.
    """
    noisy: Noisy = "retry"
    """Remeasure a speedup with a wide interval up to twice, or pay the lower value at once."""
    templates: Templates = "default"
    """Templates of prompts and feedback; kevin-paper has the wording of the paper.

    `kevin-paper` (arXiv 2507.11948) asks for CUDA and allows `examples` to be `zero` or `one`.
    """
    context: str = Field(
        default="kevin", examples=["kevin", "full", "last_n:3", "top_w:4", "best_last"]
    )
    """Earlier turns in the prompt: all that fit, all, the last N, the W best, or last and best.

    Where not all fit, `kevin` keeps the code of the last and of the best turn longest.
    """
    context_tokens: int = Field(default=32_768, ge=1)
    """Limit of a prompt in tokens.

    Earlier turns that do not fit lose their code first. The task is never cut.
    """
    tokenizer: str = ""
    """Tokenizer that counts tokens: a tokenizer.json or a name on the Hugging Face Hub.

    It counts prompts and, for scores that depend on lengths, replies. Without one, a prompt has one
    token for four characters, and a reply the tokens of its usage.
    """
    hints: bool = False
    """Add advice to the feedback."""
    examples: str | bool = Field(
        default="one", examples=["zero", "one", "few", "retrieved", "retrieved:5"]
    )
    """Examples in the first prompt.

    `one` is a worked example in the requested language. `few` adds two references with kernels,
    `retrieved` three from `index` whose references are similar to the task's (`retrieved:5`: five).
    True is `one`, False is `zero`.
    """
    start: KernelFile | str | None = Field(default=None, examples=["PATH"])
    """Kernel that the first prompt shows, to be made faster: a file, or a trajectory file.

    A trajectory file gives the fastest turn of the same problem. Without it, a problem's own start
    kernel is shown. It counts as a turn 0: its code is paid only what exceeds its score.
    """
    index: str = ""
    """Folder of the index to retrieve examples from; `kevin-env index build` writes one."""
    baseline: Literal["auto"] | Baseline = Field(
        default="auto", examples=["auto", "eager", "compile", "PATH"]
    )
    """What the speedup is relative to: the reference, eager or compiled, or a file with a ModelNew.

    `auto` is the problem's own baseline on a GPU if it has one, else `eager`. Records hold the text
    of a file. The judge verifies it once, and trusts it.
    """
    inputs: Literal["varied", "shipped"] = "varied"
    """Input distributions to check: several, or only the one that the problem ships."""
    call_timeout: float | None = Field(default=None, gt=0, le=MOST_CALL_SECONDS)
    """Seconds per call: by default 0.5 (2 on a CPU), or 200 times the reference's if that is more.

    At most 1,200. The first call of each case has 30 more, as does the constructor. On a CPU it is
    processor time, and a submission that sleeps has up to ten times as long.
    """
    build_timeout: float = Field(default=300.0, gt=0, le=MOST_BUILD_SECONDS)
    """Seconds to import a submission, compilers included, at most 3,600."""
    dtype: Dtype | None = None
    """Type of floating-point inputs and weights, for reference and submission.

    By default they are as the problem has them. Float64 is converted, too; 8-bit floats are not.
    """
    backward: bool = False
    """Judge the gradient, too: a call is a forward and a backward pass.

    Compared are the output and the gradients of floating-point inputs and of parameters.
    """
    timing_precision: float | None = Field(default=None, gt=0, lt=1)
    """Relative half-width of the speedup's 95 % interval to reach; by default 0.02 (CPU: 0.1)."""
    profile: ProfileKind = "none"
    """Profile of a correct kernel for the feedback: time per kernel, or also Nsight Compute."""
    sanitize: bool = False
    """Run compute-sanitizer on illegal accesses and on outputs that change between calls."""
    replay: Literal["auto", "never"] = "auto"
    """On a GPU, replay the recorded launches of a Triton submission if it can be recorded.

    `never` runs every submission in a process of its own, which takes longer.
    """
    require_sandbox: bool = False
    """Refuse to run if a protection of the sandbox is missing."""
    stop_on: Literal["correct"] | Annotated[float, Field(gt=0)] | None = Field(
        default=None, examples=["correct", "SPEEDUP"]
    )
    """End the episode at the first correct kernel, or at the first with this paid speedup."""

    @classmethod
    def of(cls, values: Mapping[str, Any], others: Iterable[str] = ()) -> Self:
        """Settings from keywords.

        `others` are keywords that a caller takes beside them, which a wrong name may mean, too.

        Raises:
            ValueError: if one is unknown or out of range, in one line that names it.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            errors = error.errors()
            if not errors[0]["loc"]:  # two settings that exclude each other
                raise ValueError(wrong_value(errors[:1])) from error
            name = str(errors[0]["loc"][0])
            if errors[0]["type"] == "extra_forbidden":
                near = nearest_name(name, [*cls.model_fields, *others])
                there = (
                    f"did you mean {near}?" if near else f"there are {', '.join(cls.model_fields)}"
                )
                raise ValueError(f"unknown setting {name!r}; {there}") from error
            wrong = wrong_value(each for each in errors if each["loc"][0] == name)
            raise ValueError(f"setting {name}={values.get(name)!r}: {wrong}") from error

    @classmethod
    def recorded(cls, config: Mapping[str, Any]) -> Self:
        """Settings from the `config` of a record, which may be an older one. Errors as `of`."""
        return cls.of({RENAMED.get(name, name): value for name, value in config.items()})

    def options(self, secret: str | None = None) -> Options:
        """Options of the judge, with inputs drawn from `secret`."""
        names = Options.model_fields.keys() & Settings.model_fields.keys()
        values = {name: getattr(self, name) for name in names}
        return Options(secret=secret, retry_noisy=self.noisy == "retry", **values)

    def ends_with(self, outcome: Outcome) -> bool:
        """Whether this outcome ends the episode early."""
        if self.stop_on is None or not isinstance(outcome, Correct):
            return False
        speedup = speedup_of(at_bound(outcome, self.bound))
        return self.stop_on == "correct" or (speedup is not None and speedup >= self.stop_on)

    @model_validator(mode="before")
    @classmethod
    def _cuda_in_the_paper(cls, values: Any) -> Any:
        paper = isinstance(values, Mapping) and values.get("templates") == "kevin-paper"
        return (
            {**values, "language": "cuda"}
            if paper and values.get("language", "auto") == "auto"
            else values
        )

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        if not re.fullmatch(DEVICES, device):
            raise ValueError("give 'auto', 'cpu', 'cuda', 'cuda:1' or 'cuda:0,1'")
        return device

    @field_validator("baseline", mode="before")
    @classmethod
    def _read_baseline(cls, baseline: object) -> object:
        if not isinstance(baseline, str | Path) or baseline in ("auto", "eager", "compile"):
            return baseline
        if not str(baseline).endswith(".py"):
            raise ValueError("give auto, eager, compile or a .py file that defines ModelNew")
        return KernelFile.read(Path(baseline))

    @field_validator("start", mode="before")
    @classmethod
    def _read_start(cls, start: object) -> object:
        if not isinstance(start, str | Path):
            return start
        path = Path(start)
        if path.suffix == ".jsonl" and path.exists():
            return str(start)
        return KernelFile.read(path)

    @field_validator("stop_on", mode="before")
    @classmethod
    def _no_switch(cls, stop_on: object) -> object:
        if isinstance(stop_on, bool):  # else True would be a speedup of 1
            raise ValueError("give 'correct', a speedup, or None")
        return stop_on

    @field_validator("context")
    @classmethod
    def _known_context(cls, context: str) -> str:
        resolve_context(context)
        return context

    @field_validator("examples")
    @classmethod
    def _known_examples(cls, examples: str | bool) -> str:
        name = ("one" if examples else "zero") if isinstance(examples, bool) else examples
        if not _EXAMPLES.fullmatch(name):
            raise ValueError("give zero, one, few, retrieved, or retrieved:N for N examples")
        return name

    @field_validator("score")
    @classmethod
    def _known_score(cls, score: str | Score) -> str | Score:
        resolve_score(score)
        return score

    @model_validator(mode="after")
    def _as_in_the_paper(self) -> Self:
        if self.templates == "kevin-paper" and (
            self.language != "cuda" or self.examples not in ("zero", "one")
        ):
            raise ValueError(
                "templates='kevin-paper' needs language='cuda' or 'auto', "
                "and examples='zero' or 'one'"
            )
        return self

    @model_validator(mode="after")
    def _has_examples(self) -> Self:
        language = LANGUAGES.get(self.language)
        if language and not language.collected and self.examples not in ("zero", "one"):
            raise ValueError(
                f"there are no collected kernels in {language.title}: give examples='zero' or 'one'"
            )
        return self

    @model_validator(mode="after")
    def _payable(self) -> Self:
        require_payable(self.score, dict(self))
        return self

    @field_serializer("score")
    def _name_of_score(self, score: str | Score) -> str:
        return score_name(score)
