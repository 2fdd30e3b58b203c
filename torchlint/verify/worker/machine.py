"""What machine this is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import torch

from torchlint.verify.worker.device import Device

_PACKAGES = ("numpy", "torchvision", "transformers", "accelerate", "timm", "triton", "lightning")


def describe(device: Device) -> dict[str, Any]:
    """Return the fields of ``results.Machine``."""
    found: dict[str, Any] = {
        "device": device.kind,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory": _memory(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
    }
    if device.kind == "cuda":
        properties = torch.cuda.get_device_properties(0)
        found |= {
            "gpu": properties.name,
            "gpu_memory": properties.total_memory,
            "gpus": torch.cuda.device_count(),
            "cuda": torch.version.cuda or getattr(torch.version, "hip", None),
            "driver": _driver(),
        }
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _driver() -> str | None:
    import shutil
    import subprocess

    if shutil.which("nvidia-smi") is None:
        return None
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.split("\n")[0].strip() or None


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
