"""`kevin-env play`: a model, or a person, plays one problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kevin_env.cli.options import (
    TRAJECTORIES,
    Baseline,
    BuildTimeout,
    CallTimeout,
    Device,
    Examples,
    Glue,
    Hints,
    Index,
    Inputs,
    Language,
    Noisy,
    Plain,
    Precision,
    Profile,
    Rules,
    Sanitize,
    Score,
    SettingOverride,
    Templates,
    Turns,
    finite,
    positive,
    print_json,
)

if TYPE_CHECKING:
    from kevin_env.app.play.session import Session
    from kevin_env.episode import Episode
    from kevin_env.policies.base import Policy
    from kevin_env.problem import Problem
    from kevin_env.record import Trajectory
    from kevin_env.settings import Settings


def play(
    context: typer.Context,
    problem: Annotated[str | None, typer.Option(help="An id, or a path.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Its name at the endpoint; `local:FOLDER`; or `human`.")
    ] = None,
    human: Annotated[
        bool, typer.Option("--human", help="Play yourself, as --model human.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint; else $OPENAI_BASE_URL.")
    ] = None,
    turns: Turns = 4,
    samples: Annotated[int, typer.Option(help="How many episodes to play side by side.")] = 1,
    device: Device = "auto",
    language: Language = "auto",
    rules: Rules = "kernel",
    glue: Glue = 0.0,
    score: Score = "kevin",
    baseline: Baseline = "eager",
    inputs: Inputs = "varied",
    noisy: Noisy = "lower",
    call_timeout: CallTimeout = None,
    build_timeout: BuildTimeout = 300.0,
    precision: Precision = None,
    templates: Templates = "default",
    hints: Hints = False,
    profile: Profile = "none",
    sanitize: Sanitize = False,
    examples: Examples = "one",
    index: Index = "",
    override: SettingOverride = None,
    temperature: Annotated[
        float | None, typer.Option(help="Sent only when given, as the next four.", callback=finite)
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Share of the probability sampled from.", callback=finite)
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of one reply.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Best effort at the endpoint; each sample has its own.")
    ] = None,
    extra_body: Annotated[
        str | None, typer.Option(help="More fields of the request, as a JSON object.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for the endpoint.", callback=positive)
    ] = 600.0,
    out: Annotated[
        Path | None, typer.Option(help=f"Trajectory file to append to; else {TRAJECTORIES}.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Take up this file's last episode or samples, with problem and settings."
        ),
    ] = None,
    plain: Plain = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each trajectory as one line of JSON.")
    ] = False,
) -> None:
    """Let a model, or yourself, play an episode. $OPENAI_API_KEY, also from .env, is the key where
    one is needed.

    On a terminal it is a screen with keys (? shows them), else lines.
    """
    from kevin_env.app.arguments import read_policy, read_settings
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput
    from kevin_env.app.play.opening import recorded_settings

    load_env_file()
    _require(problem, resume, samples, human, model)
    settings = read_settings(
        override, max_turns=turns, device=device, language=language, rules=rules, score=score, baseline=baseline,
        inputs=inputs, templates=templates, hints=hints, examples=examples, index=index, profile=profile,
        sanitize=sanitize, noisy=noisy, call_timeout=call_timeout, build_timeout=build_timeout, precision=precision,
        glue=glue,
    )  # fmt: skip
    starts = _starts(problem, resume, samples, settings)
    if resume is not None:
        settings = recorded_settings(
            resume, cast("Trajectory", starts[0]), _asked(context, override, settings)
        )
    name = "human" if human else model or getattr(starts[0], "model", "")
    if name == "human" and len(starts) > 1:
        raise BadInput("you cannot play several samples at once: leave out --samples")
    parameters = {
        "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "seed": seed, "timeout": timeout
    }  # fmt: skip
    policy = read_policy(name, base_url, extra_body, **parameters)
    _Play(policy, settings, out or resume or TRAJECTORIES, plain, as_json).run(starts)


def _asked(
    context: typer.Context, override: Sequence[str] | None, settings: "Settings"
) -> dict[str, Any]:
    """The settings that were given on the command line, by name and as records hold them."""
    options = {"max_turns" if name == "turns" else name: name for name in context.params}
    given = {word.partition("=")[0].strip().removeprefix("settings.") for word in override or ()}
    values = settings.model_dump(mode="json")
    for name, option in options.items():
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            given.add(name)
    return {name: value for name, value in values.items() if name in given}


def _starts(
    problem: str | None, resume: Path | None, samples: int, settings: "Settings"
) -> "Sequence[Problem | Trajectory]":
    """What is played: a problem, as often as there are samples, or what was recorded, with its own
    settings.
    """
    from kevin_env.app.arguments import require_examples
    from kevin_env.app.play.opening import last_episodes
    from kevin_env.problem import load_problem

    if resume is not None:
        return last_episodes(resume)
    require_examples(settings)
    return (load_problem(problem or ""),) * samples


def _require(
    problem: str | None, resume: Path | None, samples: int, human: bool, model: str | None
) -> None:
    from kevin_env.app.errors import BadInput

    if (problem is None) == (resume is None):
        raise BadInput("give either --problem ID or --resume FILE")
    if samples < 1:
        raise BadInput(f"--samples {samples}: give 1 or more")
    if resume is not None and samples > 1:
        raise BadInput("--resume takes up what the file holds: leave out --samples")
    if human and model not in (None, "human"):
        raise BadInput(f"give either --human or --model {model}")


@dataclass(frozen=True)
class _Play:
    """What is the same for one episode and for many."""

    policy: "Policy"
    settings: "Settings"
    file: Path
    plain: bool
    as_json: bool

    def run(self, starts: "Sequence[Problem | Trajectory]") -> None:
        """Plays them, prints what was asked for, and exits with the code of the worst ending."""
        from kevin_env.app.arguments import open_pool
        from kevin_env.app.errors import INTERRUPTED, episode_code
        from kevin_env.app.play.opening import open_episode
        from kevin_env.recorder import Recorder

        recorder = Recorder(self.file)
        recorder.require()
        with open_pool(self.settings.device) as pool:
            numbers = [None] if len(starts) == 1 else range(len(starts))
            episodes = [
                open_episode(start, pool, self.settings, recorder, self.policy.name, number)
                for start, number in zip(starts, numbers, strict=True)
            ]
            ended = self._many(episodes) if len(episodes) > 1 else [self._one(episodes[0])]
        begun = [trajectory for trajectory in ended if trajectory.stop_reason is not None]
        if not begun:
            raise typer.Exit(INTERRUPTED)
        for trajectory in begun if self.as_json else ():
            print_json(trajectory.model_dump(mode="json"))
        code = max(episode_code(trajectory.stop_reason) for trajectory in begun)
        hint = (
            f"play --resume {self.file} goes on" if code else f"replay {self.file} shows it again"
        )
        typer.echo(f"recorded in {self.file}; kevin-env {hint}", err=True)
        raise typer.Exit(code)

    def _one(self, episode: "Episode") -> "Trajectory":
        from kevin_env.app.play.loop import PlayScreen
        from kevin_env.app.play.plain import Narrator, play
        from kevin_env.app.screen import make_console

        narrator = Narrator(make_console(self.plain, "stderr" if self.as_json else "stdout"))
        if not self._on_screen():
            return play(episode, self.policy, narrator)
        screen = PlayScreen(self._session(episode), human=self.policy.name == "human")
        trajectory = screen.run(narrator.console)
        if trajectory.stop_reason is not None:
            narrator.end(trajectory)
        return trajectory

    def _many(self, episodes: "Sequence[Episode]") -> "Sequence[Trajectory]":
        from kevin_env.app.play.batch_run import BatchRun
        from kevin_env.app.screen import make_console

        console = make_console(self.plain, "stderr" if self.as_json else "stdout")
        batch = BatchRun([self._session(each) for each in episodes])
        ended = batch.run(console) if self._on_screen() else batch.tell(console)
        batch.summary(console)
        return ended

    def _session(self, episode: "Episode") -> "Session":
        from kevin_env.app.play.session import Session
        from kevin_env.policies.base import for_sample

        return Session(
            episode,
            self.policy if episode.sample is None else for_sample(self.policy, episode.sample),
        )

    def _on_screen(self) -> bool:
        """Whether there is a terminal to be taken over."""
        import sys

        from kevin_env.app.screen import make_console

        console = make_console(self.plain)
        there = console.is_terminal and sys.stdin.isatty() and not console.is_dumb_terminal
        return there and not (self.plain or self.as_json)
