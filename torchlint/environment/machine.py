"""The facts about a machine that PyTorch programs depend on, as far as they can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchlint.environment.interpreter import Interpreter
from torchlint.environment.processors import Processors, processors
from torchlint.environment.system import System


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its NUMA ``node``, CUDA ``capability`` and ``memory`` in bytes where they are known."""

    name: str
    address: str | None = None
    node: int | None = None
    capability: tuple[int, int] | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, seen from one process.

    ``gpus`` is None where nothing tells whether there are any. ``driver`` is that of NVIDIA. ``shared``
    is the size of ``/dev/shm`` in bytes. ``preloaded`` are the libraries in LD_PRELOAD, ``libraries``
    those allocators on disk that could be. ``container`` names what runs this process.
    """

    linux: bool
    processors: Processors
    gpus: tuple[Gpu, ...] | None
    driver: str | None
    shared: int | None
    container: str | None
    preloaded: tuple[str, ...]
    libraries: tuple[str, ...]
    environ: Mapping[str, str]
    interpreter: Interpreter


def machine(system: System, interpreter: Interpreter) -> Machine:
    """Read what the system shows, and join it with what the interpreter's torch says."""
    return Machine(
        linux=system.exists("/proc/self/status"),
        processors=processors(system),
        gpus=_gpus(system, interpreter),
        driver=_driver(system),
        shared=system.size("/dev/shm") if system.exists("/dev/shm") else None,
        container=_container(system),
        preloaded=tuple(filter(None, re.split(r"[\s:]+", system.environ.get("LD_PRELOAD", "")))),
        libraries=tuple(_allocators(system)),
        environ=system.environ,
        interpreter=interpreter,
    )


def _gpus(system: System, interpreter: Interpreter) -> tuple[Gpu, ...] | None:
    """Return the GPUs that torch sees, else those of which NVIDIA's driver tells."""
    if interpreter.torch is not None and interpreter.torch.devices:
        return tuple(
            Gpu(
                device.name,
                device.address,
                _node(system, device.address),
                device.capability,
                device.memory,
            )
            for device in interpreter.torch.devices
        )
    folder = "/proc/driver/nvidia/gpus"
    found = []
    for address in system.names(folder):
        told = re.search(
            r"^Model:\s*(.+)$", system.read(f"{folder}/{address}/information") or "", re.MULTILINE
        )
        found.append(Gpu(told[1] if told else "NVIDIA GPU", address, _node(system, address)))
    if found:
        return tuple(found)
    if system.names("/sys/class/kfd/kfd/topology/nodes") or system.exists("/dev/nvidiactl"):
        return None
    return () if system.names("/proc") else None


def _node(system: System, address: str | None) -> int | None:
    if address is None:
        return None
    # The kernel writes bus addresses in small letters, and -1 where the firmware does not tell.
    text = system.read(f"/sys/bus/pci/devices/{address.lower()}/numa_node") or ""
    return int(text) if text.isdecimal() else None


def _driver(system: System) -> str | None:
    told = re.search(
        r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", system.read("/proc/driver/nvidia/version") or ""
    )
    if told:
        return told[1]
    return system.read("/sys/module/nvidia/version")


def _container(system: System) -> str | None:
    if "KUBERNETES_SERVICE_HOST" in system.environ:
        return "Kubernetes"
    if system.exists("/.dockerenv"):
        return "Docker"
    if system.exists("/run/.containerenv"):
        return "Podman"
    if "APPTAINER_CONTAINER" in system.environ or "SINGULARITY_CONTAINER" in system.environ:
        return "Apptainer"
    return None


def _allocators(system: System) -> Iterator[str]:
    """Yield the paths of jemalloc and tcmalloc, where distributions and conda put them."""
    folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib"]
    if prefix := system.environ.get("CONDA_PREFIX"):
        folders.append(f"{prefix}/lib")
    for folder in folders:
        for name in ("jemalloc", "tcmalloc"):
            # Debian has a folder for each architecture in between.
            for pattern in (f"lib{name}.so*", f"*-linux-gnu*/lib{name}.so*"):
                yield from system.matching(folder, pattern)
