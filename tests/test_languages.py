"""The table of languages: each has an example, a page in the prompt, and a name for what is lacking.

On a GPU, the files of `submissions/languages` are judged in the languages that are installed.
"""

import tomllib
from pathlib import Path
from typing import get_args

import pytest
from corpus import FOLDER, Entry, judged, read_entry

from kevin_env.episode import Episode
from kevin_env.extract import guess_language
from kevin_env.judge.bench import Bench
from kevin_env.judge.judge import Judge
from kevin_env.languages import (
    LANGUAGES,
    Language,
    Name,
    available,
    installed,
    obstacle,
    preloaded_for,
)
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import data_folder, load_problem
from kevin_env.rules import check_rules
from kevin_env.settings import Settings

SOFTMAX = load_problem("L1_23_Softmax")
VERSIONS = {each.package: "12.34" for each in LANGUAGES.values() if each.package}
GPU = SCRIPTED_GPU.model_copy(update={"versions": SCRIPTED_GPU.versions | VERSIONS})
NEW = [each for each in LANGUAGES.values() if not each.collected]


def example(language: Language) -> str:
    return (data_folder("prompts") / "examples" / f"{language.name}.py").read_text()


def task(language: str, **more: object) -> str:
    settings = Settings.of({"language": language, **more})
    return Episode(SOFTMAX, ScriptedPool([], GPU), settings).start()[-1].content


def test_the_table_has_every_name() -> None:
    assert list(LANGUAGES) == list(get_args(Name))
    extras = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for each in LANGUAGES.values():
        if each.extra:
            assert extras[each.extra][0].startswith(each.package)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_an_example_is_in_its_language_and_keeps_the_rules(language: Language) -> None:
    assert guess_language(example(language)) == language.name
    assert check_rules(example(language)) is None


@pytest.mark.parametrize("language", NEW, ids=[each.name for each in NEW])
def test_the_prompt_describes_the_language_and_its_version(language: Language) -> None:
    text = task(language.name)
    assert f"your own {language.title} kernels" in text and "12.34" in text
    assert text.count(example(language).strip()) == 1
    with_gradients = task(language.name, backward=True)
    assert "from `forward` and `backward` of a `torch.autograd.Function`:" in with_gradients


@pytest.mark.parametrize("language", ["any", *LANGUAGES])
def test_what_follows_a_language_begins_a_line(language: str) -> None:
    assert "\n`ModelNew` takes the constructor arguments" in task(language)


def test_with_any_the_model_chooses_among_those_that_are_there() -> None:
    text = task("any")
    assert "code=sm_90a" in text and "CUB and Thrust are allowed" in text
    assert all(each.title in text for each in LANGUAGES.values())
    lacking = VERSIONS | {"triton": "3.6"}
    del lacking["helion"]
    assert "helion" not in [each.name for each in available(True, lacking)]
    assert [each.name for each in available(False, VERSIONS)] == ["triton", "cpp"]


@pytest.mark.parametrize("language", NEW, ids=[each.name for each in NEW])
def test_what_is_lacking_is_named_before_a_model_is_asked(language: Language) -> None:
    settings = Settings.of({"language": language.name})
    with pytest.raises(ValueError, match=f"language='{language.name}' needs a GPU, and this"):
        Episode(SOFTMAX, ScriptedPool([]), settings).start()
    if language.extra:
        with pytest.raises(ValueError, match=rf"pip install 'kevin-env\[{language.extra}\]'$"):
            Episode(SOFTMAX, ScriptedPool([], SCRIPTED_GPU), settings).start()
    assert obstacle(language.name, on_gpu=True, versions=None) == ""
    lacks = obstacle(language.name, on_gpu=True, versions=VERSIONS | {"compiler": ""})
    assert lacks.endswith("needs nvcc where kernels are judged") is language.nvcc


def test_what_takes_seconds_to_import_is_preloaded() -> None:
    assert preloaded_for({"torch.nn", "helion.language"}) == "helion"
    assert preloaded_for({"cutlass.cute", "cuda.bindings.driver"}) == "cutlass"
    assert preloaded_for({"triton", "cuda.tile", "helionic", "torch"}) == ""


def test_what_is_asked_for_is_imported_before_there_is_a_submission(untimed_judge: Judge) -> None:
    cpu = untimed_judge.bench
    gpu = Bench(cpu.device, SCRIPTED_GPU.model_copy(update={"versions": {"helion": "1.0.0"}}))
    for bench in (cpu, gpu):
        for name in ("auto", "any", "triton", "cutile", "tilelang", "helion"):
            bench.prepare(name)
    assert not cpu._with_language, "a CPU has none of them"
    [(module, started)] = gpu._with_language.items()
    assert module == "helion" and gpu.candidates_for("import helion\n") is started
    gpu.close()
    options = Settings.of({"language": "helion"}).options()
    assert options.language == "helion"


def test_collected_kernels_are_in_three_languages() -> None:
    with pytest.raises(ValueError, match="no collected kernels in TileLang: give examples='zero'"):
        Settings.of({"language": "tilelang", "examples": "few"})


FILES = [read_entry(path) for path in sorted((FOLDER / "languages").glob("*/*.py"))]


@pytest.mark.parametrize("entry", FILES, ids=[each.name for each in FILES])
def test_the_reader_refuses_no_honest_file(entry: Entry) -> None:
    assert guess_language(entry.code) in (entry.path.parent.name, "python")
    found = check_rules(entry.code, entry.rules)
    assert found is None or entry.met_by(found, "cuda")
    assert found is not None or "import_only" not in entry.name


@pytest.mark.gpu
@pytest.mark.parametrize("entry", FILES, ids=[each.name for each in FILES])
def test_a_file_ends_as_it_says_on_a_gpu(entry: Entry, pool: LocalPool) -> None:
    if lacking := obstacle(entry.path.parent.name, on_gpu=True, versions=installed()):
        pytest.skip(lacking)
    outcome, log, _ = judged(entry, "cuda", pool)
    assert entry.met_by(outcome, "cuda"), f"expected {entry.expect}: {outcome}\n{log}"
    assert outcome.category != "compile" or outcome.line, outcome  # type: ignore[union-attr]
