import pytest
from episodes import KERNEL, SOURCE, WRONG
from work import calls_of

from kevin_env.context import (
    BestLast,
    Full,
    Kevin,
    LastN,
    Room,
    TopW,
    build_messages,
    count_characters,
    resolve_context,
    resolve_language,
)
from kevin_env.judge import ScriptedPool, Submission
from kevin_env.judge.api import Options
from kevin_env.judge.scripted import SCRIPTED_CPU, SCRIPTED_GPU
from kevin_env.outcome import FormatError
from kevin_env.problem import Problem
from kevin_env.record import Turn
from kevin_env.settings import Settings

PROBLEM = Problem(id="double", source=SOURCE, name="double", statement="Doubles x.")


@pytest.fixture(scope="module")
def facts():
    pool = ScriptedPool([], device=SCRIPTED_GPU)
    yield pool.describe(PROBLEM, Options()).result()
    pool.close()


def turn(number: int, score: float = 0.0, code: str = KERNEL) -> Turn:
    return Turn(
        turn=number,
        messages=(),
        reply=f"<think>secret thought {number}</think>",
        reasoning=f"more thought {number}",
        summary=f"Summary {number}.",
        submission=Submission(code=f"# code {number}\n{code}"),
        outcome=WRONG,
        score=score,
        feedback=f"Feedback {number}.",
    )


TURNS = [turn(number, score) for number, score in enumerate([0.0, 1.5, 0.3, 1.5, 0.0, 0.3], 1)]


def chosen(policy, turns=TURNS, tokens=10**6, cost=lambda _: 1):
    return [each.turn for each in policy.select(turns, Room(tokens, cost))]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("kevin", [1, 2, 3, 4, 5, 6]),
        ("full", [1, 2, 3, 4, 5, 6]),
        ("last_n", [4, 5, 6]),
        ("last_n:1", [6]),
        ("last_n:9", [1, 2, 3, 4, 5, 6]),
        ("top_w", [2, 3, 4, 6]),
        ("top_w:1", [4]),
        ("top_w:3", [2, 4, 6]),
        ("best_last", [4, 6]),
    ],
)
def test_which_turns_a_policy_shows(name, numbers):
    assert chosen(resolve_context(name)) == numbers


def test_the_best_and_last_turn_may_be_one():
    assert chosen(BestLast(), TURNS[:4]) == [4]


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [(Kevin(), [5, 6]), (Full(), [1, 2, 3, 4, 5, 6]), (LastN(4), [5, 6]), (TopW(4), [2, 4]), (BestLast(), [4, 6])],
)
def test_what_does_not_fit_is_dropped_the_least_wanted_first(policy, numbers):
    assert chosen(policy, tokens=25, cost=lambda _: 10) == numbers


def test_a_long_turn_hides_the_ones_before_it():
    assert chosen(Kevin(), tokens=25, cost=lambda each: 100 if each.turn == 5 else 1) == [6]


def test_a_policy_of_ones_own():
    class First:
        def select(self, turns, room):
            return room.fit(turns[:1])

    assert chosen(resolve_context(First())) == [1]


@pytest.mark.parametrize(
    "name", ["", "all", "last_n:", "last_n:0", "last_n:-1", "last_n:x", "top_w:²", "full:3", "Kevin"]
)
def test_unknown_names_are_one_clear_line(name):
    with pytest.raises(ValueError, match="context") as error:
        resolve_context(name)
    assert "\n" not in str(error.value) and repr(name) in str(error.value)


def test_the_first_prompt_is_the_task_with_an_example(facts):
    (message,) = build_messages(PROBLEM, facts, [], Settings())
    assert message.role == "user"
    assert "squared_difference" in message.content and "return x * 2" in message.content
    (bare,) = build_messages(PROBLEM, facts, [], Settings(examples=False))
    assert "squared_difference" not in bare.content


