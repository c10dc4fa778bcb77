"""`kevin-env play`: a model or a person plays one problem."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kevin_env.cli.options import (
    EPISODE,
    TRAJECTORIES,
    Given,
    Override,
    Plain,
    complete_problems,
    finite,
    positive,
    print_json,
    settings_options,
)

if TYPE_CHECKING:
    from kevin_env.app.play.session import Session
    from kevin_env.episode import Episode
    from kevin_env.policies.base import Policy
    from kevin_env.problem import Problem
    from kevin_env.record import Trajectory
    from kevin_env.settings import Settings


def _of_model(
    help: str, callback: Callable[[float | None], float | None] | None = None, **more: Any
) -> Any:
    """An option with which a model is asked."""
    return typer.Option(help=help, callback=callback, rich_help_panel="Model", **more)


ProblemName = Annotated[
    str | None, typer.Option(help="Problem ID or file.", autocompletion=complete_problems)
]
Human = Annotated[bool, typer.Option("--human", help="Play yourself.")]
Samples = Annotated[int, typer.Option(help="Number of episodes to play in parallel.")]
Out = Annotated[
    Path | None, typer.Option(help=f"Trajectory file to append to; by default {TRAJECTORIES}.")
]
Resume = Annotated[
    Path | None,
    typer.Option(help="Continue the last episode, or samples, of this trajectory file."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print each trajectory as a line of JSON.")]
Model = Annotated[str | None, _of_model("Model name at the endpoint, local:FOLDER, or human.")]
BaseUrl = Annotated[
    str | None,
    _of_model("OpenAI-compatible endpoint; by default the recorded one, or $OPENAI_BASE_URL."),
]
Temperature = Annotated[float | None, _of_model("Sampling temperature.", finite)]
TopP = Annotated[float | None, _of_model("Nucleus sampling probability.", finite)]
MaxTokens = Annotated[int | None, _of_model("Token limit of a reply.")]
Seed = Annotated[int | None, _of_model("Sampling seed of sample 0; sample i uses seed + i.")]
ExtraBody = Annotated[str | None, _of_model("Extra request fields, as a JSON object.")]
Timeout = Annotated[float, _of_model("Seconds to wait for the endpoint.", positive)]
Retries = Annotated[int, _of_model("Retries of a request that fails temporarily.", min=0)]


@settings_options(EPISODE)
def play(
    settings: Given,
    problem: ProblemName = None,
    human: Human = False,
    samples: Samples = 1,
    out: Out = None,
    resume: Resume = None,
    override: Override = None,
    plain: Plain = False,
    as_json: AsJson = False,
    model: Model = None,
    base_url: BaseUrl = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    extra_body: ExtraBody = None,
    timeout: Timeout = 600.0,
    retries: Retries = 8,
) -> None:
    """Play an episode with a model, or yourself.

    On a terminal it opens a screen (? shows the keys); otherwise it prints lines. The key of the
    endpoint is $OPENAI_API_KEY, from the environment or a file .env.
    """
    from kevin_env.app.arguments import read_policy, read_settings
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput
    from kevin_env.app.play.opening import recorded_base_url, recorded_settings

    load_env_file()
    _require(problem, resume, samples, human, model)
    chosen = read_settings(override, **settings)
    starts = _starts(problem, resume, samples, chosen)
    name = "human" if human else model or getattr(starts[0], "model", "")
    if resume is not None:
        start = cast("Trajectory", starts[0])
        chosen = recorded_settings(resume, start, _asked(settings, override, chosen))
        base_url = base_url or recorded_base_url(resume, start, name)
    if name == "human" and len(starts) > 1:
        raise BadInput("you cannot play several samples at once: leave out --samples")
    policy = read_policy(
        name, base_url, extra_body, temperature=temperature, top_p=top_p,
        max_tokens=max_tokens, seed=seed, timeout=timeout, retries=retries,
    )  # fmt: skip
    _Play(policy, chosen, out or resume or TRAJECTORIES, plain, as_json).run(starts)


def _asked(given: Given, override: Sequence[str] | None, settings: "Settings") -> dict[str, Any]:
    """The settings that options or overrides set, as records hold them."""
    keys = (word.partition("=")[0].strip() for word in override or ())
    names = {*given, *(key.removeprefix("settings.") for key in keys)}
    values = settings.model_dump(mode="json")
    return {name: value for name, value in values.items() if name in names}


def _starts(
    problem: str | None, resume: Path | None, samples: int, settings: "Settings"
) -> "Sequence[Problem | Trajectory]":
    """The problem, once per sample, or the recorded episodes to continue."""
    from kevin_env.app.arguments import require_available
    from kevin_env.app.play.opening import last_episodes
    from kevin_env.app.screen import make_console, show
    from kevin_env.problem import load_problem

    if resume is not None:
        errors = make_console(stream="stderr")
        return last_episodes(resume, lambda line: show(errors, f"left out: {line}", "yellow"))
    require_available(settings)
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
        raise BadInput("--resume continues the samples of the file: leave out --samples")
    if human and model not in (None, "human"):
        raise BadInput(f"give either --human or --model {model}")


@dataclass(frozen=True)
class _Play:
    """What one episode and several samples have in common."""

    policy: "Policy"
    settings: "Settings"
    file: Path
    plain: bool
    as_json: bool

    def run(self, starts: "Sequence[Problem | Trajectory]") -> None:
        """Plays all, prints the results, and exits with the largest exit code."""
        from kevin_env.app.arguments import open_pool, require_endpoint
        from kevin_env.app.errors import INTERRUPTED, episode_code
        from kevin_env.app.play.opening import open_episode
        from kevin_env.recorder import Recorder

        recorder = Recorder(self.file)
        recorder.require()
        require_endpoint(self.policy)
        with open_pool(self.settings.device) as pool:
            numbers = [None] if len(starts) == 1 else range(len(starts))
            episodes = [
                open_episode(start, pool, self.settings, recorder, self.policy, number)
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
        if any(trajectory.turns for trajectory in begun):
            typer.echo(f"recorded in {self.file}; kevin-env {hint}", err=True)
        raise typer.Exit(code)

    def _one(self, episode: "Episode") -> "Trajectory":
        from kevin_env.app.play.plain import Narrator, play
        from kevin_env.app.screen import make_console
        from kevin_env.app.tui.play import PlayApp

        errors = make_console(self.plain, "stderr")
        narrator = Narrator(errors if self.as_json else make_console(self.plain), errors)
        if not self._on_screen():
            return play(episode, self.policy, narrator)
        trajectory = PlayApp(self._session(episode), human=self.policy.name == "human").play()
        if trajectory.stop_reason is not None:
            narrator.end(trajectory)
        return trajectory

    def _many(self, episodes: "Sequence[Episode]") -> "Sequence[Trajectory]":
        from kevin_env.app.play.batch import BatchRun
        from kevin_env.app.screen import make_console

        errors = make_console(self.plain, "stderr")
        console = errors if self.as_json else make_console(self.plain)
        batch = BatchRun([self._session(each) for each in episodes])
        ended = batch.play(console, errors, screen=self._on_screen())
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
        """Whether stdin and stdout are a terminal that the screen can use."""
        import sys

        from kevin_env.app.screen import make_console

        console = make_console(self.plain)
        there = console.is_terminal and sys.stdin.isatty() and not console.is_dumb_terminal
        return there and not (self.plain or self.as_json)
