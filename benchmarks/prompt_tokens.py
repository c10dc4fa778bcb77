"""Tokens of sixteen first prompts, four characters each, in total and by section.

Facts are found on this machine's CPU; for prompts of a GPU the device is replaced by the one below.
Problems of KernelBench are left out where there is no copy (KEVIN_ENV_KERNELBENCH).

    python benchmarks/prompt_tokens.py [--only TEXT] [--print] [--json FILE]
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Literal

import torch
from resultfile import Row, plain_row, write_result

from kevin_env.context import build_messages, count_characters
from kevin_env.judge.api import DeviceInfo, Options
from kevin_env.judge.device import inform
from kevin_env.judge.inputs.facts import find_facts
from kevin_env.problem import ProblemError, load_problem
from kevin_env.settings import Settings

Language = Literal["cpp", "triton", "cuda"]
PROMPTS: tuple[tuple[str, Language, str], ...] = (
    ("L1_36_RMSNorm_", "cpp", "cpu"),
    ("L1_23_Softmax", "triton", "gpu"),
    ("L2_82_Conv2d_Tanh_Scaling_BiasAdd_Max", "cuda", "gpu"),
    ("L3_44_MiniGPTBlock", "cpp", "cpu"),
    ("L3_106_RMSNormBackward", "triton", "cpu"),
    ("L4_9_PagedDecodeAttention", "cuda", "gpu"),
    ("L5_3_SpMV_CSR", "triton", "gpu"),
    ("L6_9_HistogramEqualization", "cuda", "gpu"),
    ("L7_8_STFT", "cpp", "cpu"),
    ("L8_9_IntegerTransform_Quantize", "triton", "cpu"),
    ("L9_4_RadixSort", "cpp", "cpu"),
    ("L10_4_AES_ECB", "triton", "cpu"),
    ("kernelbench:level1/95", "cuda", "gpu"),
    ("kernelbench:level2/12", "triton", "gpu"),
    ("kernelbench:level2/28", "cuda", "gpu"),
    ("kernelbench:level3/31", "triton", "gpu"),
)
"""Problem, language and kind of device: all levels, all languages, with and without weights."""
H200 = DeviceInfo(
    device="cuda:0",
    name="NVIDIA H200",
    capability="9.0",
    processors=132,
    memory=150_000_000_000,
    shared_memory=227 << 10,
    l2=50 << 20,
    bandwidth=4.8e12,
    sm_shared_memory=228 << 10,
    sm_registers=1 << 16,
    peaks={"FP32": 66.9e12, "BF16 tensor cores": 989e12},
    versions={
        "python": "3.12.3",
        "torch": "2.11.0+cu130",
        "triton": "3.6.0",
        "cuda": "13.0",
        "driver": "13.0",
        "compiler": "Build cuda_13.0.r13.0/compiler.36424714_0",
    },
)


def first_prompt(name: str, language: Language, kind: str) -> str:
    """The first prompt about a problem, with the default settings."""
    cpu = torch.device("cpu")
    problem = load_problem(name)
    info = H200 if kind == "gpu" else inform(cpu)
    facts = find_facts(problem, cpu).told(info, Options())
    (message,) = build_messages(problem, facts, [], Settings(language=language))
    return message.content


def row_of(name: str, language: Language, kind: str, prompt: str) -> Row:
    """Its tokens, and those of each section by heading."""
    quoted = lambda block: re.sub("^#", "=", block[0], flags=re.MULTILINE)  # noqa: E731
    blank = re.sub(r"```.*?```", quoted, prompt, flags=re.DOTALL)
    head, *sections = re.split(r"^# ", blank, flags=re.MULTILINE)
    parts = {"Opening": count_characters(head)}
    parts |= {text.partition("\n")[0]: count_characters(text) for text in sections}
    total = count_characters(prompt)
    return plain_row(f"{name} {language} {kind}", total, "tokens") | {"sections": parts}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="part of a problem's name")
    parser.add_argument("--print", action="store_true", help="the prompts themselves")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for name, language, kind in PROMPTS:
        if options.only not in name:
            continue
        try:
            prompt = first_prompt(name, language, kind)
        except ProblemError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        rows.append(row_of(name, language, kind, prompt))
        if options.print:
            print(f"{'=' * 30} {rows[-1]['name']}\n{prompt}\n")
        parts = ", ".join(f"{part} {count}" for part, count in rows[-1]["sections"].items())
        print(f"{rows[-1]['value']:5} {rows[-1]['name']}: {parts}", flush=True)
    if rows:
        print(f"{sum(row['value'] for row in rows) / len(rows):7.1f} mean of {len(rows)}")
    write_result(options.json, "cpu", inform(torch.device("cpu")).versions, rows)


if __name__ == "__main__":
    main()
