"""`kevin-env agent` plays with shell scripts and an MCP client, and attacks of a confined agent change
no score.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cpp_kernels import FASTER_KERNEL, RIGHT_KERNEL, WRONG_KERNEL
from episodes import WRONG, correct, problem_file, recorded
from serving import served, wait_until

from kevin_env.agents.run import MOST_PRINTED, public_judges
from kevin_env.pools.http import HttpPool
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import Trajectory
from kevin_env.recorder import partial_path

TOKEN = "the-token-of-the-judges"
QUICK = ("--rules", "open", "--device", "cpu")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kevin_env", "agent", "--problem", "7_Double.py", *words]


def environment(url: str, token: str = TOKEN) -> dict[str, str]:
    tokens = {"KEVIN_ENV_JUDGE_TOKEN": token, "KEVIN_ENV_MCP_TOKEN": TOKEN}
    return {**os.environ, "KEVIN_ENV_POOL": url, **tokens}


def played(
    folder: Path, url: str, script: str, *words: str, token: str = TOKEN, code: int = 0
) -> Trajectory:
    """The episode of a shell script."""
    done = subprocess.run(
        [*command(*QUICK, *words), "--", "sh", "-c", script],
        cwd=folder, env=environment(url, token), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    *_, episode = recorded(folder / "trajectories.jsonl")
    return episode


def printed(folder: Path, episode: Trajectory) -> str:
    return (folder / f"trajectories.jsonl.{episode.episode_id}.log").read_text()


@pytest.fixture
def judges(tmp_path: Path) -> Iterator[tuple[str, ScriptedPool]]:
    """A judge server whose verdicts are a wrong one, then speedups of 2, 3 and so on."""
    problem_file(tmp_path)
    scripted = ScriptedPool([WRONG, *(correct(float(speedup)) for speedup in range(2, 9))])
    with served(scripted, TOKEN) as (client, _):
        yield client.url, scripted


def versions(count: int) -> str:
    """A script that checks so many files."""
    return f'for i in $(seq {count}); do echo "version = $i" >> kernel.py; ./check kernel.py; done'


def kernels(folder: Path) -> str:
    """A script that writes three kernels and checks them."""
    script = list[str]()
    for code in (WRONG_KERNEL, RIGHT_KERNEL, FASTER_KERNEL):
        script.append(f"cat > kernel.py <<'END'\n{code}\nEND\n./check kernel.py")
    return "\n".join(script)


@pytest.mark.full
def test_a_script_plays_against_real_judges(tmp_path: Path, pool: LocalPool) -> None:
    problem_file(tmp_path)
    with served(pool, TOKEN) as (judges, _):
        episode = played(
            tmp_path, judges.url, f"cat TASK.md\n{kernels(tmp_path)}", "--rules", "kernel"
        )
    assert [turn.category for turn in episode.turns] == ["correctness", "correct", "correct"]
    assert (episode.agent, episode.stop_reason, episode.model) == ("confined", "agent_ended", "sh")
    assert episode.final is not None and episode.final.category == "correct"
    assert FASTER_KERNEL.strip() in episode.turns[2].reply and len(episode.returns) == 3
    assert episode.turns[0].messages == episode.turns[2].messages
    assert "Doubles x." in printed(tmp_path, episode) and "Turn 3: correct" in printed(
        tmp_path, episode
    )


CLIENT = """
import asyncio, json
import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

server = json.load(open(".mcp.json"))["mcpServers"]["kevin-env"]

async def main():
    async with (
        httpx.AsyncClient(headers=server["headers"], timeout=60, trust_env=False) as http,
        streamable_http_client(server["url"], http_client=http) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as client,
    ):
        await client.initialize()
        for number in range(3):
            code = open("kernel.py").read() + f"version = {number}\\n"
            result = await client.call_tool("submit_kernel", {"code": code})
            print(result.structuredContent["category"], result.structuredContent["turns_left"])

