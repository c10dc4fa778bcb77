"""verifiers' own command line and API against a loopback endpoint."""

# pyright: reportMissingImports=false
# Its pins exclude those of the tools that check types.

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip(
    "verifiers.v1", reason="verifiers is not installed: pip install 'kevin-env[verifiers]'"
)
BIN = Path(sys.executable).parent
UV = shutil.which("uv", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
pytestmark = [
    pytest.mark.skipif(UV is None, reason="verifiers needs uv on the PATH: pip install uv"),
]

import verifiers.v1 as vf  # noqa: E402
from episodes import WRONG, correct, problem_file  # noqa: E402
from stub_server import Answer, delta, serve  # noqa: E402
from tiny_models import reply  # noqa: E402
from verifiers.v1.clients import EvalClientConfig, ModelContext  # noqa: E402

from kevin_env.agents.verifiers import KernelEnv, KernelEnvConfig  # noqa: E402
from kevin_env.integrations.verifiers import (  # noqa: E402
    KernelTask,
    KernelTasksetConfig,
)
from kevin_env.judge import JudgeError  # noqa: E402
from kevin_env.judge.api import JudgePool  # noqa: E402
from kevin_env.pools.scripted import ScriptedPool  # noqa: E402
from kevin_env.record import Trajectory  # noqa: E402
from kevin_env.recorder import read_trajectories  # noqa: E402
from kevin_env.settings import Settings  # noqa: E402

PACKAGE = Path(__file__).parents[2] / "environments" / "kevin_vf"
CORRECT = """```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)
```
"""


def says(content: str, finish: str = "stop") -> Answer:
    return Answer([delta(finish, role="assistant", content=content)])


def episodes_in(path: Path) -> list[Trajectory]:
    return [each for each in read_trajectories(path) if isinstance(each, Trajectory)]


def test_the_command_line_plays_an_episode_that_is_really_judged(tmp_path) -> None:
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PATH": path, "KEY": "x"}
    with serve(says("<think>Hm.</think>I don't know."), says(CORRECT)) as stub:
        command = [
            *(str(BIN / "vf-eval"), "kevin-vf", "-m", "stub", "--client.base-url", stub.url),
            *("--client.api-key-var", "KEY", "--no-rich", "--no-push", "-o", str(tmp_path / "out")),
            *("--env.taskset.problems", "L1_26_GELU_", "--env.settings.max-turns", "2"),
            *("--env.settings.device", "cpu", "--env.settings.rules", "open"),
            *("--env.record", str(tmp_path / "e.jsonl")),
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, done.stderr
    (line,) = next(tmp_path.glob("out/*/traces.jsonl")).read_text().splitlines()
    episode = json.loads(line)
    assert (episode["ok"], episode["task"]["key"]) == (True, "L1_26_GELU_")
    first, second = episode["traces"]
    assert (first["metrics"]["correct"], second["metrics"]["correct"]) == (0, 1)
    assert first["rewards"]["turn_return"]["score"] == pytest.approx(
        0.4 * second["metrics"]["score"]
    )
    assert second["rewards"]["turn_return"]["score"] == second["metrics"]["score"]
    # Of a speedup with a wide interval less counts.
    assert 0.3 < second["metrics"]["score"] <= 0.3 + second["metrics"]["speedup"] + 1e-6
    assert second["info"]["outcome"]["category"] == "correct"
    (recorded,) = episodes_in(tmp_path / "e.jsonl")
    assert recorded.model == "stub" and recorded.turns[0].reasoning == "Hm."
    sent = [request["messages"] for request in stub.requests]
    assert sent == [[message.model_dump() for message in turn.messages] for turn in recorded.turns]


LOAD = """
import json, sys
import kevin_env, verifiers.v1 as vf
given = {"taskset": {"id": sys.argv[1], "problems": "L1_26_GELU_"}, "pool": "http://127.0.0.1:8001"}
env = vf.load_environment(vf.env_config_type(sys.argv[1]).model_validate(given))
tasks = vf.load_taskset(env.config.taskset).load()
print(json.dumps([kevin_env.__file__, type(env).__name__, env.pool().url, [task.key for task in tasks]]))
"""


@pytest.mark.parametrize("name", ["kevin-vf", "someone/kevin-vf@0.1.0"])
def test_the_package_of_the_hub_is_loaded_without_a_checkout(tmp_path, name: str) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    subprocess.run([*build, str(PACKAGE)], check=True, capture_output=True)
    zipfile.ZipFile(next(tmp_path.glob("kevin_vf-*.whl"))).extractall(tmp_path / "site")
    paths = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, name],
        env={**os.environ, "PYTHONPATH": paths}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file, kind, url, tasks = json.loads(done.stdout)
    assert Path(file).is_relative_to(tmp_path / "site")
    assert (kind, url, tasks) == ("KernelEnv", "http://127.0.0.1:8001", ["L1_26_GELU_"])


class Scripted(KernelEnv):
    """The environment with another judge."""

    judges: ClassVar[JudgePool]

    def pool(self) -> JudgePool:
        return self.judges


def judged(problem: Any, submission: Any) -> Any:
    (name,) = re.findall(r"def (\w+)\(x, out", submission.code)
    return correct(2.0) if name == "fast" else WRONG


def played(
    folder: Path, pool: JudgePool, answers: list[Answer], *, tools: bool = False, **settings: Any
) -> Any:
    """One episode of verifiers' own machinery, in this process."""
    Scripted.judges = pool
    problem = problem_file(folder)
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ["PATH"]])
    os.environ["KEY"] = "x"

    async def play(url: str) -> Any:
        config = KernelEnvConfig(
            taskset=KernelTasksetConfig(id="kevin-vf", problems=problem.path), settings=Settings(**settings),
            record=folder / "e.jsonl", tools=tools,
        )  # fmt: skip
        env = Scripted(config)
        (task,) = env.taskset
        assert isinstance(task, KernelTask)
        async with env.serving():
            context = ModelContext(
                model="stub", client=EvalClientConfig(base_url=url, api_key_var="KEY")
            )
            return await env.run_episode(task, context)

    with serve(*answers) as stub:
        return asyncio.run(play(stub.url))


