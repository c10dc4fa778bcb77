"""`kevin-env eval`: a policy on many problems, samples and turns, and its metrics."""

import functools
import shlex
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kevin_env.cli.options import (
    EPISODE,
    Given,
    Override,
    Plain,
    extra,
    of_problems,
    print_json,
    settings_options,
)

if TYPE_CHECKING:
    from rich.console import Console

    from kevin_env.app.evaluate.config import Agent, EvalConfig
    from kevin_env.app.evaluate.figures import RunMetrics
    from kevin_env.app.evaluate.folder import RunFolder
    from kevin_env.app.evaluate.players import WholePlayer
    from kevin_env.integrations.run_log import EpisodeFollower, RunLogger
    from kevin_env.problem import Problem


Config = Annotated[
    Path | None, typer.Argument(metavar="CONFIG.toml", help="Configuration of the evaluation.")
]
Model = Annotated[str | None, typer.Option(help="Model name at the endpoint, or local:FOLDER.")]
AgentCommand = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Command line of a coding agent, instead of a model; needs the extra mcp.",
    ),
]
Minutes = Annotated[
    float | None, typer.Option(help="Minutes for an agent's episode; by default 60.")
]
BaseUrl = Annotated[
    str | None, typer.Option(help="OpenAI-compatible endpoint; by default $OPENAI_BASE_URL.")
]
Names = Annotated[list[str] | None, of_problems("")]
Samples = Annotated[int | None, typer.Option(help="Number of samples per problem.")]
Out = Annotated[Path | None, typer.Option(help="Run folder; by default a new one in runs/.")]
Resume = Annotated[Path | None, typer.Option(metavar="RUN", help="Continue this run folder.")]
Recorded = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="FILE|FOLDER", help="Compute the metrics of recorded trajectories."
    ),
]
Tensorboard = Annotated[
    bool,
    typer.Option("--tensorboard", help="Log to RUN/tensorboard; needs the extra tensorboard."),
]
Wandb = Annotated[
    str | None,
    typer.Option(metavar="PROJECT", help="Log to Weights & Biases; needs the extra wandb."),
]
Pool = Annotated[
    str | None,
    typer.Option(metavar="URL|ray", help="Judge pool; by default $KEVIN_ENV_POOL or this machine."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the configuration and play nothing.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")]


@settings_options(EPISODE)
def evaluate(
    settings: Given,
    config: Config = None,
    override: Override = None,
    model: Model = None,
    agent: AgentCommand = None,
    minutes: Minutes = None,
    base_url: BaseUrl = None,
    problem: Names = None,
    samples: Samples = None,
    out: Out = None,
    resume: Resume = None,
    recorded: Recorded = None,
    tensorboard: Tensorboard = False,
    wandb: Wandb = None,
    pool: Pool = None,
    dry_run: DryRun = False,
    plain: Plain = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model or a coding agent on many problems.

    A TOML file configures everything; options override the file, and -o overrides both. --resume
    continues a run that was stopped or killed. The key of the endpoint is $OPENAI_API_KEY, from the
    environment or a file .env.
    """
    from kevin_env.app.arguments import require_examples
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput
    from kevin_env.app.screen import make_console

    if agent and model:
        raise BadInput("give either --agent or --model")
    try:
        words = shlex.split(agent) if agent else None
    except ValueError as error:
        raise BadInput(f"--agent {agent}: {error}") from error
    flags = {
        "policy.kind": "agent" if agent else None,
        "policy.command": words,
        "policy.minutes": minutes,
        "policy.model": model,
        "policy.base_url": base_url,
        "problem": ",".join(problem) if problem else None,
        "samples": samples,
        "out": str(out) if out else None,
        "tensorboard": tensorboard or None,
        "wandb": wandb,
    }
    flags |= {f"settings.{name}": value for name, value in settings.items()}
    console = make_console(plain, "stderr")
    if recorded is not None:
        more = {"--resume": resume, "--dry-run": dry_run, "--pool": pool}
        given = sorted(key for key, value in (flags | more).items() if value)
        _print(_figures(recorded, config, override or [], given, console), plain, as_json)
        return
    if config is not None and problem and not config.is_file():
        raise BadInput(
            f"{config} is not a configuration file; join problems with commas: "
            f"--problem {','.join((*problem, str(config)))}"
        )
    load_env_file()
    chosen, found = _read(config, resume, override or [], flags)
    require_examples(chosen.settings)
    _require_loggers(chosen)
    if dry_run:
        _outline(chosen, found, as_json)
        return
    metrics, code = _evaluate(chosen, found, console, pool)
    _print(metrics, plain, as_json)
    raise typer.Exit(code)


def _read(
    file: Path | None, resume: Path | None, overrides: list[str], flags: dict[str, Any]
) -> "tuple[EvalConfig, tuple[Problem, ...]]":
    from kevin_env.app.errors import BadInput
    from kevin_env.app.evaluate.config import read_config
    from kevin_env.app.evaluate.folder import RunFolder
    from kevin_env.app.evaluate.session import resolve

    if resume is None:
        return resolve(read_config(file, overrides, flags))
    if file or flags["out"]:
        raise BadInput(
            f"--resume {resume} has its own config.toml and output: leave out CONFIG.toml and --out"
        )
    folder = RunFolder(resume)
    folder.config()  # raises if the file itself is bad
    return resolve(read_config(folder.config_file, overrides, flags | {"out": str(resume)}))


def _outline(config: "EvalConfig", problems: "tuple[Problem, ...]", as_json: bool) -> None:
    from kevin_env.app.evaluate.session import outline

    planned = outline(config, problems)
    if as_json:
        print_json(planned | {"config": config.model_dump(mode="json")})
        return
    typer.echo(config.toml())
    for key, value in planned.items():
        if value is not None:
            typer.echo(f"# {key}: {value}")


def _evaluate(
    config: "EvalConfig",
    problems: "tuple[Problem, ...]",
    console: "Console",
    pool: str | None,
) -> "tuple[RunMetrics | None, int]":
    from kevin_env.app.arguments import open_pool, require_available
    from kevin_env.app.evaluate.folder import RunFolder
    from kevin_env.app.evaluate.players import make_player
    from kevin_env.app.evaluate.session import evaluate

    require_available(config.settings, pool)
    folder = RunFolder(config.out or Path())
    player = (
        _agent_player(config.policy, folder)
        if config.policy.kind == "agent"
        else make_player(config, problems)
    )
    open_log = functools.partial(_run_log, config, problems, folder)
    open_judges = functools.partial(open_pool, config.settings.device, pool)
    with folder.locked():
        ended = evaluate(config, problems, open_judges, player, console, open_log)
    return ended.metrics, ended.code


def _agent_player(agent: "Agent", folder: "RunFolder") -> "WholePlayer":
    from kevin_env.app.errors import BadInput
    from kevin_env.app.evaluate.players import WholePlayer

    with extra():
        from kevin_env.agents.run import Command, play_agent
    try:
        command = Command.of(agent.command, agent.minutes, agent.sandbox)
    except ValueError as error:
        raise BadInput(str(error)) from error
    file = folder.trajectories_file
    return WholePlayer(
        lambda problem, sample, pool, settings, on_turn, stop: (
            play_agent(problem, pool, settings, command, file, on_turn, sample, stop).trajectory
        )
    )


def _require_loggers(config: "EvalConfig") -> None:
    """Raises BadInput if TensorBoard or wandb is not installed, before anything is written."""
    from kevin_env.app.errors import BadInput
    from kevin_env.integrations.tensorboard import require_tensorboard
    from kevin_env.integrations.wandb import require_wandb

    try:
        if config.tensorboard:
            require_tensorboard()
        if config.wandb:
            require_wandb()
    except ImportError as error:
        raise BadInput(str(error)) from error


def _run_log(
    config: "EvalConfig", problems: "tuple[Problem, ...]", folder: "RunFolder"
) -> "AbstractContextManager[EpisodeFollower | None]":
    """Logs the run to TensorBoard and wandb. The folder must be locked."""
    from kevin_env.app.errors import BadInput
    from kevin_env.app.evaluate.session import outline
    from kevin_env.integrations.run_log import EpisodeFollower
    from kevin_env.integrations.tensorboard import TensorBoardLogger
    from kevin_env.integrations.wandb import WandbLogger

    loggers: list[RunLogger] = []
    try:
        if config.tensorboard:
            loggers.append(TensorBoardLogger(folder.path / "tensorboard", resume=True))
        if config.wandb:
            loggers.append(WandbLogger(config.wandb, folder=folder.path, resume=True))
    except OSError as error:
        raise BadInput(f"cannot log {folder.path}: {error}") from error
    if not loggers:
        return nullcontext()
    episodes = outline(config, problems)["episodes"]
    return closing(EpisodeFollower(folder.trajectories_file, episodes, loggers))


def _figures(
    path: Path, file: Path | None, overrides: list[str], given: list[str], console: "Console"
) -> "RunMetrics":
    """Metrics of recorded trajectories; of the configuration, only prices matter."""
    from kevin_env.app.errors import BadInput
    from kevin_env.app.evaluate.config import read_prices
    from kevin_env.app.evaluate.folder import read_figures
    from kevin_env.app.screen import show

    if given:
        agent = {"policy.kind": "agent", "policy.command": "agent"}
        names = (agent.get(each, each.lstrip("-").rpartition(".")[2]) for each in given)
        options = dict.fromkeys(f"--{name.replace('_', '-')}" for name in names)
        raise BadInput(f"--from plays nothing: leave out {', '.join(options)}")
    prices = read_prices(file, overrides)
    return read_figures(path, prices, lambda line: show(console, f"left out: {line}", "yellow"))[1]


def _print(metrics: "RunMetrics | None", plain: bool, as_json: bool) -> None:
    from kevin_env.app.evaluate.tables import show_metrics
    from kevin_env.app.screen import make_console

    if metrics is not None and as_json:
        print_json(metrics.model_dump(mode="json"))
    elif metrics is not None:
        show_metrics(make_console(plain), metrics)
