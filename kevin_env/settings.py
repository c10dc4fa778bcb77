"""What an episode is played by, as one frozen value."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_serializer, field_validator, model_validator

from kevin_env.judge.api import Options
from kevin_env.judge.choice import DEVICES
from kevin_env.outcome import Correct, Frozen, Outcome, speedup_of
from kevin_env.profile import ProfileKind
from kevin_env.rules import Rules
from kevin_env.score import (
    Bound,
    Noisy,
    ReturnsKind,
    Score,
    at_bound,
    require_payable,
    resolve_score,
    score_name,
)

Language = Literal["auto", "cuda", "triton", "cpp"]
Templates = Literal["default", "kevin-paper"]

_EXAMPLES = re.compile(r"zero|one|few|retrieved(:[1-9]\d?)?")


def _told(error: Any) -> str:
    """What is wrong, without what only a programmer reads."""
    if error["type"] == "string_pattern_mismatch":  # the device's: no other has a pattern
        return "give 'auto', 'cpu', 'cuda', 'cuda:1' or 'cuda:0,1'"
    return error["msg"].removeprefix("Value error, ")


class Settings(Frozen):
    """How an episode is played. Everything here goes into the record."""

    max_turns: int = Field(default=4, ge=1)
    gamma: float = Field(default=0.4, ge=0, le=1)
    """Discount of the returns, from one turn to the next."""
    returns: ReturnsKind = "sum"
    device: str = Field(default="auto", pattern=rf"^({DEVICES})$")
    """`auto` (a GPU when there is one), `cpu`, `cuda`, `cuda:1`, or several of one kind as
    `cuda:0,1`.
    """
    language: Language = "auto"
    """What the prompt asks for. `auto`: Triton on a GPU, C++ without."""
    rules: Rules = "kernel"
    """`kernel`: own kernels do all computing. `partial`: at least one runs, the rest may be torch.
    `open`: any code.
    """
    glue: float = Field(default=0.0, ge=0, lt=1)
    """Under the rules `kernel`, torch may also compute on fewer elements than this share of the
    largest tensor among inputs, weights and outputs: 0.01 admits the mean of partial sums. 0 admits
    none, as the rules are by default.
    """
    score: str | Score = "kevin"
    """A name in `kevin_env.score.SCORES`, a `WeightedSum`, recorded by its formula, or a function
    of an outcome, by its name.
    """
    bound: Bound = "median"
    """Which end of a speedup the score pays: its median, or the lower end of its interval."""
    pay_repeats: bool = False
    """Whether code that an earlier turn gave is paid its score again, as in the paper. By default
    it earns no more than it had: see `kevin_env.score.earned`.
    """
    noisy: Noisy = "lower"
    """What a speedup with a wide interval is paid by: the `lower` end; `retry`: the same, after the
    judge has measured it again up to twice; `floor`: nothing, as a correct kernel without a
    speedup.
    """
    templates: Templates = "default"
    """What prompts and feedback are written with. `kevin-paper`: the words of Kevin (arXiv
    2507.11948), which ask for CUDA and show one example or none.
    """
    context: str = "kevin"
    """Which earlier turns the prompt shows."""
    context_tokens: int = Field(default=32_768, ge=1)
    """Tokens of a whole prompt. Earlier turns that do not fit lose their code first; the task is
    never cut.
    """
    tokenizer: str = ""
    """Counts the tokens of prompts and, for scores that depend on lengths, of replies: a
    `tokenizer.json` or a name on the Hugging Face Hub. Empty: four characters are one token of a
    prompt, and a reply has those of its usage.
    """
    hints: bool = False
    """Whether feedback goes beyond facts."""
    examples: str | bool = "one"
    """What the first prompt shows: `zero`, `one` (in the form that is asked for), `few` (two more,
    with references), or `retrieved` (one, and three from `index` for references like the task's;
    `retrieved:5`: five). True is one, False zero.
    """
    index: str = ""
    """The folder of the index from which examples are retrieved; `kevin-env index build` makes one.
    """
    baseline: Literal["eager", "compile"] = "eager"
    """What the speedup is relative to."""
    inputs: Literal["varied", "shipped"] = "varied"
    """Whether inputs are also drawn in other ways than the problem's own."""
    call_timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds that constructing `ModelNew`, and any one call of it, may take. None: the larger of 2
    s and 200 times the reference's time, and 30 s more for constructing it and for the first call
    in each case.
    """
    build_timeout: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """Seconds that importing the submission, compilers included, may take."""
    precision: float | None = Field(default=None, gt=0, lt=1)
    """Half-width of the speedup's 95 % interval, relative to it, that timing tries to reach, such
    as 0.005 for studies. None: 0.02 on a GPU, 0.05 on a CPU.
    """
    profile: ProfileKind = "none"
    """What feedback on a right answer tells besides its time. `kernels`: where the time goes.
    `ncu`: also what Nsight Compute counts, which takes seconds.
    """
    sanitize: bool = False
    """Whether compute-sanitizer looks for the cause of an illegal access or of an output that
    changes between calls.
    """
    stop_on: Literal["correct"] | Annotated[float, Field(gt=0)] | None = None
    """What ends the episode early: a correct kernel, or one with at least this speedup."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Settings from keywords or from a record's `config`.

        Raises:
            ValueError: in one line, naming the setting, what is wrong and what it may be.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            errors = error.errors()
            if not errors[0]["loc"]:  # settings that do not go together
                raise ValueError(_told(errors[0])) from error
            name = str(errors[0]["loc"][0])
            if errors[0]["type"] == "extra_forbidden":
                raise ValueError(
                    f"unknown setting {name!r}; there are {', '.join(cls.model_fields)}"
                ) from error
            wrong = " or ".join(_told(each) for each in errors if each["loc"][0] == name)
            raise ValueError(f"setting {name}={values.get(name)!r}: {wrong}") from error

    def options(self, secret: str | None = None) -> Options:
        """How a submission is to be judged, on inputs drawn from `secret`."""
        return Options(
            device=self.device, baseline=self.baseline, rules=self.rules, glue=self.glue, inputs=self.inputs,
            profile=self.profile, secret=secret,
            sanitize=self.sanitize, call_timeout=self.call_timeout, build_timeout=self.build_timeout,
            precision=self.precision, retry_noisy=self.noisy == "retry",
        )  # fmt: skip

    def ends_with(self, outcome: Outcome) -> bool:
        """Whether this outcome ends the episode early."""
        if self.stop_on is None or not isinstance(outcome, Correct):
            return False
        speedup = speedup_of(at_bound(outcome, noisy=self.noisy))
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

    @field_validator("stop_on", mode="before")
    @classmethod
    def _no_switch(cls, stop_on: object) -> object:
        if isinstance(stop_on, bool):  # True would count as a speedup of 1
            raise ValueError("give 'correct', a speedup, or None")
        return stop_on

    @field_validator("examples")
    @classmethod
    def _known_examples(cls, examples: str | bool) -> str:
        name = ("one" if examples else "zero") if isinstance(examples, bool) else examples
        if not _EXAMPLES.fullmatch(name):
            raise ValueError(
                "give zero, one, few, retrieved, or retrieved:5 for another number than three"
            )
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
                "templates='kevin-paper' needs language='cuda' (or 'auto') and examples='zero' or 'one'"
            )
        return self

    @model_validator(mode="after")
    def _payable(self) -> Self:
        require_payable(self.score, dict(self))
        return self

    @field_serializer("score")
    def _name_of_score(self, score: str | Score) -> str:
        return score_name(score)