@pytest.fixture(autouse=True)
def _plugin(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("KEY", "")


def test_each_turn_is_a_trace_with_its_own_return(tmp_path) -> None:
    cut = says("Let me", finish="length")
    answers = [says(reply("wrong")), cut, says(reply("fast"))]
    episode: vf.Episode = played(tmp_path, ScriptedPool(judged), answers, max_turns=3)
    assert (episode.ok, episode.errors) == (True, [])
    assert [trace.reward for trace in episode.traces] == pytest.approx([0.16 * 2.3, 0.4 * 2.3, 2.3])
    assert [trace.metrics.get("speedup") for trace in episode.traces] == [None, None, 2.0]
    assert [trace.info["outcome"]["kind"] for trace in episode.traces] == [
        "values",
        "truncated",
        "timed",
    ]
    assert all(len(trace.branches) == 1 and trace.num_turns == 1 for trace in episode.traces)
    assert len({trace.task.key for trace in episode.traces}) == 1
    (recorded,) = episodes_in(tmp_path / "e.jsonl")
    assert [turn.truncated for turn in recorded.turns] == [False, True, False]


def test_a_policy_that_gives_no_reply_ends_the_episode_as_an_error(tmp_path) -> None:
    refusal = Answer(status=400, body={"error": {"message": "no"}})
    episode = played(tmp_path, ScriptedPool(judged), [says(reply("fast")), refusal], max_turns=2)
    assert not episode.ok and "no reply in turn 2" in episode.errors[-1].message
    assert all(not trace.rewards for trace in episode.traces)
    assert episodes_in(tmp_path / "e.jsonl")[0].stop_reason == "model_error"


def test_a_judge_that_fails_twice_is_an_error_and_no_score(tmp_path) -> None:
    failure = JudgeError("the device is gone")
    episode = played(
        tmp_path, ScriptedPool([failure, correct(2.0)]), [says(reply("fast"))], max_turns=1
    )
    assert episode.ok and episode.traces[0].reward == 2.3
    episode = played(tmp_path, ScriptedPool([failure, failure]), [says(reply("fast"))], max_turns=1)
    assert not episode.ok and "the device is gone" in episode.errors[-1].message
    assert not episode.traces[0].rewards


def calls(code: str) -> Answer:
    """A reply that submits a file."""
    function = {"name": "kevin_submit_kernel", "arguments": json.dumps({"code": code})}
    call = {"index": 0, "id": f"call_{len(code)}", "type": "function", "function": function}
    return Answer([delta("tool_calls", role="assistant", content=None, tool_calls=[call])])


def test_a_harness_plays_with_tools(tmp_path) -> None:
    def code(kind: str) -> str:
        return reply(kind).split("```python\n")[1].split("```")[0]

    answers = [calls(code("wrong")), calls(code("fast")), says("Done.")]
    episode = played(tmp_path, ScriptedPool(judged), answers, tools=True, max_turns=3)
    assert (episode.ok, episode.errors) == (True, [])
    (trace,) = episode.traces
    assert trace.reward == 2.3
    assert (trace.metrics["turns"], trace.metrics["speedup"]) == (2, 2.0)
    (recorded,) = episodes_in(tmp_path / "e.jsonl")
    assert [turn.category for turn in recorded.turns] == ["correctness", "correct"]
    assert (recorded.stop_reason, recorded.model) == ("agent_ended", "stub")
    assert "512 of 1024 elements differ" in trace.model_dump_json()
