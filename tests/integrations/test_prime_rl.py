"""The example's configuration as prime-rl's own package of configurations reads it."""

# pyright: reportMissingImports=false
# It needs Python 3.12 and is not on the package index.

import sys
import tomllib

import pytest

pytest.importorskip("prime_rl.configs.rl", reason="prime-rl-configs is not installed")

from prime_rl.configs.rl import RLConfig
from tiny_models import ROOT

from kevin_env.integrations.verifiers import KernelEnvConfig

sys.path.append(str(ROOT / "environments" / "kevin_vf"))


def test_prime_rl_takes_the_configuration() -> None:
    given = tomllib.loads((ROOT / "examples" / "train_prime_rl.toml").read_text())
    config = RLConfig(**given)
    (source,) = config.orchestrator.train.source
    assert isinstance(source.env, KernelEnvConfig)
    assert source.env.taskset.problems == "train"
    assert (source.env.settings.max_turns, source.group_size) == (4, 16)
    room = source.env.settings.context_tokens + source.sampling.max_completion_tokens
    assert config.trainer.model.seq_len == config.orchestrator.seq_len == room
