"""What is set on a machine, what is advised, why, and the command that does it: one row a subject.

Each function judges one subject and says where the advice comes from. A row without advice is a fact; what
could not be read is said to be unknown, with the reason. No row promises a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from torchlint.environment.machine import Machine
from torchlint.environment.processors import spelt

TUNING_GUIDE = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
CUDA_NOTES = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
NUMA = "https://docs.pytorch.org/docs/stable/elastic/numa.html"
COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
DOCKER = "https://github.com/pytorch/pytorch#docker-image"
DEBUGGING = "https://docs.pytorch.org/docs/stable/cuda_environment_variables.html"
DISTRIBUTED_DEBUGGING = (
    "https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications"
)
INSTALLING = "https://pytorch.org/get-started/locally/"
NOT_LINUX = "requires /proc and /sys, which this system does not have"

_OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
"""The first driver branch that runs programs built with a major release of CUDA (COMPATIBILITY)."""

_ROOMY = 1 << 30
"""Bytes of shared memory below which a few workers with batches of images run out of it; Docker gives a
sixteenth of that."""


class Standing(Enum):
    """What a row says: a fact, a setting that is as advised, advice, or that nothing is known."""

    FACT = "fact"
    FINE = "fine"
    ADVICE = "advice"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One subject: ``now`` is what is set, and the rest is None unless something is advised."""

    subject: str
    now: str
    standing: Standing = Standing.FACT
    advised: str | None = None
    why: str | None = None
    command: str | None = None
    source: str | None = None


def rows(machine: Machine) -> Iterator[Row]:
    """Yield all rows about a machine, in the order of the table."""
    for subject in _SUBJECTS:
        yield subject(machine)


def _unknown(subject: str, reason: str) -> Row:
    return Row(subject, f"unknown: {reason}", Standing.UNKNOWN)


# --- what there is ---------------------------------------------------------------------------------------


def _container(machine: Machine) -> Row:
    if not machine.linux:
        return _unknown("Container", NOT_LINUX)
    return Row("Container", machine.container or "none detected")


def _gpus(machine: Machine) -> Row:
    if machine.gpus is None:
        reason = "unknown without a torch that detects GPUs" if machine.linux else NOT_LINUX
        return _unknown("GPUs", reason)
    counts: dict[str, int] = {}
    for gpu in machine.gpus:
        name = gpu.name if gpu.memory is None else f"{gpu.name} ({gpu.memory / 2**30:.0f} GiB)"
        counts[name] = counts.get(name, 0) + 1
    text = ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())
    return Row("GPUs", text or "none found")


def _torch(machine: Machine) -> Row:
    subject, asked = "PyTorch", machine.interpreter
    if asked.torch is None:
        if asked.problem is not None:
            return _unknown(subject, asked.problem)
        return _unknown(subject, f"not installed in {asked.path}; use --python for another interpreter")
    torch = asked.torch
    built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPU only"
    now = f"{torch.version}, {built}" + (f", cuDNN {torch.cudnn}" if torch.cudnn else "")
    if machine.driver is not None and not torch.cuda:
        return Row(
            subject,
            now,
            Standing.ADVICE,
            "a build with CUDA",
            "the machine has an NVIDIA driver that this build cannot use",
            f"{asked.path} -m pip install --force-reinstall torch",
            INSTALLING,
        )
    if torch.cuda and machine.gpus and not torch.devices:
        return Row(
            subject,
            f"{now}, finds no GPU",
            Standing.ADVICE,
            "make the GPUs visible",
            "CUDA_VISIBLE_DEVICES or the container hides GPUs from torch",
            "unset CUDA_VISIBLE_DEVICES"
            if "CUDA_VISIBLE_DEVICES" in machine.environ
            else "docker run --gpus all …",
            CUDA_NOTES,
        )
    return Row(subject, now)


def _driver(machine: Machine) -> Row:
    subject = "NVIDIA driver"
    if machine.driver is None:
        if machine.gpus == ():
            return Row(subject, "none found")
        return _unknown(subject, "the driver version cannot be read" if machine.linux else NOT_LINUX)
    torch = machine.interpreter.torch
    if torch is None or not torch.cuda:
        return Row(subject, machine.driver)
    oldest = _OLDEST_DRIVER.get(int(torch.cuda.split(".")[0]))
    if oldest is not None and int(machine.driver.split(".")[0]) < oldest:
        return Row(
            subject,
            machine.driver,
            Standing.ADVICE,
            f"{oldest} or newer",
            f"programs built with CUDA {torch.cuda} require this driver",
            f"nvidia-smi  # shows the driver; install branch {oldest} or newer from your distribution",
            COMPATIBILITY,
        )
    return Row(subject, machine.driver, Standing.FINE if oldest is not None else Standing.FACT)


