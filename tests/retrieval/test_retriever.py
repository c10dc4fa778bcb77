"""What is found: the likest, in the right language, enough, and never the task's own answer."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
from pairs import COPIES, TASK, module, pair, problem, retriever_of, saved

from kevin_env.problem import load_problem
from kevin_env.retrieval.embedders import TokenHashEmbedder
from kevin_env.retrieval.index import Index, Retriever, open_retriever
from kevin_env.retrieval.operations import RetrievalError
from kevin_env.retrieval.sources import read_source
from kevin_env.selection import find_problems

pytest.importorskip("faiss", reason="needs the extra retrieval")

OTHERS = [
    pair(10, module("return torch.softmax(x @ y, dim=1) + 1")),
    pair(11, module("return F.gelu(x).cumsum(0)")),
    pair(12, module("return torch.sin(x).exp().sum()")),
    pair(13, module("return F.linear(x, y).relu()")),
]


def ids(found) -> list[str]:
    return [each.pair.id for each in found]


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_the_task_is_never_given(name: str) -> None:
    entry = "ScaledHead" if name == "renamed" else "Model"
    retriever = retriever_of([pair(1, COPIES[name], entry=entry), *OTHERS])
    assert sorted(ids(retriever.find(problem(), "triton"))) == [
        f"kernelbook:{n}" for n in (10, 11, 12, 13)
    ]
    elsewhere = retriever.find(problem(module("return torch.softmax(x * 2, dim=1)")), "triton")
    assert "kernelbook:1" in ids(elsewhere)  # it is in the index, and other tasks may see it


def test_what_is_known_to_be_for_the_task_is_never_given() -> None:
    rewritten = module(
        "return (x - x.amax()).exp() / (x - x.amax()).exp().sum()"
    )  # softmax, in other operations
    archive = pair(
        1, rewritten, "cuda", origin="archive", level=1, number=23, id="archive:L1_23/fast"
    )
    same_number = pair(2, module("return x.cos()"), "cuda", origin="archive", level=2, number=23)
    retriever = retriever_of([archive, same_number])
    assert ids(retriever.find(load_problem("L1_23_Softmax"), "cuda")) == ["kernelbook:2"]
    assert len(list(retriever.find(load_problem("L1_40_LayerNorm"), "cuda"))) == 2
    assert ids(retriever.find(problem(module("return x.tan()"), level=1, number=23), "cuda")) == [
        "kernelbook:2"
    ]


def test_no_kernel_of_a_held_out_problem_is_given_for_one_that_is_not() -> None:
    retriever = retriever_of(list(read_source("solutions")))
    held_out = {each.id for each in find_problems("held_out")}
    given = {
        each.split(".")[0]
        for task in find_problems("train")[::8]
        for each in ids(retriever.find(task, "triton"))
    }
    assert given and not given & held_out
    assert {
        each.split(".")[0] for each in ids(retriever.find(load_problem("L1_23_Softmax"), "cpp"))
    } & held_out


def test_nor_is_a_copy_of_one_from_elsewhere() -> None:
    copy = pair(1, module("return nn.functional.softmax(x, -1)"))
    retriever = retriever_of([copy, OTHERS[1]])
    assert ids(retriever.find(load_problem("L1_36_RMSNorm_"), "triton")) == ["kernelbook:11"]
    assert len(list(retriever.find(load_problem("L1_40_LayerNorm"), "triton"))) == 2
    assert "L1_23_Softmax" in {each.id for each in find_problems("held_out")}


def test_the_likest_comes_first() -> None:
    found = list(
        retriever_of(OTHERS).find(problem(module("return F.gelu(x).cumsum(0) - y.std()")), "triton")
    )
    assert found[0].pair.id == "kernelbook:11"
    assert [each.similarity for each in found] == sorted(
        (each.similarity for each in found), reverse=True
    )
    assert 0 < found[-1].similarity < found[0].similarity <= 1


def test_there_are_enough_in_a_language_also_when_most_of_the_index_is_another() -> None:
    near = [
        pair(n, module(f"return torch.softmax(self.linear(x) * {n}, dim=1)"), "cuda")
        for n in range(50)
    ]
    names = ["exp", "log", "sin", "cos", "tan"]
    far = [pair(100 + n, module(f"return torch.{name}(x)"), "cpp") for n, name in enumerate(names)]
    copies = [
        pair(200 + n, TASK.replace("128", str(n + 1)) + f"\ndef unused{n}(): pass\n", "cpp")
        for n in range(40)
    ]
    found = list(islice(retriever_of([*near, *copies, *far]).find(problem(), "cpp"), 3))
    assert len(found) == 3 and {each.pair.language for each in found} == {"cpp"}
    assert all(int(each.pair.id.split(":")[1]) in range(100, 105) for each in found)


def test_no_two_that_compute_the_same_are_given() -> None:
    many = [pair(n, module(f"a{n} = torch.tanh(x); return a{n} + {n}")) for n in range(20)]
    assert len(list(retriever_of([*many, OTHERS[0]]).find(problem(), "triton"))) == 2


def test_a_language_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(RetrievalError, match=r"no kernels in cpp, only in triton") as error:
        next(retriever_of(OTHERS).find(problem(), "cpp"))
    assert "\n" not in str(error.value)


def test_another_model_is_refused() -> None:
    index = Index("x", (OTHERS[0],), TokenHashEmbedder(64).embed([OTHERS[0].reference]))
    with pytest.raises(
        RetrievalError, match="token-hash is not the model that the index was built with"
    ):
        next(Retriever(index, TokenHashEmbedder()).find(problem(), "triton"))


def test_it_may_be_asked_from_several_threads() -> None:
    retriever = retriever_of(OTHERS)
    tasks = [problem(module(f"return x.cumsum({n}) * y")) for n in range(16)]
    expected = [ids(retriever_of(OTHERS).find(task, "triton")) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda task: ids(retriever.find(task, "triton")), tasks)) == expected


def test_an_index_is_opened_once_and_again_when_it_was_built_anew(tmp_path) -> None:
    folder = saved(OTHERS[:1], tmp_path / "index")
    first = open_retriever(folder)
    assert open_retriever(folder) is first
    saved(OTHERS, tmp_path / "index")
    assert len(list(open_retriever(folder).find(problem(), "triton"))) == 4


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_without_an_index_the_error_says_how_to_build_one(folder: str) -> None:
    with pytest.raises(RetrievalError, match="kevin-env index build solutions --out FOLDER"):
        open_retriever(folder)
