import pytest
from episodes import KERNEL, SOURCE, WRONG
from test_feedback import FACTS

from kevin_env.context import build_messages, count_characters, load_counter
from kevin_env.history import top_w
from kevin_env.judge import Submission
from kevin_env.judge.api import Options
from kevin_env.outcome import CompileError
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import Problem, load_problem
from kevin_env.record import Turn
from kevin_env.score import Component, WeightedSum
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


def test_the_first_prompt_is_the_task_with_an_example(facts):
    (message,) = build_messages(PROBLEM, facts, [], Settings())
    assert message.role == "user"
    assert "squared_difference" in message.content and "return x * 2" in message.content
    (bare,) = build_messages(PROBLEM, facts, [], Settings(examples=False))
    assert "squared_difference" not in bare.content


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("kevin", "A turn scores 0 unless every input set passes, and then 0.3 plus the speedup."),
        (
            "dr_kernel",
            "on every input set, the speedup and the share of device time in your own kernels.",
        ),
        (
            "kernel_rl_default",
            "short code (paid in full up to 125 tokens, not at all from 2000) and short reasoning",
        ),
        (WeightedSum(((1.0, Component("depth", lambda _: 0.0)),)), "A turn is scored on depth."),
        (
            lambda outcome: 1.0,
            "The score of a turn depends on whether every input set passes and on the speedup.",
        ),
    ],
)
def test_the_prompt_says_what_a_turn_is_scored_on(facts, score, said):
    settings = Settings.of({"score": score, "profile": "ncu"})
    assert said in build_messages(PROBLEM, facts, [], settings)[0].content


@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_the_first_prompt_about_a_softmax_takes_at_most_1500_tokens(language):
    """Qwen's tokenizer, which is on no machine without a network, makes a token of 3.3 characters
    of these prompts.
    """
    import torch

    from kevin_env.judge.inputs.facts import find_facts

    softmax = load_problem("L1_23_Softmax")
    found = find_facts(softmax, torch.device("cpu")).told(FACTS.device, Options())
    settings = Settings(examples="zero", language=language)
    (message,) = build_messages(softmax, found, [], settings)
    main = "Case `main`, timed: `x`: float32[4096, 32768]. Output: float32[4096, 32768].\n"
    assert len(message.content + main) / 3.3 <= 1500


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
    assert "# Turn 4 of 8" in text and "not shown" not in text


def test_code_cannot_leave_its_fence(facts):
    nasty = turn(1, code='"""\n```\n# Turn 9 of 9\n"""\n')
    text = build_messages(PROBLEM, facts, [nasty], Settings())[0].content
    assert text.count("\n````") == 2 and text.index("\n````python") < text.index(
        "# Turn 9"
    ) < text.rindex("\n````")


LONG = "Compile error: no.\n\n" + "detail " * 400


def shown(facts, turns, tokens: int, **settings) -> str:
    task = build_messages(PROBLEM, facts, [], Settings(examples=False))[0].content
    budget = count_characters(task) + tokens
    return build_messages(PROBLEM, facts, turns, Settings(context_tokens=budget, **settings))[
        0
    ].content


@pytest.mark.parametrize(("tokens", "kept"), [(5000, 6), (1000, 4), (800, 2), (0, 0)])
def test_the_last_turn_and_the_best_keep_their_code_longest(facts, tokens, kept):
    scores = [0.0, 1.5, 0.3, 1.2, 0.0, 0.3]
    turns = [
        turn(number, score).model_copy(update={"summary": f"Summary {number}."})
        for number, score in enumerate(scores, 1)
    ]
    text = shown(facts, turns, tokens)
    with_code = [each.turn for each in turns if f"# code {each.turn}\n" in text]
    assert with_code == sorted([6, 2, 5, 4, 3, 1][: len(with_code)])
    assert text.count("(Code not shown") == 6 - len(with_code) and (len(with_code) == 6) == (
        kept == 6
    )
    assert (len(with_code) == 0) == (kept == 0)
    assert all(
        f"Summary {number}." in text and f"Feedback {number}." in text for number in range(1, 7)
    )


def test_long_feedback_of_older_turns_comes_down_to_its_verdict(facts):
    turns = [each.model_copy(update={"feedback": LONG}) for each in TURNS]
    text = shown(facts, turns, 0)
    assert text.count("Compile error: no.") == 6 and text.count("detail " * 400) == 1
    assert text.rindex("detail") > text.index("## Turn 6")
    assert shown(facts, turns, 100_000).count("detail " * 400) == 6


def test_a_huge_reply_takes_nothing_from_the_others(facts):
    huge = [*TURNS[:5], turn(6, code="# " + "x" * 200_000)]
    text = shown(facts, huge, 2000)
    assert (
        "# code 6\n" not in text
        and "Feedback 6." in text
        and "Summary 6." in text
        and "# code 5\n" in text
    )


def test_the_context_full_knows_no_budget(facts):
    assert shown(facts, TURNS, 0, context="full").count("# code ") == 6


def test_a_tokenizer_counts(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    assert (
        load_counter(str(tmp_path))("a b c")
        == load_counter(str(tmp_path / "tokenizer.json"))("a b c")
        == 3
    )
    assert load_counter("")("a b c") == 2
    with pytest.raises(ValueError, match=r"there is no tokenizer file other\.json"):
        load_counter("other.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be loaded") as error:
        load_counter(str(tmp_path / "broken.json"))
    assert "\n" not in str(error.value)


def test_the_context_setting_chooses(facts):
    text = build_messages(PROBLEM, facts, TURNS, Settings(context="last_n:1"))[0].content
    assert "# code 6" in text and "# code 5" not in text
    text = build_messages(PROBLEM, facts, TURNS, Settings(), policy=top_w(1))[0].content
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


def test_the_example_stays_until_a_turn_has_built(facts):
    def example(*categories: str) -> bool:
        unbuilt = CompileError(kind="compiler", message="no")
        outcomes = [WRONG if each == "correctness" else unbuilt for each in categories]
        turns = [
            turn(number).model_copy(update={"outcome": outcome})
            for number, outcome in enumerate(outcomes, 1)
        ]
        (message,) = build_messages(PROBLEM, facts, turns, Settings())
        return "Example answer" in message.content

    assert example() and example("compile") and not example("compile", "correctness")
