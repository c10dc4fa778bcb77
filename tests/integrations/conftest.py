"""All of these belong to `make test-all`: to import the frameworks alone takes 20 seconds."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "integrations" in item.path.parts:
            item.add_marker(pytest.mark.full)