asyncio.run(main())
"""


def test_an_mcp_client_plays_until_no_turn_is_left(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    script = f"cat > client.py <<'END'\n{CLIENT}\nEND\npython client.py"
    episode = played(tmp_path, judges[0], script, "--max-turns", "3", "--name", "a client")
    assert (episode.stop_reason, episode.model, episode.agent) == (
        "max_turns", "a client", "confined",
    )  # fmt: skip
    assert printed(tmp_path, episode).split() == [
        "correctness",
        "2",
        "correct",
        "1",
        "correct",
        "0",
    ]
    # The best one was judged once more, and that verdict counts for no turn.
    assert [turn.speedup for turn in episode.turns] == [None, 2.0, 3.0]
    assert episode.final == correct(4.0)
    assert judges[1].submissions[-1][1] == episode.turns[2].submission


ATTACKS = """
exec 2>&1
printf '#!/bin/sh\\necho "Turn 1: correct/timed, score 99.0."\\n' > check && ./check kernel.py
echo 'Any answer is right.' > TASK.md; echo 'Model = object' > reference.py
for place in "$SITE/torch/__init__.py" "$KEVIN/candidate/runtime.py" "$OUT" /usr/bin/env /etc/passwd; do
    ( : >> "$place" ) && echo "BREACH: writes $place"
done
for place in "$OUT" /proc/$SERVER/environ /proc/$SERVER/mem /etc/shadow; do
    cat "$place" && echo "BREACH: read $place"
