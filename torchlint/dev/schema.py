"""The JSON schema of the configuration, which is shipped beside `torchlint.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torchlint import schema
from torchlint.dev import ROOT
from torchlint.registry import catalogue

PATH = ROOT / "torchlint" / schema.FILE_NAME


def generate() -> Mapping[Path, str]:
    """Return the schema of the options as they are now."""
    return {PATH: schema.render(catalogue())}