# --- precision and memory of the GPU ---------------------------------------------------------------------


def _matmul(machine: Machine) -> Row:
    subject = "float32 matmul"
    capability = _capability(machine)
    if capability is None:
        return _no_capability(machine, subject)
    torch = machine.interpreter.torch
    assert torch is not None
    if capability < (8, 0):
        return Row(subject, "not supported by the GPU")
    if machine.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        return Row(
            subject,
            "NVIDIA_TF32_OVERRIDE=0 disables TF32",
            Standing.ADVICE,
            "let the program decide",
            "float32 matmuls never use tensor cores, whatever the program sets",
            "unset NVIDIA_TF32_OVERRIDE",
            CUDA_NOTES,
        )
    if torch.matmul is None:
        return _unknown(subject, f"not available in torch {torch.version}")
    if torch.matmul != "highest":
        return Row(subject, f'"{torch.matmul}" in a new process', Standing.FINE)
    return Row(
        subject,
        'full precision ("highest") in a new process',
        Standing.ADVICE,
        '"high", if training tolerates it',
        "full-precision float32 matmuls do not use tensor cores; measure it with `torchlint bench TL502`",
        'torch.set_float32_matmul_precision("high")  # in the program',
        CUDA_NOTES,
    )


def _half(machine: Machine) -> Row:
    subject = "Mixed precision"
    capability = _capability(machine)
    if capability is None:
        return _no_capability(machine, subject)
    if capability >= (8, 0):
        return Row(subject, "tensor cores for bfloat16 and float16; bfloat16 needs no GradScaler")
    if capability >= (7, 0):
        return Row(subject, "tensor cores for float16, which needs a GradScaler, but not for bfloat16")
    return Row(subject, "no tensor cores")


def _no_capability(machine: Machine, subject: str) -> Row:
    if machine.gpus == ():
        return Row(subject, "no GPU")
    return _unknown(subject, "unknown without a torch that detects an NVIDIA GPU")


def _capability(machine: Machine) -> tuple[int, int] | None:
    """Return the lowest capability among the GPUs that torch sees."""
    known = [gpu.capability for gpu in machine.gpus or () if gpu.capability is not None]
    return min(known, default=None)


def _gpu_memory(machine: Machine) -> Row:
    subject = "GPU allocator"
    if machine.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        return Row(
            subject,
            "PYTORCH_NO_CUDA_MEMORY_CACHING is set",
            Standing.ADVICE,
            "caching allocator",
            "without the caching allocator, every allocation calls the driver, and freeing synchronizes",
            "unset PYTORCH_NO_CUDA_MEMORY_CACHING",
            DEBUGGING,
        )
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    given = {name: machine.environ[name] for name in names if machine.environ.get(name)}
    now = ", ".join(f"{name}={value}" for name, value in given.items()) or "the default of torch"
    if not machine.gpus:
        return Row(subject, now)
    if any("expandable_segments:True" in value for value in given.values()):
        return Row(subject, now, Standing.FINE)
    if given:
        return Row(subject, now)
    # Every release reads this name; some of those that know the newer one overlook this option in it.
    return Row(
        subject,
        now,
        Standing.ADVICE,
        "expandable segments, if batch sizes vary",
        "segments that can grow reduce fragmentation",
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        f"{CUDA_NOTES}#optimizing-memory-usage-with-pytorch-alloc-conf",
    )


# --- processors ------------------------------------------------------------------------------------------


