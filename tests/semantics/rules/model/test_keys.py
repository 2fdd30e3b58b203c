"""The names that modules have, against the torch that is installed."""

from __future__ import annotations

import pytest
from torch import nn

from torchlint.rules.model.modules_in_plain_list.keys import TAKEN_NAMES, may_be_key

PUBLIC = sorted(name for name in {*dir(nn.ModuleDict), *vars(nn.ModuleDict())} if not name.startswith("_"))


def test_every_name_of_a_container_is_taken() -> None:
    assert set(PUBLIC) <= TAKEN_NAMES


@pytest.mark.parametrize("key", ["head", "L1", "a-b", "0", "to_logits", "é"])
def test_free_keys_are_taken_by_torch(key: str) -> None:
    assert may_be_key(key)
    assert key in nn.ModuleDict({key: nn.Identity()})


@pytest.mark.parametrize("key", ["a.b", "", "forward", "type", "training"])
def test_other_keys_are_refused_by_torch(key: str) -> None:
    assert not may_be_key(key)
    with pytest.raises(KeyError):
        nn.ModuleDict({key: nn.Identity()})


@pytest.mark.parametrize("key", [0, None, "_modules"])
def test_what_is_no_name(key: object) -> None:
    assert not may_be_key(key)
