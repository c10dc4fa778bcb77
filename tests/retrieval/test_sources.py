"""Pairs from parquet files with the columns of the data sets, from the Hub's package, and from our
own solutions.
"""

import sys
from pathlib import Path

import pytest
from pairs import TASK, module

from kevin_env.retrieval.operations import Pair, RetrievalError
from kevin_env.retrieval.sources import ARCHIVE, KERNELBOOK, read_source

pyarrow = pytest.importorskip("pyarrow", reason="needs the extra retrieval")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra retrieval")

BOOK_ROW = {
    "entry_point": "SumAggregator",
    "original_triton_code": "# as torch.compile wrote it",
    "python_code": module("return x.sum(1)", "SumAggregator"),
    "triton_code": "import triton\n",
    "repo_name": "somebody/something",
    "module_name": "SumAggregator",
    "synthetic": False,
    "uuid": 7,
    "licenses": ["MIT"],
    "stars": 3,
    "sha": "0" * 40,
    "repo_link": "https://example.org",
}
ARCHIVE_ROW = {
    "Op_Name": "23_Softmax",
    "Level_ID": 1,
    "Task_ID": 23,
    "Kernel_Name": "23_softmax_warp",
    "CUDA_Runtime": 0.01,
    "PyTorch_Native_Runtime": 0.02,
    "PyTorch_Compile_Runtime": 0.03,
    "CUDA_Speedup_Native": 2.0,
    "CUDA_Speedup_Compile": 3.0,
    "CUDA_Code": "#include <torch/extension.h>\n",
    "PyTorch_Code_Module": TASK,
    "PyTorch_Code_Functional": TASK,
    "Correct": True,
    "Max_Diff": 0.0,
    "Error": None,
    "NCU_Profile": "{}",
    "Torch_Profile": "{}",
    "Clang_Tidy": "{}",
    "__index_level_0__": 5,
}


def write(path: Path, rows: list[dict]) -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_kernelbook_from_a_file(tmp_path: Path) -> None:
    file = write(tmp_path / "book.parquet", [BOOK_ROW, BOOK_ROW | {"triton_code": None}])
    assert list(read_source(f"kernelbook:{file}")) == [
        Pair(
            id="kernelbook:0", origin="kernelbook", language="triton", reference=BOOK_ROW["python_code"],
            entry="SumAggregator", kernel="import triton\n",
        )
    ]  # fmt: skip


def test_the_archive_from_a_folder_only_what_it_calls_correct_and_is_plausible(
    tmp_path: Path,
) -> None:
    wrong = {"Correct": False, "Kernel_Name": "wrong"}
    (tmp_path / "deep").mkdir()
    write(tmp_path / "level_1.parquet", [ARCHIVE_ROW, ARCHIVE_ROW | wrong])
    exploits = [{"CUDA_Speedup_Native": speedup} for speedup in (150.0, float("inf"), float("nan"))]
    write(tmp_path / "deep" / "level_2.parquet", [ARCHIVE_ROW | each for each in exploits])
    assert list(read_source(f"archive:{tmp_path}")) == [
        Pair(
            id="archive:L1_23/23_softmax_warp", origin="archive", language="cuda", reference=TASK,
            kernel="#include <torch/extension.h>\n", level=1, number=23, speedup=2.0,
        )
    ]  # fmt: skip


@pytest.mark.parametrize("words", ["", "book", "solutions:x", "kernelbok:FILE"])
def test_an_unknown_source_is_one_clear_line(words: str) -> None:
    with pytest.raises(
        RetrievalError, match=r"^unknown source .*give solutions, kernelbook, archive, .*$"
    ):
        list(read_source(words))


def test_a_file_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("not parquet")
    empty = tmp_path / "empty"
    empty.mkdir()
    book = write(tmp_path / "book.parquet", [BOOK_ROW])
    for source, message in {
        f"kernelbook:{tmp_path / 'text.parquet'}": "cannot read .*text.parquet as parquet",
        f"kernelbook:{tmp_path / 'none.parquet'}": "no parquet file at .*GPUMODE/KernelBook",
        f"archive:{empty}": "no parquet file at .*AI-CUDA-Engineer-Archive",
        f"archive:{book}": "book.parquet has no column Level_ID, .*is it SakanaAI/AI-CUDA-Engineer-Archive",
    }.items():
        with pytest.raises(RetrievalError, match=message):
            list(read_source(source))


HUB = """
from pyarrow import parquet

class Rows:
    def __init__(self, table):
        self.table, self.column_names = table, table.column_names
    def select_columns(self, names):
        return self.table.select(names).to_pylist()

def load_dataset(name, split):
    return Rows(parquet.read_table(f"{FOLDER}/{name.replace('/', '_')}.{split}"))
"""


def test_without_a_file_the_hub_is_asked_split_by_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "datasets.py").write_text(f"FOLDER = {str(tmp_path)!r}\n{HUB}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    write(tmp_path / f"{KERNELBOOK.name.replace('/', '_')}.train", [BOOK_ROW])
    assert [each.id for each in read_source("kernelbook")] == ["kernelbook:0"]
    for level in (1, 2, 3):
        write(
            tmp_path / f"{ARCHIVE.name.replace('/', '_')}.level_{level}",
            [ARCHIVE_ROW | {"Level_ID": level}],
        )
    assert [each.level for each in read_source("archive")] == [1, 2, 3]
    (tmp_path / f"{ARCHIVE.name.replace('/', '_')}.level_1").unlink()
    with pytest.raises(
        RetrievalError, match=r"Archive could not be loaded \(FileNotFoundError.*give them"
    ):
        list(read_source("archive"))
