import pytest
from huggingface_hub import constants

from kevin_env.hub import cache_if_offline


@pytest.mark.parametrize(
    ("endpoint", "offline"), [("https://nowhere.invalid", True), ("http://127.0.0.1:9", False)]
)
def test_without_a_network_only_the_cache_is_asked(
    endpoint: str, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    before = constants.HF_HUB_OFFLINE
    with cache_if_offline():
        assert constants.HF_HUB_OFFLINE is offline
    assert constants.HF_HUB_OFFLINE is before