done
find /tmp -name .mcp.json | grep -v "^$PWD/" && echo "BREACH: finds another episode"
grep -rl the-token-of-the-judges /proc/*/environ /tmp /root /home 2>/dev/null && echo "BREACH: token"
env | grep the-token && echo "BREACH: token"
echo said > /dev/stderr || echo "BREACH: cannot print"
for number in $SERVER $JUDGE; do kill -0 $number && echo "BREACH: may kill $number"; done
touch /tmp/x "${TMPDIR:-/tmp}/x" ~/x || echo "BREACH: cannot write"
ls /proc | grep -x "$SERVER" && echo "BREACH: sees $SERVER"
mount -t tmpfs none /usr && echo "BREACH: mounted"
unshare -Ur true && echo "BREACH: unshared"
ls /dev/nvidia0 && echo "BREACH: sees a GPU"
curl -s --noproxy '*' "$POOL/v1/device?name=cpu" | grep -q hardware && echo "BREACH: judges"
echo ended
"""


def test_attacks_of_a_confined_agent_change_no_score(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    url, scripted = judges
    other = tmp_path / "other"
    other.mkdir()
    problem_file(other)
    waiting = [*command(*QUICK), "--unconfined", "--", "sleep", "100"]
    with subprocess.Popen(waiting, cwd=other, env=environment(url)) as victim:
        try:
            places = {
                "SITE": Path(pytest.__file__).parents[1], "KEVIN": Path(__file__).parents[2] / "kevin_env",
                "OUT": tmp_path / "trajectories.jsonl.partial.jsonl",
                "SERVER": victim.pid, "JUDGE": os.getpid(), "POOL": url,
            }  # fmt: skip
            names = "\n".join(f"{name}='{place}'" for name, place in places.items())
            honest = "cp check honest && ./honest kernel.py"
            script = f"{names}\n{honest}\n{ATTACKS}"
            episode = played(tmp_path, url, script)
            assert victim.poll() is None
        finally:
            victim.terminate()
    text = printed(tmp_path, episode)
    assert "BREACH" not in text and text.endswith("ended\n"), text
    assert [(turn.category, turn.score) for turn in episode.turns] == [("correctness", 0.0)]
    assert episode.agent == "confined" and episode.final is None
    assert len(scripted.submissions) == 1


@pytest.mark.parametrize(("token", "public"), [("", True), ("secret", False)])
def test_judges_without_a_token_are_public(token: str, public: bool) -> None:
    """Of any pool, also one that is not from the environment."""
    assert public_judges(HttpPool("http://one.example", token)) is public
    assert not public_judges(ScriptedPool([]))


@pytest.mark.full
def test_an_agent_that_is_not_confined_is_shown_apart(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    url, _ = judges
    played(tmp_path, url, versions(2), "--name", "one")
    played(tmp_path, url, versions(1), "--name", "two", "--unconfined")
    with served(ScriptedPool([correct(2.0)] * 2)) as (public, _):
        # Without a token, an agent with the network could ask these judges itself.
        episode = played(tmp_path, public.url, versions(1), "--name", "three", token="")
        assert episode.agent == "unconfined"
        needs = [*command(*QUICK), "--require-sandbox", "--", "sh", "-c", "touch ran"]
        refused = subprocess.run(
            needs, cwd=tmp_path, env=environment(public.url, ""), capture_output=True, text=True
        )
        assert refused.returncode == 2 and "judge with a token" in refused.stderr
    report = [sys.executable, "-m", "kevin_env", "report", "trajectories.jsonl", "--out", "r.md"]
    subprocess.run(report, cwd=tmp_path, check=True, capture_output=True)
    figures = [sys.executable, "-m", "kevin_env", "eval", "--from", "trajectories.jsonl", "--json"]
    done = subprocess.run(figures, cwd=tmp_path, check=True, capture_output=True)
    assert json.loads(done.stdout)["overall"]["counts"]["trajectories"] == 3
    replay = [sys.executable, "-m", "kevin_env", "replay", "trajectories.jsonl", "--plain"]
    done = subprocess.run(replay, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "three (unconfined)" in done.stdout
    text = (tmp_path / "r.md").read_text().replace("\\", "")
    assert "one, two (unconfined), three (unconfined)" in text
    rows = [[cell.strip() for cell in line.split("|")[2:5]] for line in text.splitlines()]
    rows = [row for row in rows if row[1:2] in (["confined"], ["unconfined"])]
    assert rows == [
        ["one", "confined", "2.00x"], ["two", "unconfined", "4.00x"], ["three", "unconfined", "2.00x"],
    ]  # fmt: skip


def test_an_agent_that_submits_nothing_is_recorded(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    episode = played(tmp_path, judges[0], "echo no idea", code=1)
    assert (episode.turns, episode.stop_reason, episode.final) == ((), "agent_ended", None)
    assert printed(tmp_path, episode) == "no idea\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 3", "sh ended with exit code 3; it submitted nothing; "),
        ("exit 0", "it submitted nothing; what"),
        ("#!/no/such/interpreter", "cannot be started: its interpreter is not there"),
    ],
)
def test_how_an_agent_ended_is_told(
    tmp_path: Path, judges: tuple[str, ScriptedPool], script: str, told: str
) -> None:
    words = ["sh", "-c", script]
    if script.startswith("#!"):
        (tmp_path / "agent").write_text(script)
        (tmp_path / "agent").chmod(0o755)
        words = [str(tmp_path / "agent")]
    done = subprocess.run(
        [*command(*QUICK), "--", *words],
        cwd=tmp_path, env=environment(judges[0]), capture_output=True, text=True,
    )  # fmt: skip
    [episode] = recorded(tmp_path / "trajectories.jsonl")
    log = printed(tmp_path, episode)
    assert done.returncode == 1 and told in done.stderr + log and "Traceback" not in log


def test_the_end_of_what_an_agent_prints_is_kept(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    script = f"echo first; yes | head -c {MOST_PRINTED + (1 << 20)}; echo last"
    log = printed(tmp_path, played(tmp_path, judges[0], script, code=1))
    assert log.startswith("first\n") and log.endswith("y\nlast\n") and "bytes left out" in log
    assert len(log) < MOST_PRINTED + 100


def test_a_file_that_cannot_be_written_is_found_before_the_agent_runs(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    (tmp_path / "folder").mkdir()
    done = subprocess.run(
        [*command(*QUICK, "--out", "folder"), "--", "sh", "-c", "sleep 99"],
        cwd=tmp_path, env=environment(judges[0]), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.splitlines()[-1].endswith("folder: Is a directory")


def test_the_time_ends_an_agent_and_all_that_it_started(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    long = f"sleep {os.getpid()}.25"  # of this test alone
    script = f"{versions(2)}; {long} & {long}"
    episode = played(tmp_path, judges[0], script, "--minutes", "0.1")
    assert (len(episode.turns), episode.stop_reason) == (2, "time_limit")
    sleeping = subprocess.run(["pgrep", "-f", f"^{long}"], capture_output=True, text=True)
    assert sleeping.stdout == ""


REQUESTS = r"""
import json, socket, threading, urllib.parse
url = urllib.parse.urlsplit(json.load(open(".mcp.json"))["mcpServers"]["kevin-env"]["url"])
def ask():
    with socket.create_connection((url.hostname, url.port)) as connection:
        answer = b"first"
        while answer:
            connection.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = connection.recv(1 << 16)
for _ in range(4):
    threading.Thread(target=ask).start()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize(
    "goes_on", ["sleep 1000", f"exec python -c {shlex.quote(REQUESTS)}"], ids=["idle", "requests"]
)
def test_a_signal_leaves_a_finished_episode(
    tmp_path: Path, judges: tuple[str, ScriptedPool], number: signal.Signals, goes_on: str
) -> None:
    """Also one that comes while a request is answered."""
    words = [*command(*QUICK), "--", "sh", "-c", f"{versions(2)}; {goes_on}"]
    log = tmp_path / "trajectories.jsonl"
    with subprocess.Popen(words, cwd=tmp_path, env=environment(judges[0])) as process:
        wait_until(
            lambda: partial_path(log).exists() and [len(e.turns) for e in recorded(log)] == [2]
        )
        time.sleep(0.5)  # for the agent to go on
        process.send_signal(number)
        assert process.wait(60) == 130
    [episode] = recorded(log)
    assert (len(episode.turns), episode.stop_reason) == (2, "interrupted")
    assert not partial_path(log).exists() or not partial_path(log).read_text()


@pytest.mark.full
def test_an_evaluation_with_an_agent_is_interrupted_and_resumed(
    tmp_path: Path, judges: tuple[str, ScriptedPool]
) -> None:
    """A sample that has ended is not played again; an interrupted one is, from its start."""
    log = tmp_path / "run" / "trajectories.jsonl"

    def started(*words: str, ends: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "kevin_env", "eval", *words],
            cwd=tmp_path, env=environment(judges[0]) | {"ENDS": ends}, stdout=subprocess.PIPE,
        )  # fmt: skip

    agent = shlex.join(["sh", "-c", f'{versions(1)}; [ "$ENDS" ] || sleep 1000'])
    with started(
        "--agent", agent, "--problem", "7_Double.py", "--out", "run", *QUICK, ends="yes"
    ) as one:
        assert one.wait(60) == 0
    with started("--resume", "run", "--samples", "2", ends="") as two:
        wait_until(lambda: partial_path(log).exists() and len(recorded(log)[-1].turns) == 1)
        two.send_signal(signal.SIGINT)
        assert two.wait(60) == 130
    with started("--resume", "run", "--json", ends="yes") as three:
        figures = json.loads(three.communicate(timeout=60)[0])
    episodes = [(each.sample, each.stop_reason, len(each.turns)) for each in recorded(log)]
    assert episodes == [(0, "agent_ended", 1), (1, "interrupted", 1), (1, "agent_ended", 1)]
    assert {(each.model, each.agent) for each in recorded(log)} == {("sh", "confined")}
    assert figures["overall"]["counts"]["trajectories"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--agent", "no-such-agent -p"], "no-such-agent: no such command"),
        (["--agent", "sh", "--model", "m"], "give either --agent or --model"),
        (["--agent", "sh '"], "No closing quotation"),
        (["--agent", "sh", "-o", 'search={kind="parallel"}'], "search: not supported for agents"),
    ],
)
def test_an_evaluation_with_a_wrong_agent_is_one_line(
    tmp_path: Path, words: list[str], said: str
) -> None:
    problem_file(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "kevin_env", "eval", "--problem", "7_Double.py", *QUICK, *words],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and said in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_unknown_command_is_one_line(tmp_path: Path) -> None:
    problem_file(tmp_path)
    done = subprocess.run(
        [*command(), "--", "no-such-agent"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "no-such-agent: no such command" in done.stderr


@pytest.mark.full
def test_the_commands_of_the_page_run(tmp_path: Path, pool: LocalPool) -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    lines = re.findall(r"^    (kevin-env (?:agent|report) .*)$", page, re.MULTILINE)
    assert len(lines) == 2
    claude = tmp_path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text('#!/bin/sh\necho "$@"; cat AGENTS.md; ./check kernel.py\n')
    claude.chmod(0o755)
    with served(pool, TOKEN) as (judges, _):
        path = f"{Path(sys.executable).parent}:{claude.parent}:{os.environ['PATH']}"
        for line in lines:
            done = subprocess.run(
                shlex.split(line), cwd=tmp_path, env={**environment(judges.url), "PATH": path},
                capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
    [episode] = recorded(tmp_path / "run.jsonl")
    assert (episode.model, episode.agent) == ("claude", "confined")
    assert [turn.category for turn in episode.turns] == ["rules"]
    text = (tmp_path / f"run.jsonl.{episode.episode_id}.log").read_text()
    assert text.startswith("-p Follow AGENTS.md\n") and "19 turns" in text
    assert (tmp_path / "run.report.html").exists()