def _numa(machine: Machine) -> Row:
    subject, cpus = "NUMA binding", machine.processors
    if not cpus.nodes or not cpus.allowed:
        return _unknown(subject, "NUMA nodes cannot be read" if machine.linux else NOT_LINUX)
    if len(cpus.nodes) == 1:
        return Row(subject, "one node")
    used = cpus.used_nodes
    if len(used) == 1:
        return Row(subject, f"bound to the CPUs of node {used[0]}, of {len(cpus.nodes)}", Standing.FINE)
    now = f"not bound; may run on nodes {spelt(used)}"
    nodes = {gpu.node for gpu in machine.gpus or () if gpu.node is not None}
    if machine.gpus and len(machine.gpus) > 1:
        command = "torchrun --numa-binding=node --nproc-per-node=gpu train.py  # torch 2.9 or newer"
        return Row(subject, now, Standing.ADVICE, "each process on the node of its GPU", _FAR, command, NUMA)
    node = min(nodes & set(used), default=used[0])
    return Row(
        subject,
        now,
        Standing.ADVICE,
        f"node {node}, where the GPU is" if nodes else f"one node, such as {node}",
        _FAR,
        f"numactl --cpunodebind={node} --membind={node} python train.py",
        f"{TUNING_GUIDE}#utilize-non-uniform-memory-access-numa-controls",
    )


_FAR = "memory of another node is slower to access, for CPUs and for copies to the GPU"


