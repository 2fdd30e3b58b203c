"""What several tests of measurements share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchlint.verify.processes import Nurseries


@pytest.fixture(scope="session")
def nurseries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nurseries]:
    """A nursery whose processes run on the CPU: to import torch takes seconds."""
    with Nurseries(tmp_path_factory.mktemp("nurseries"), "cpu", most=1) as made:
        # At once, before a test changes the environment.
        made.get(0)
        yield made
