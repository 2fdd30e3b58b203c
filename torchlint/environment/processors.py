"""The CPUs that this process may use: its affinity, the limits of its control groups, and the NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from torchlint.environment.system import System


@dataclass(frozen=True, slots=True)
class Processors:
    """CPUs by their numbers; None and empty where nothing could be read.

    ``allowed`` are those of the affinity of the process, ``cores`` how many physical cores these are,
    ``quota`` how many CPUs' worth of time the control groups grant, ``nodes`` the NUMA nodes with the CPUs
    of each, ``memory`` the nodes from which memory may come.
    """

    vendor: str | None
    allowed: tuple[int, ...]
    cores: int | None
    quota: float | None
    nodes: tuple[tuple[int, tuple[int, ...]], ...]
    memory: tuple[int, ...]

    @property
    def usable(self) -> int | None:
        """How many CPUs the process can keep busy."""
        if not self.allowed:
            return None
        return min(len(self.allowed), self._granted)

    @property
    def usable_cores(self) -> int | None:
        """How many physical cores the process can keep busy."""
        return min(self.cores, self._granted) if self.cores is not None else None

    @property
    def used_nodes(self) -> tuple[int, ...]:
        """The NUMA nodes on whose CPUs the process may run."""
        return tuple(node for node, cpus in self.nodes if set(cpus) & set(self.allowed))

    @property
    def _granted(self) -> int:
        return max(1, int(self.quota)) if self.quota is not None else 1 << 20


def processors(system: System) -> Processors:
    """Return what the system says of its CPUs."""
    status = _fields(system.read("/proc/self/status") or "")
    allowed = cpu_list(status.get("Cpus_allowed_list", ""))
    return Processors(
        vendor=_fields(system.read("/proc/cpuinfo") or "").get("vendor_id"),
        allowed=allowed,
        cores=_cores(system, allowed),
        quota=_quota(system),
        nodes=tuple(_nodes(system)),
        memory=cpu_list(status.get("Mems_allowed_list", "")),
    )


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the numbers of a list as the kernel writes it: ``0-3,8,10-11``; empty if it is no such list."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return ()
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)


def spelt(numbers: tuple[int, ...]) -> str:
    """Return numbers as the kernel writes a list of them; the inverse of ``cpu_list``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _fields(text: str) -> dict[str, str]:
    """Return ``key: value`` lines; of a repeated key the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def _cores(system: System, allowed: tuple[int, ...]) -> int | None:
    siblings = {
        system.read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in allowed
    }
    return len(siblings) if siblings and None not in siblings else None


def _nodes(system: System) -> Iterator[tuple[int, tuple[int, ...]]]:
    folder = "/sys/devices/system/node"
    numbers = sorted(
        int(name[4:]) for name in system.names(folder) if name[:4] == "node" and name[4:].isdecimal()
    )
    for number in numbers:
        yield number, cpu_list(system.read(f"{folder}/node{number}/cpulist") or "")


def _quota(system: System) -> float | None:
    """Return the tightest limit on CPU time among the control groups of the process, in CPUs."""
    limits = []
    for line in (system.read("/proc/self/cgroup") or "").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            for folder in _upwards("/sys/fs/cgroup", path):
                limits.append(_limit(*(system.read(f"{folder}/cpu.max") or "").split()[:2]))
        elif "cpu" in controllers.split(","):
            for mount in (f"/sys/fs/cgroup/{controllers}", "/sys/fs/cgroup/cpu"):
                for folder in _upwards(mount, path):
                    quota = system.read(f"{folder}/cpu.cfs_quota_us")
                    period = system.read(f"{folder}/cpu.cfs_period_us")
                    limits.append(_limit(quota or "", period or ""))
    return min((limit for limit in limits if limit is not None), default=None)


def _upwards(mount: str, path: str) -> Iterator[str]:
    """Yield the folders of a control group and of those around it.

    In a container the path may be the one outside of it, while the container's own group is mounted as
    the root; so the root is always among them.
    """
    inner = PurePosixPath(path)
    for group in (inner, *inner.parents):
        yield f"{mount}{group}".rstrip("/")


def _limit(quota: str = "", period: str = "") -> float | None:
    """Return the CPUs granted by so many microseconds in a period; None for no limit (``max`` or -1)."""
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return int(quota) / int(period)
