"""An episode that is steered while it is played: over a scripted pool, without a screen."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from episodes import KERNEL, REPLY, WRONG, another, correct, problem_file, recorded
from trajectories import RIGHT, turn

from kevin_env.app.play.editor import draft_of, reply_of
from kevin_env.app.play.live import (
    Asked,
    Event,
    Failed,
    Heard,
    Judged,
    Replied,
    StageBegan,
    Started,
)
from kevin_env.app.play.session import Session
from kevin_env.episode import Episode, EpisodeError
from kevin_env.extract import Extracted, extract
from kevin_env.judge import JudgeError, Options
from kevin_env.judge.api import Facts
from kevin_env.policies import Policy, Refused, ScriptedPolicy
from kevin_env.pools.scripted import Script, ScriptedPool
from kevin_env.problem import Problem, ProblemError
from kevin_env.record import Reply, Trajectory
from kevin_env.recorder import Recorder, partial_path
from kevin_env.settings import Settings


@contextmanager
def session(folder: Path, policy: Policy, script: Script, turns: int = 3) -> Iterator[Session]:
    with closing(ScriptedPool(script)) as pool:
        recorder = Recorder(folder / "out.jsonl")
        yield Session(
            Episode(problem_file(folder), pool, Settings(max_turns=turns), recorder=recorder),
            policy,
        )


def until(played: Session, wanted: type[Event]) -> list[Event]:
    """Everything that happens until something of that type has happened."""
    events: list[Event] = []
    end = time.monotonic() + 60
    while not any(isinstance(event, wanted) for event in events):
        events += played.poll()
        assert time.monotonic() < end, f"no {wanted.__name__} among {events}"
        time.sleep(0.001)
    return events


class Slow:
    """A policy whose reply comes when it is let go; then it says whether its listener still
    listened.
    """

    name = "slow"

    def __init__(self) -> None:
        self.go, self.asked = threading.Event(), threading.Event()
        self.heard: list[str] = []

    def reply(self, messages: object, on_text: Callable[[str], None] | None = None) -> Reply:
        self.asked.set()
        self.go.wait(10)
        try:
            if on_text:
                on_text("too late")
            self.heard.append("heard")
        except Exception as error:
            self.heard.append(type(error).__name__)
            raise
        return Reply(content=REPLY)


def test_a_turn_is_told_from_its_chat_to_its_verdict(tmp_path: Path) -> None:
    with session(tmp_path, ScriptedPolicy([REPLY, another(2)]), [WRONG, correct(2.0)]) as played:
        played.begin()
        [started] = until(played, Started)
        assert isinstance(started, Started)
        played.ask()
        events = until(played, Judged)
        assert [type(event) for event in events if not isinstance(event, StageBegan)] == [
            Asked,
            Heard,
            Replied,
            Judged,
        ]
        assert {event.stage for event in events if isinstance(event, StageBegan)} >= {
            "queue",
            "build",
            "time",
        }
        assert isinstance(events[0], Asked) and events[0].messages == started.messages
        judged = events[-1]
        assert isinstance(judged, Judged)
        assert [each.category for each in judged.episode.turns] == ["correctness"]
        assert "512 of 1024" in judged.messages[-1].content
        assert played.poll() == []
        assert played.finish().stop_reason == "interrupted"
    assert len(recorded(tmp_path / "out.jsonl")) == 1


def test_a_remark_is_sent_and_recorded_with_its_turn_alone(tmp_path: Path) -> None:
    policy = ScriptedPolicy([REPLY, another(2)])
    with session(tmp_path, policy, [WRONG, WRONG], turns=2) as played:
        played.begin()
        until(played, Started)
        played.ask("Use fewer registers.")
        until(played, Judged)
        played.ask()
        until(played, Judged)
    for chat, sent in zip(policy.chats, recorded(tmp_path / "out.jsonl")[0].turns, strict=True):
        assert sent.messages == chat
    assert policy.chats[0][-1].content.endswith("Use fewer registers.")
    assert "Use fewer registers." not in policy.chats[1][-1].content


def test_a_person_may_take_a_turn_in_the_models_place(tmp_path: Path) -> None:
    with session(tmp_path, ScriptedPolicy([REPLY]), [WRONG, correct(2.0)], turns=2) as played:
        played.begin()
        until(played, Started)
        played.ask()
        until(played, Judged)
        played.answer(reply_of(KERNEL.replace("1024", "2048")))
        until(played, Judged)
    first, second = recorded(tmp_path / "out.jsonl")[0].turns
    assert (first.by_person, second.by_person) == (False, True)
    assert second.submission is not None and second.submission.code == KERNEL.replace(
        "1024", "2048"
    )


def test_a_turn_is_taken_again_in_an_episode_of_its_own(tmp_path: Path) -> None:
    policy = ScriptedPolicy([another(number) for number in range(4)])
    with session(
        tmp_path, policy, [WRONG, correct(2.0), correct(3.0), correct(4.0)], turns=2
    ) as played:
        played.begin()
        until(played, Started)
        for _ in range(2):
            played.ask()
            until(played, Judged)
        first = played.episode
        assert first.done
        played.again(2)
        [started] = until(played, Started)
        assert isinstance(started, Started)
        assert started.messages == policy.chats[1]
        played.ask()
        until(played, Judged)
        played.again(1)
        until(played, Started)
        played.ask()
        until(played, Judged)
        played.again(1)
        played.finish()
    one, two, three = recorded(tmp_path / "out.jsonl")  # the fourth has no turn
    assert [[each.speedup for each in episode.turns] for episode in (one, two, three)] == [
        [None, 2.0],
        [None, 3.0],
        [4.0],
    ]
    assert (one.parent, two.parent, three.parent) == (None, one.episode_id, two.episode_id)
    assert two.turns[0] == one.turns[0]
    assert (one.stop_reason, two.stop_reason, three.stop_reason) == (
        "max_turns",
        "max_turns",
        "interrupted",
    )
    assert two.turns[1].secret != one.turns[1].secret
    assert not partial_path(tmp_path / "out.jsonl").exists()


def test_a_running_reply_is_given_up_and_asked_for_again(tmp_path: Path) -> None:
    slow = Slow()
    with session(tmp_path, slow, [correct(2.0)], turns=1) as played:
        played.begin()
        until(played, Started)
        played.ask()
        assert slow.asked.wait(10)
        before = played.episode
        played.again(1)
        until(played, Started)
        assert played.episode is before
        slow.go.set()
        played.ask()
        events = until(played, Judged)
        while len(slow.heard) < 2:
            time.sleep(0.001)
    assert sorted(slow.heard) == ["_AbandonedError", "heard"]
    assert [event.text for event in events if isinstance(event, Heard)] == ["too late"]
    assert [len(each.turns) for each in recorded(tmp_path / "out.jsonl")] == [1]


def test_leaving_does_not_wait_for_a_reply(tmp_path: Path) -> None:
    slow = Slow()
    with session(tmp_path, slow, [correct(2.0)]) as played:
        played.begin()
        until(played, Started)
        played.ask()
        assert slow.asked.wait(10)
        trajectory = played.finish()
        slow.go.set()
    assert (trajectory.turns, trajectory.stop_reason) == ((), "interrupted")
    assert not (tmp_path / "out.jsonl").exists()  # an episode without a turn is not recorded


def test_leaving_gives_up_a_judgement(tmp_path: Path) -> None:
    let_go, begun = threading.Event(), threading.Event()

    def judge(problem: object, submission: object) -> object:
        begun.set()
        let_go.wait(10)
        return correct(2.0)

    with session(tmp_path, ScriptedPolicy([REPLY]), judge) as played:  # type: ignore[arg-type]
        played.begin()
        until(played, Started)
        played.ask()
        while not begun.is_set():
            played.poll()
        trajectory = played.finish()
        let_go.set()
    assert (trajectory.turns, trajectory.stop_reason) == ((), "interrupted")
    assert not (tmp_path / "out.jsonl").exists()  # an episode without a turn is not recorded


def test_leaving_waits_for_a_turn_that_is_just_being_taken(tmp_path: Path) -> None:
    adding = threading.Event()

    class SlowDisk(Recorder):
        def begin(self, trajectory: Trajectory) -> None:
            adding.set()
            time.sleep(0.1)
            super().begin(trajectory)

    with closing(ScriptedPool([correct(2.0)])) as pool:
        episode = Episode(problem_file(tmp_path), pool, recorder=SlowDisk(tmp_path / "out.jsonl"))
        played = Session(episode, ScriptedPolicy([REPLY]))
        played.begin()
        until(played, Started)
        played.ask()
        while not adding.is_set():
            played.poll()
        trajectory = played.finish()
    assert len(trajectory.turns) == 1
    assert recorded(tmp_path / "out.jsonl") == [trajectory]


@pytest.mark.parametrize(
    ("replies", "script", "said", "reason"),
    [
        ([Refused("I won't"), REPLY], [correct(2.0)], "no reply: I won't", "refused"),
        (
            [REPLY, REPLY],
            [JudgeError("gone"), correct(2.0)],
            "the judge failed: gone",
            "judge_error",
        ),
    ],
)
def test_what_failed_can_be_tried_again(
    tmp_path: Path, replies: list, script: list, said: str, reason: str
) -> None:
    with session(tmp_path, ScriptedPolicy(replies), script) as played:
        played.begin()
        until(played, Started)
        played.ask()
        assert until(played, Failed)[-1] == Failed(said)
        assert played.episode.fork().trajectory.turns == ()  # it goes on
        left = played.episode
        played.ask()
        until(played, Judged)
        assert [each.category for each in left.turns] == ["correct"]
        assert played.finish().stop_reason == "interrupted"


def test_who_leaves_after_a_failure_leaves_its_reason(tmp_path: Path) -> None:
    with session(tmp_path, ScriptedPolicy([Refused("no")]), []) as played:
        played.begin()
        until(played, Started)
        played.ask()
        until(played, Failed)
        assert played.finish().stop_reason == "refused"


def test_an_error_of_the_program_is_no_failure_of_the_model(tmp_path: Path) -> None:
    with session(tmp_path, ScriptedPolicy([ZeroDivisionError()]), []) as played:
        played.begin()
        until(played, Started)
        played.ask()
        with pytest.raises(ZeroDivisionError):
            until(played, Judged)


def test_a_reference_that_fails_is_told_at_the_start(tmp_path: Path) -> None:
    class Broken(ScriptedPool):
        def describe(self, problem: Problem, options: Options) -> Future[Facts]:
            future: Future[Facts] = Future()
            future.set_exception(ProblemError("get_inputs raised"))
            return future

    with closing(Broken([])) as pool:
        played = Session(Episode(problem_file(tmp_path), pool), ScriptedPolicy([]))
        played.begin()
        with pytest.raises(ProblemError, match="get_inputs"):
            until(played, Started)


def test_a_fork_may_go_back_and_a_remark_needs_an_open_episode(tmp_path: Path) -> None:
    with closing(ScriptedPool([WRONG, correct(2.0)])) as pool:
        episode = Episode(problem_file(tmp_path), pool, Settings(max_turns=2))
        with pytest.raises(EpisodeError):
            episode.fork(turns=0)
        chat = episode.start()
        episode.submit(REPLY)
        episode.submit(another(2))
        with pytest.raises(EpisodeError):
            episode.fork(turns=2)
        with pytest.raises(EpisodeError):
            episode.remark("too late")
        back = episode.fork(turns=0)
        assert (back.messages, back.turns, back.done, back.parent) == (
            chat,
            (),
            False,
            episode.episode_id,
        )


def test_the_editor_begins_with_the_last_kernel_or_the_reference(tmp_path: Path) -> None:
    problem = problem_file(tmp_path)
    start = draft_of(problem, ())
    assert "#     def forward(self, x):" in start
    assert "class ModelNew" in start
    compile(start, "draft", "exec")
    assert "class ModelNew: ..." in draft_of(problem, (turn(1), RIGHT, turn(3)))
    assert RIGHT.submission is not None
    other = RIGHT.submission.model_copy(update={"code": "other"})
    second = RIGHT.model_copy(update={"submission": other})
    assert draft_of(problem, (RIGHT, second), 0) == "import torch\n\nclass ModelNew: ...\n"
    assert draft_of(problem, (RIGHT, second)) == "other"


def test_what_a_person_writes_is_a_submission_whatever_it_holds() -> None:
    code = "x = '''\n```\n````python\n'''\n\n\nclass ModelNew: ...\n"
    found = extract(reply_of(code).content)
    assert isinstance(found, Extracted)
    assert found.submission.code == code
