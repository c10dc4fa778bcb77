"""An index on disk: what it holds, that it comes back as it was, and that nothing in it is
unpickled.
"""

import pickle
from pathlib import Path

import numpy as np
import pytest
from pairs import TASK, index_of, module, pair

from kevin_env.retrieval.embedders import TokenHashEmbedder, module_text
from kevin_env.retrieval.index import build, keep, load, save
from kevin_env.retrieval.operations import RetrievalError

PAIRS = [
    pair(1, TASK),
    pair(2, module("return x.sum()"), "cuda", speedup=1.5),
    pair(3, TASK, "cpp"),
]


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    index = index_of(PAIRS)
    save(index, tmp_path / "deep" / "index")
    again = load(tmp_path / "deep" / "index")
    assert (again.model, again.pairs) == ("token-hash", tuple(PAIRS))
    assert np.array_equal(again.vectors, index.vectors) and again.vectors.dtype == np.float32


class Exploit:
    def __reduce__(self):
        return (Path("exploited").write_text, ("",))


def test_a_pickle_in_the_place_of_the_array_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(index_of(PAIRS), tmp_path / "index")
    np.save(tmp_path / "index" / "vectors.npy", np.array([Exploit()], object), allow_pickle=True)
    with pytest.raises(RetrievalError, match="cannot read the index"):
        load(tmp_path / "index")
    (tmp_path / "index" / "vectors.npy").write_bytes(pickle.dumps(Exploit()))
    with pytest.raises(RetrievalError, match="cannot read the index"):
        load(tmp_path / "index")
    assert not Path("exploited").exists()


def damage(folder: Path, how: str) -> None:
    match how:
        case "a line less":
            (folder / "pairs.jsonl").write_text(
                "".join((folder / "pairs.jsonl").open().readlines()[:2])
            )
        case "no array":
            (folder / "vectors.npy").unlink()
        case "no JSON":
            (folder / "index.json").write_text("{")
        case "another schema":
            text = (folder / "index.json").read_text()
            (folder / "index.json").write_text(text.replace("kevin-index/1", "kevin-index/2"))


@pytest.mark.parametrize("how", ["a line less", "no array", "no JSON", "another schema"])
def test_a_damaged_index_is_one_clear_line(tmp_path: Path, how: str) -> None:
    save(index_of(PAIRS), tmp_path / "index")
    damage(tmp_path / "index", how)
    with pytest.raises(RetrievalError, match="rebuild it: kevin-env index build") as error:
        load(tmp_path / "index")
    assert "\n" not in str(error.value)


def test_an_index_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    save(index_of(PAIRS), folder)
    save(index_of(PAIRS[:1]), folder)
    assert len(load(folder).pairs) == 1 and [each.name for each in tmp_path.iterdir()] == ["index"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("x")
    with pytest.raises(RetrievalError, match="exists and is not an index"):
        save(index_of(PAIRS), mine)
    assert (mine / "thesis.txt").exists()


def test_of_one_reference_and_language_the_fastest_is_kept() -> None:
    same = TASK.replace("128", "64") + "\n# a comment\n"
    kept = keep(
        [
            pair(1, TASK, speedup=1.5),
            pair(2, same, speedup=2.5),
            pair(3, same, speedup=2.5),
            pair(4, same, "cpp"),
        ]
    )
    assert [each.id for each in kept.pairs] == ["kernelbook:2", "kernelbook:4"]
    assert kept.left_out == {"slower or the same again": 2}


def test_what_cannot_be_used_is_left_out_and_counted() -> None:
    kept = keep(
        [pair(1, "def f(:"), pair(2, TASK, kernel="x" * 20_001), pair(3, "x = 1\0"), pair(4, TASK)]
    )
    assert [each.id for each in kept.pairs] == ["kernelbook:4"]
    assert kept.left_out == {
        "a reference that does not parse": 2,
        "longer than any prompt has room for": 1,
    }
    with pytest.raises(RetrievalError, match="no usable pair"):
        build((), TokenHashEmbedder())


def test_each_text_is_embedded_once_and_progress_is_told() -> None:
    class Counting(TokenHashEmbedder):
        seen = 0

        def embed(self, texts):
            self.seen += len(texts)
            return super().embed(texts)

    embedder, told = Counting(), []
    references = [module(f"return x.sum() + y * x[{n}]") for n in range(300)]
    pairs = keep(
        [
            pair(n, each, language)
            for n, each in enumerate(references)
            for language in ("cuda", "cpp")
        ]
    ).pairs
    index = build(pairs, embedder, lambda done, total: told.append((done, total)))
    assert (embedder.seen, told) == (300, [(256, 300), (300, 300)])
    assert np.allclose(
        index.vectors, TokenHashEmbedder().embed([module_text(each.reference) for each in pairs])
    )
