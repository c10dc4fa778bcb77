"""Which problems are held out: by a seed, level by level, near copies together."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from episodes import SOURCE

from kevin_env import kernelbench
from kevin_env.app.catalogue import choose_problems, named_problems
from kevin_env.curriculum import Curriculum
from kevin_env.problem import Problem, ProblemError, data_folder, list_problems
from kevin_env.selection import (
    NEAR_COPIES,
    SHARE,
    ProblemChoice,
    find_problems,
    our_problems,
    problem_source,
    split,
)

PROBLEMS = list_problems()
SEEDS = range(20)


def toy(id: str, level: int = 1) -> Problem:
    return Problem(id=id, source="", name=id, level=level)


def test_the_same_seed_divides_the_same_way_whatever_the_order() -> None:
    assert split(PROBLEMS, 7) == split(PROBLEMS[::-1], 7)
    assert len({tuple(sorted(split(PROBLEMS, seed).items())) for seed in SEEDS}) == len(SEEDS)


def test_the_default_split_stays_what_it_was() -> None:
    held_out = {id for id, side in split(PROBLEMS).items() if side == "held_out"}
    assert {problem.id for problem in PROBLEMS if problem.level == 2} & held_out == {
        "L2_37_Matmul_Swish_Sum_GroupNorm",
        "L2_40_Matmul_Scaling_ResidualAdd",
        "L2_59_Matmul_Swish_Scaling",
        "L2_85_Conv2d_GroupNorm_Scale_MaxPool_Clamp",
    }
    assert {problem.id for problem in find_problems("held_out")} == held_out


def test_a_quarter_of_each_level_is_held_out() -> None:
    wrong = []
    for seed in SEEDS:
        sides = split(PROBLEMS, seed)
        assert set(sides) == {problem.id for problem in PROBLEMS}
        for level, many in Counter(problem.level for problem in PROBLEMS).items():
            ids = [problem.id for problem in PROBLEMS if problem.level == level]
            held_out = sum(sides[id] == "held_out" for id in ids)
            if not max(round(SHARE * many) - 2, 1) <= held_out <= round(SHARE * many):
                wrong.append((seed, level, held_out, many))
    assert wrong == []


def test_near_copies_are_on_one_side() -> None:
    sides = {seed: split(PROBLEMS, seed) for seed in SEEDS}
    parted = [
        (seed, group)
        for seed in SEEDS
        for group in NEAR_COPIES
        if len({sides[seed][id] for id in group}) > 1
    ]
    assert parted == []


def test_held_out_problems_are_drawn_only_where_they_are_named(tmp_path, monkeypatch) -> None:
    def drawn(choice: ProblemChoice) -> list[Problem]:
        found = problem_source(choice)
        assert isinstance(found, tuple)
        return list(found)

    held_out = list(find_problems("held_out:L1"))
    assert (
        drawn("L1")
        == [each for each in find_problems("L1") if each not in held_out]
        == drawn("train:L1")
    )
    assert drawn("held_out:L1") == held_out != []
    assert [each.id for each in drawn(["L1_23_Softmax"])] == ["L1_23_Softmax"]
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    for name in ("23_Softmax.py", "36_RMSNorm_.py", "50_Other.py"):
        (folder / name).write_text(find_problems("L1_26_GELU_")[0].source)
    monkeypatch.setenv(kernelbench.VARIABLE, str(tmp_path))
    assert [each.number for each in drawn("kernelbench:level1")] == [36, 50]
    assert [each.number for each in drawn(folder)] == [36, 50]
    assert [each.number for each in drawn("kernelbench:level1/23")] == [23]
    assert [each.number for each in find_problems(folder)] == [23, 36, 50]


def test_a_frozen_list_names_its_problems_and_refuses_changed_files(tmp_path, monkeypatch) -> None:
    listed = find_problems("kevin-bench-1")
    assert Counter(each.level for each in listed) == dict.fromkeys(range(1, 11), 6)
    assert problem_source("kevin-bench-1") == listed
    assert {each.id for each in listed} == {
        each.id for each in choose_problems(names=["kevin-bench-1"])
    }
    with pytest.raises(ProblemError, match="no list kevin-bench-9; there is kevin-bench-1"):
        find_problems("kevin-bench-9")
    shutil.copytree(data_folder("problems"), tmp_path / "problems")
    monkeypatch.setenv("KEVIN_ENV_PROBLEMS", str(tmp_path / "problems"))
    with (tmp_path / "problems" / "level1" / "26_GELU_.py").open("a") as file:
        file.write("# a comment\n")
    with pytest.raises(
        ProblemError, match=r"^kevin-bench-1: problems/level1/26_GELU_.py has chang"
    ):
        find_problems("kevin-bench-1")


def test_any_problems_can_be_divided() -> None:
    problems = [toy(f"{level}{number}", level) for level in (1, 2) for number in range(10)]
    sides = split(problems, share=0.4)
    assert Counter((id[0], side) for id, side in sides.items()) == {
        ("1", "held_out"): 4,
        ("1", "train"): 6,
        ("2", "held_out"): 4,
        ("2", "train"): 6,
    }
    assert set(split(problems, share=0).values()) == {"train"}
    assert set(split(problems, share=1).values()) == {"held_out"}
    with pytest.raises(ValueError, match="it must be between 0 and 1"):
        split(problems, share=1.5)


def test_a_level_has_the_same_sides_alone_and_among_the_others() -> None:
    whole = {problem.id for problem in our_problems(side="held_out", seed=3)}
    for level in range(1, 11):
        of_level = our_problems(level, "held_out", seed=3)
        assert {problem.level for problem in of_level} == {level}
        assert {problem.id for problem in of_level} <= whole


def write(folder: Path, factor: int) -> Path:
    folder.mkdir(parents=True)
    file = folder / "problem.py"
    file.write_text(SOURCE.replace("x * 2", f"x * {factor}"))
    return file


def test_files_of_one_name_are_problems_of_their_own(tmp_path: Path) -> None:
    files = [write(tmp_path / name, n) for n, name in enumerate(("a/x", "b/x", "b/y"))]
    problems = find_problems([*files, files[0]])
    assert [each.id for each in problems] == [
        "a.x.problem",
        "b.x.problem",
        "b.y.problem",
        "a.x.problem",
    ]
    assert [each.path for each in problems[:3]] == list(map(str, files))
    assert [each.id for each in find_problems([files[0], files[2]])] == ["x.problem", "y.problem"]
    assert [each.id for each in find_problems([files[0], files[0]])] == ["problem"] * 2
    assert len(Curriculum(files).stages[0]) == 3
    assert [each.id for each in named_problems(list(map(str, files)), None)] == [
        "a.x.problem", "b.x.problem", "b.y.problem",
    ]  # fmt: skip


def test_a_file_with_the_name_of_one_of_ours_is_another_problem(tmp_path: Path) -> None:
    folder = tmp_path / "level1"
    file = write(folder, 3).rename(folder / "23_Softmax.py")
    assert [each.id for each in find_problems([str(file), "L1_23_Softmax"])] == [
        "level1.23_Softmax", "L1_23_Softmax",
    ]  # fmt: skip


def test_problems_without_files_need_ids_of_their_own() -> None:
    one, other = (Problem(id="mine", source=source, name="mine") for source in ("a", "b"))
    assert find_problems([one, one]) == (one, one)
    with pytest.raises(ProblemError, match="2 different problems have the ID 'mine'; rename one"):
        find_problems([one, other])
