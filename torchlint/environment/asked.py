"""Run by the Python that is asked, whichever it is: prints as JSON what its torch says.

It stands alone, since torchlint need not be installed there; it needs Python 3.7 and nothing else.
"""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any


def describe(torch: Any) -> dict[str, Any]:
    """Return the fields of ``interpreter.Torch``."""
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    precision = getattr(torch, "get_float32_matmul_precision", None)
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "cudnn": _spelt(cudnn),
        "matmul": precision() if precision is not None else None,
        "threads": torch.get_num_threads(),
        "openmp": _openmp(),
        "devices": [_device(torch, number) for number in range(torch.cuda.device_count())],
    }


def _spelt(cudnn: int | None) -> str | None:
    # 8902 is 8.9.2, and since the ninth release 91002 is 9.10.2.
    if cudnn is None:
        return None
    major, rest = divmod(cudnn, 10000 if cudnn >= 90000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _device(torch: Any, number: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(number)
    bus = getattr(properties, "pci_bus_id", None)
    address = None
    if bus is not None:
        address = f"{properties.pci_domain_id:04x}:{bus:02x}:{properties.pci_device_id:02x}.0"
    return {
        "name": properties.name,
        "capability": None if getattr(torch.version, "hip", None) else [properties.major, properties.minor],
        "memory": properties.total_memory,
        "address": address,
    }


def _openmp() -> list[str]:
    try:
        text = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return sorted(set(re.findall(r"/(lib(?:gomp|iomp5|omp)[-.\w]*\.so[.\d]*)$", text, re.MULTILINE)))


def main() -> None:
    """Answer on standard output, in one line."""
    answer: dict[str, Any] = {"python": platform.python_version(), "torch": None, "problem": None}
    try:
        import torch
    except ImportError as error:
        # torch is there and cannot be loaded, or one of its own modules is missing.
        if getattr(error, "name", None) != "torch":
            answer["problem"] = f"torch cannot be imported: {error}"
    except Exception as error:
        answer["problem"] = f"torch cannot be imported: {error}"
    else:
        try:
            answer["torch"] = describe(torch)
        except Exception as error:
            answer["problem"] = f"torch {torch.__version__} failed: {error}"
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