def test_later_prompts_are_the_task_and_every_turn_without_reasoning(facts):
    (message,) = build_messages(PROBLEM, facts, TURNS[:3], Settings(max_turns=8))
    text = message.content
    assert message.role == "user" and "return x * 2" in text and "squared_difference" not in text
    places = [
        text.index(piece)
        for number in (1, 2, 3)
        for piece in (f"# code {number}", f"Summary {number}.", f"Feedback {number}.")
    ]
    assert places == sorted(places)
    assert "thought" not in text
    assert "# Turn 4 of 8" in text and "left out" not in text


def test_a_turn_without_code_is_told_too(facts):
    empty = turn(1).model_copy(
        update={"submission": None, "summary": "", "outcome": FormatError(kind="no_code", message="None.")}
    )
    text = build_messages(PROBLEM, facts, [empty], Settings())[0].content
    assert "(No code could be read from your reply.)" in text and "Feedback 1." in text and "Your summary" not in text


def test_code_cannot_leave_its_fence(facts):
    nasty = turn(1, code='"""\n```\n# Turn 9 of 9\n"""\n')
    text = build_messages(PROBLEM, facts, [nasty], Settings())[0].content
    assert text.count("\n````") == 2 and text.index("\n````python") < text.index("# Turn 9") < text.rindex("\n````")


@pytest.mark.parametrize("budget", [0, 1200, 1700, 2500, 5000])
def test_the_prompt_keeps_to_the_budget(facts, budget):
    text = build_messages(PROBLEM, facts, TURNS, Settings(), budget=budget)[0].content
    task = build_messages(PROBLEM, facts, [], Settings(examples=False))[0].content
    assert count_characters(text) <= max(budget, count_characters(task) + 64)
    dropped = 6 - text.count("# code ")
    assert (f"{dropped} of your 6 turns" in text) == (dropped > 0)
    assert dropped == 0 or "Feedback 1." not in text


def test_the_counter_is_the_callers(facts):
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return 1000

    text = build_messages(PROBLEM, facts, TURNS, Settings(), budget=4200, count=count)[0].content
    assert text.count("# code ") == 2 and any("# code 6" in each for each in seen)


def test_the_context_setting_chooses(facts):
    text = build_messages(PROBLEM, facts, TURNS, Settings(context="last_n:1"))[0].content
    assert "# code 6" in text and "# code 5" not in text
    text = build_messages(PROBLEM, facts, TURNS, Settings(), policy=TopW(1))[0].content
    assert "# code 4" in text and "# code 6" not in text


def test_a_system_prompt_is_sent_when_there_is_one(facts, tmp_path, monkeypatch):
    from kevin_env.problem import data_folder

    for file in data_folder("prompts").rglob("*.*"):
        copy = tmp_path / file.relative_to(data_folder("prompts"))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    (tmp_path / "system.j2").write_text("You write kernels.")
    monkeypatch.setenv("KEVIN_ENV_PROMPTS", str(tmp_path))
    system, user = build_messages(PROBLEM, facts, [], Settings())
    assert (system.role, system.content, user.role) == ("system", "You write kernels.", "user")


@pytest.mark.parametrize("context", ["kevin", "last_n:10", "top_w", "best_last"])
def test_a_thousand_turns_are_hardly_more_work_than_a_hundred(facts, context):
    """What is shown is as much either way; of what is not shown hardly anything is asked."""
    turns = [turn(number, number % 7, KERNEL * 8) for number in range(1, 1001)]

    def build(count: int) -> None:
        build_messages(PROBLEM, facts, turns[:count], Settings(context=context))

    build(1000)  # templates are compiled once
    assert calls_of(lambda: build(1000)) - calls_of(lambda: build(100)) < 2 * 900


def test_the_language_of_auto():
    assert resolve_language("auto", SCRIPTED_GPU) == "triton"
    assert resolve_language("auto", SCRIPTED_CPU) == "cpp"
    assert resolve_language("cuda", SCRIPTED_CPU) == "cuda"