def _threads(machine: Machine) -> Row:
    subject, cpus = "OpenMP threads", machine.processors
    # A list of numbers is for nested regions, of which PyTorch has none: the first counts.
    given = machine.environ.get("OMP_NUM_THREADS", "").partition(",")[0] or None
    torch = machine.interpreter.torch
    threads = torch.threads if torch is not None else None
    if given is not None:
        now = f"OMP_NUM_THREADS={given}"
    else:
        now = "OMP_NUM_THREADS is not set" + (f"; torch uses {threads}" if threads is not None else "")
    cores = cpus.usable_cores
    if cores is None:
        reason = "the number of cores cannot be read" if machine.linux else NOT_LINUX
        return Row(subject, f"{now}; {reason}", Standing.UNKNOWN)
    number = threads if given is None else int(given) if given.isdecimal() else None
    if number is None:
        return Row(subject, f"{now}; what torch uses is unknown", Standing.UNKNOWN)
    several = len(machine.gpus or ()) > 1
    share = max(1, cores // len(machine.gpus)) if machine.gpus else cores
    if number <= share:
        return Row(subject, now, Standing.FINE)
    return Row(
        subject,
        now,
        Standing.ADVICE,
        f"{share}, the physical cores{' for each GPU' if several else ''}",
        "more threads than cores slow each other down"
        + (", and the processes of several GPUs share the cores" if several else ""),
        f"export OMP_NUM_THREADS={share}",
        f"{TUNING_GUIDE}#utilize-openmp",
    )


def _affinity(machine: Machine) -> Row:
    subject = "OpenMP affinity"
    names = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_BLOCKTIME", "OMP_PROC_BIND", "OMP_PLACES")
    given = [f"{name}={machine.environ[name]}" for name in names if machine.environ.get(name)]
    if given:
        return Row(subject, ", ".join(given), Standing.FINE)
    if not _computes_on_cpu(machine):
        return Row(subject, "not set; only matters for computation on the CPU")
    torch, cpus = machine.interpreter.torch, machine.processors
    libraries = torch.openmp if torch is not None else ()
    if not libraries or not cpus.allowed:
        return _unknown(subject, "not set; the OpenMP library is that of torch")
    if any("iomp" in name for name in libraries):
        command = "export KMP_AFFINITY=granularity=fine,compact,1,0 KMP_BLOCKTIME=1"
    else:
        command = f'export GOMP_CPU_AFFINITY="{spelt(cpus.allowed)}"'
    return Row(
        subject,
        f"not set; torch loads {', '.join(libraries)}",
        Standing.ADVICE,
        "one core per thread",
        "threads lose their caches when they move between cores",
        command,
        f"{TUNING_GUIDE}#utilize-openmp",
    )


def _openmp(machine: Machine) -> Row:
    subject, torch = "OpenMP library", machine.interpreter.torch
    preloaded = [path for path in machine.preloaded if "iomp" in path]
    if preloaded:
        return Row(subject, f"{preloaded[0]} is preloaded", Standing.FINE)
    if torch is None or not torch.openmp:
        return _unknown(subject, "depends on torch")
    now = ", ".join(torch.openmp)
    if machine.processors.vendor != "GenuineIntel" or not _computes_on_cpu(machine) or "iomp" in now:
        return Row(subject, now)
    return Row(
        subject,
        now,
        Standing.ADVICE,
        "Intel's, on this processor",
        "libiomp5 is optimized for Intel processors and can keep its threads active between operations",
        f"{machine.interpreter.path} -m pip install intel-openmp && export LD_PRELOAD="
        "\"$(python -c 'import sys; print(sys.prefix)')/lib/libiomp5.so${LD_PRELOAD:+:$LD_PRELOAD}\"",
        f"{TUNING_GUIDE}#intel-openmp-runtime-library-libiomp",
    )


def _allocator(machine: Machine) -> Row:
    subject = "Host allocator"
    preloaded = [path for path in machine.preloaded if "jemalloc" in path or "tcmalloc" in path]
    if preloaded:
        return Row(subject, f"{preloaded[0]} is preloaded", Standing.FINE)
    if not machine.linux:
        return _unknown(subject, NOT_LINUX)
    now = "malloc of the C library"
    if not _computes_on_cpu(machine):
        return Row(subject, f"{now}; only matters for computation on the CPU")
    found = next(iter(machine.libraries), None)
    command = "apt-get install libjemalloc2  # or your distribution's package; then run this again"
    if found is not None:
        command = f'export LD_PRELOAD="{found}${{LD_PRELOAD:+:$LD_PRELOAD}}"'
    return Row(
        subject,
        now,
        Standing.ADVICE,
        "jemalloc or tcmalloc",
        "they reuse freed memory instead of returning it to the system",
        command,
        f"{TUNING_GUIDE}#switch-memory-allocator",
    )


def _computes_on_cpu(machine: Machine) -> bool:
    return machine.gpus == ()


# --- data ------------------------------------------------------------------------------------------------


def _workers(machine: Machine) -> Row:
    subject, usable = "Loader workers", machine.processors.usable
    if usable is None:
        return _unknown(subject, "the number of usable CPUs cannot be read" if machine.linux else NOT_LINUX)
    quota = machine.processors.quota
    limit = f", limited to {quota:g} by its control group" if quota is not None else ""
    now = f"{len(machine.processors.allowed)} CPUs{limit}"
    gpus = len(machine.gpus or ())
    share = max(1, usable // max(1, gpus))
    return Row(
        subject,
        now,
        Standing.ADVICE,
        f"at most {share} {'workers' if share > 1 else 'worker'}{' for each GPU' if gpus > 1 else ''}",
        "more workers than usable CPUs slow each other down; try fewer first",
        f"[tool.torchlint]  workers = {min(share, 8)}  # for fixes of TL101, in pyproject.toml",
        f"{TUNING_GUIDE}#enable-asynchronous-data-loading-and-augmentation",
    )


def _shared_memory(machine: Machine) -> Row:
    subject = "Shared memory"
    if machine.shared is None:
        return _unknown(subject, "/dev/shm does not exist" if machine.linux else NOT_LINUX)
    now = f"/dev/shm holds {_size(machine.shared)}"
    if machine.shared >= _ROOMY:
        return Row(subject, now, Standing.FINE)
    command = {
        None: "sudo mount -o remount,size=8G /dev/shm",
        "Kubernetes": "mount an emptyDir with medium: Memory at /dev/shm",
    }.get(machine.container, "docker run --ipc=host …  # or --shm-size=8g")
    return Row(
        subject,
        now,
        Standing.ADVICE,
        "several GiB",
        "loader workers pass batches through it, and die with a bus error when it is full",
        command,
        DOCKER,
    )


# --- left on ---------------------------------------------------------------------------------------------

_SLOWING: tuple[tuple[str, Callable[[str], bool], str, str], ...] = (
    ("CUDA_LAUNCH_BLOCKING", lambda value: value == "1", "every kernel launch is synchronous", DEBUGGING),
    ("AMD_SERIALIZE_KERNEL", lambda value: value in "123", "every kernel launch is synchronous", DEBUGGING),
    (
        "TORCH_DISTRIBUTED_DEBUG",
        lambda value: value.upper() == "DETAIL",
        "every collective is verified across ranks",
        DISTRIBUTED_DEBUGGING,
    ),
)


def _debugging(machine: Machine) -> Row:
    subject = "Debug switches"
    for name, slows, why, source in _SLOWING:
        value = machine.environ.get(name, "")
        if value and slows(value):
            return Row(subject, f"{name}={value}", Standing.ADVICE, "off", why, f"unset {name}", source)
    return Row(subject, "none that slows down a run", Standing.FINE)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


_SUBJECTS: tuple[Callable[[Machine], Row], ...] = (
    *(_container, _gpus, _driver, _torch, _matmul, _half, _gpu_memory),
    *(_numa, _threads, _affinity, _openmp, _allocator, _workers, _shared_memory, _debugging),
)
