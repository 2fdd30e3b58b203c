"""``torchlint env`` on machines that are folders of files: what it reads, says and leaves unsaid."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import cli
from torchlint.commands import build, env
from torchlint.environment import advice
from torchlint.environment.advice import Row, Standing
from torchlint.environment.interpreter import Device, Interpreter, Torch, ask
from torchlint.environment.machine import machine
from torchlint.environment.processors import cpu_list, processors, spelt
from torchlint.environment.system import System

STATUS = "Name:\tpython\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{memory}\n"
GIB = 1 << 30


class Disk(System):
    """A file system whose ``/dev/shm`` has the size that a test wants."""

    shared: int | None = 16 * GIB

    def size(self, path: str) -> int | None:
        return self.shared


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def cpus(number: int, threads: int = 2) -> dict[str, str]:
    """The topology files of CPUs whose core's other thread is half the machine away."""
    cores = number // threads
    return {
        f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": ",".join(
            str(cpu % cores + cores * thread) for thread in range(threads)
        )
        for cpu in range(number)
    }


def desktop(root: Path) -> None:
    """One processor of Intel with eight cores, and no GPU."""
    write(root, {"/proc/self/status": STATUS.format(cpus="0-15", memory="0"), **cpus(16)})
    write(root, {"/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\n"})
    write(root, {"/sys/devices/system/node/node0/cpulist": "0-15\n", "/dev/shm/.keep": ""})
    write(
        root, {"/proc/self/cgroup": "0::/user.slice\n", "/sys/fs/cgroup/user.slice/cpu.max": "max 100000\n"}
    )


def server(root: Path) -> None:
    """Two sockets of 32 cores, and eight GPUs, four a socket."""
    write(root, {"/proc/self/status": STATUS.format(cpus="0-127", memory="0-1"), **cpus(128)})
    write(root, {"/proc/cpuinfo": "vendor_id\t: AuthenticAMD\n", "/dev/shm/.keep": ""})
    write(root, {"/sys/devices/system/node/node0/cpulist": "0-31,64-95"})
    write(root, {"/sys/devices/system/node/node1/cpulist": "32-63,96-127"})
    module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Fri Jan 24\n"
    write(root, {"/proc/driver/nvidia/version": module})
    for number in range(8):
        address = f"0000:{number:02x}:00.0"
        write(root, {f"/proc/driver/nvidia/gpus/{address}/information": "Model: \t\t NVIDIA A100\nIRQ: 1\n"})
        write(root, {f"/sys/bus/pci/devices/{address}/numa_node": str(number // 4)})


def torch(**said: object) -> Interpreter:
    known: dict[str, object] = {"version": "2.13.0", "threads": 8, "openmp": ("libgomp.so.1",)}
    return Interpreter("python3", "3.12.3", Torch(**{**known, **said}))  # type: ignore[arg-type]


A100 = tuple(Device("NVIDIA A100", (8, 0), 40 * GIB, f"0000:{number:02x}:00.0") for number in range(8))
NO_TORCH = Interpreter("python3", "3.12.3")

Look = Callable[..., dict[str, Row]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """The rows of a machine by subject: how it is built, who is asked, and what the environment holds."""

    def rows(
        build: Callable[[Path], None] | None,
        asked: Interpreter = NO_TORCH,
        environ: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> dict[str, Row]:
        if build is not None:
            build(tmp_path)
        write(tmp_path, files or {})
        return {row.subject: row for row in advice.rows(machine(Disk(tmp_path, environ or {}), asked))}

    return rows


# --- what is read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8,10-11", (0, 1, 2, 3, 8, 10, 11)), ("5", (5,)), ("", ()), ("0-", (0,)), ("a-b", ()), ("1,x", ())],
)
def test_cpu_lists(text: str, numbers: tuple[int, ...]) -> None:
    assert cpu_list(text) == numbers
    assert cpu_list(spelt(numbers)) == numbers


def test_cores_are_counted_among_the_cpus_that_may_be_used(tmp_path: Path) -> None:
    desktop(tmp_path)
    write(tmp_path, {"/proc/self/status": STATUS.format(cpus="0-3,8-9", memory="0")})
    found = processors(Disk(tmp_path, {}))
    assert (found.allowed, found.cores, found.quota) == ((0, 1, 2, 3, 8, 9), 4, None)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/cpu.max": "150000 100000"}, 1.5),
        # The tightest of the groups around it counts.
        (
            {
                "/proc/self/cgroup": "0::/a/b",
                "/sys/fs/cgroup/a/cpu.max": "400000 100000",
                "/sys/fs/cgroup/a/b/cpu.max": "800000 100000",
            },
            4.0,
        ),
        # In a container its own group is the root, whatever the path says.
        ({"/proc/self/cgroup": "0::/docker/12ab", "/sys/fs/cgroup/cpu.max": "200000 100000"}, 2.0),
        (
            {
                "/proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/x",
                "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "300000",
                "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
            },
            3.0,
        ),
        (
            {
                "/proc/self/cgroup": "4:cpu,cpuacct:/x",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            None,
        ),
        ({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ({}, None),
    ],
)
def test_limits_of_control_groups(tmp_path: Path, files: Mapping[str, str], quota: float | None) -> None:
    write(tmp_path, files)
    assert processors(Disk(tmp_path, {})).quota == quota


def test_gpus_of_the_driver_are_seen_without_torch(look: Look) -> None:
    rows = look(server)
    assert rows["GPUs"].now == "8 x NVIDIA A100"
    assert rows["NVIDIA driver"].now == "570.86.10"
    assert rows["float32 matmul"].standing is Standing.UNKNOWN


def test_nothing_readable_is_unknown_and_no_advice(look: Look) -> None:
    rows = look(None)
    assert all(row.advised is None for row in rows.values())
    unknown = {subject for subject, row in rows.items() if row.standing is Standing.UNKNOWN}
    assert unknown == set(rows) - {"GPU allocator", "OpenMP affinity", "Debug switches"}


def test_nothing_is_unknown_twice(look: Look) -> None:
    for row in look(desktop).values():
        assert row.now.count("unknown") <= 1


def test_every_piece_of_advice_has_its_reason_command_and_source(look: Look) -> None:
    rows = look(server, torch(cuda="13.0", devices=A100, matmul="highest", threads=64))
    rows |= {f"{name} on a desktop": row for name, row in look(desktop, torch()).items()}
    advised = [row for row in rows.values() if row.standing is Standing.ADVICE]
    assert len(advised) >= 8
    for row in advised:
        assert row.advised and row.why and row.command and row.source
        assert row.source.startswith("https://")
    for row in set(rows.values()) - set(advised):
        assert (row.advised, row.why, row.command, row.source) == (None,) * 4


# --- what is advised -------------------------------------------------------------------------------------

HOST = {"/proc/self/status": STATUS.format(cpus="0-15", memory="0")}


@pytest.mark.parametrize(
    ("build", "asked", "environ", "files", "subject", "advised", "command"),
    [
        # Bound to where the GPU is, by torchrun where there are several.
        (
            server,
            torch(cuda="12.8", devices=A100),
            {},
            {},
            "NUMA binding",
            "each process",
            "torchrun --numa-b",
        ),
        (server, torch(cuda="12.8", devices=A100[5:6]), {}, {}, "NUMA binding", "node 1", "--membind=1"),
        (server, torch(), {}, {}, "NUMA binding", "each process", "torchrun"),
        (
            *(server, torch(cuda="12.8", devices=A100), {}),
            *({"/proc/self/status": STATUS.format(cpus="32-63", memory="1")}, "NUMA binding", None, None),
        ),
        (desktop, torch(), {}, {}, "NUMA binding", None, None),
        # Threads: physical cores, shared by the GPUs, and never more than the container is granted.
        (desktop, torch(threads=8), {}, {}, "OpenMP threads", None, None),
        (desktop, torch(threads=16), {}, {}, "OpenMP threads", "8, the physical", "OMP_NUM_THREADS=8"),
        (desktop, torch(), {"OMP_NUM_THREADS": "12"}, {}, "OpenMP threads", "8, the", "OMP_NUM_THREADS=8"),
        (desktop, torch(), {"OMP_NUM_THREADS": "1"}, {}, "OpenMP threads", None, None),
        (desktop, torch(), {"OMP_NUM_THREADS": "4,2"}, {}, "OpenMP threads", None, None),
        (server, torch(threads=64), {}, {}, "OpenMP threads", "8, the physical cores", "OMP_NUM_THREADS=8"),
        (
            *(desktop, torch(threads=8), {}, {"/sys/fs/cgroup/cpu.max": "200000 100000"}),
            *("OpenMP threads", "2, the", "OMP_NUM_THREADS=2"),
        ),
        # What only matters where the CPU computes.
        (desktop, torch(), {}, {}, "OpenMP affinity", "one core per thread", 'GOMP_CPU_AFFINITY="0-15"'),
        (
            desktop,
            torch(openmp=("libiomp5.so",)),
            {},
            {},
            "OpenMP affinity",
            "one core",
            "KMP_AFFINITY=granularity",
        ),
        (desktop, torch(), {"KMP_AFFINITY": "compact"}, {}, "OpenMP affinity", None, None),
        (server, torch(), {}, {}, "OpenMP affinity", None, None),
        (desktop, torch(), {}, {}, "OpenMP library", "Intel's", "python3 -m pip install intel-openmp"),
        (desktop, torch(openmp=("libiomp5.so",)), {}, {}, "OpenMP library", None, None),
        (desktop, torch(), {"LD_PRELOAD": "/x/libiomp5.so"}, {}, "OpenMP library", None, None),
        (
            *(desktop, torch(), {}, {"/proc/cpuinfo": "vendor_id: AuthenticAMD"}),
            *("OpenMP library", None, None),
        ),
        (desktop, torch(), {}, {}, "Host allocator", "jemalloc", "apt-get install libjemalloc2"),
        (
            *(desktop, torch(), {}, {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2": ""}),
            *("Host allocator", "jemalloc", 'LD_PRELOAD="/usr/lib/x86_64-linux-gnu/libjemalloc.so.2'),
        ),
        (
            *(desktop, torch(), {"LD_PRELOAD": "/x/libtcmalloc.so.4"}, {}),
            *("Host allocator", None, None),
        ),
        (server, torch(), {}, {}, "Host allocator", None, None),
        # Workers: the CPUs that may be used, shared by the GPUs.
        (desktop, torch(), {}, {}, "Loader workers", "at most 16 workers", "workers = 8"),
        (server, torch(), {}, {}, "Loader workers", "at most 16 workers for each GPU", "workers = 8"),
        (
            *(desktop, torch(), {}, {"/sys/fs/cgroup/cpu.max": "150000 100000"}),
            *("Loader workers", "at most 1 worker", "workers = 1"),
        ),
        # The GPU.
        (server, torch(cuda="13.0", devices=A100), {}, {}, "NVIDIA driver", "580 or newer", "nvidia-smi"),
        (server, torch(cuda="12.8", devices=A100), {}, {}, "NVIDIA driver", None, None),
        (server, torch(), {}, {}, "PyTorch", "a build with CUDA", "pip install --force-reinstall torch"),
        (server, torch(cuda="12.8"), {}, {}, "PyTorch", "make the GPUs visible", "docker run --gpus all"),
        (
            *(server, torch(cuda="12.8"), {"CUDA_VISIBLE_DEVICES": ""}, {}),
            *("PyTorch", "make the GPUs visible", "unset CUDA_VISIBLE_DEVICES"),
        ),
        (desktop, torch(), {}, {}, "PyTorch", None, None),
        (
            server,
            torch(cuda="12.8", devices=A100, matmul="highest"),
            {},
            {},
            "float32 matmul",
            '"high"',
            "set_f",
        ),
        (server, torch(cuda="12.8", devices=A100, matmul="high"), {}, {}, "float32 matmul", None, None),
        (
            *(server, torch(cuda="12.8", devices=A100, matmul="high"), {"NVIDIA_TF32_OVERRIDE": "0"}, {}),
            *("float32 matmul", "let the program", "unset NVIDIA_TF32_OVERRIDE"),
        ),
        (
            *(server, torch(cuda="12.8", devices=(Device("V100", (7, 0)),), matmul="highest"), {}, {}),
            *("float32 matmul", None, None),
        ),
        (
            server,
            torch(cuda="12.8", devices=A100),
            {},
            {},
            "GPU allocator",
            "expandable",
            "expandable_segments:True",
        ),
        (
            *(server, torch(), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, {}),
            *("GPU allocator", None, None),
        ),
        (server, torch(), {"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}, {}, "GPU allocator", None, None),
        (
            *(server, torch(), {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, {}),
            *("GPU allocator", "caching allocator", "unset PYTORCH_NO_CUDA_MEMORY_CACHING"),
        ),
        (desktop, torch(), {}, {}, "GPU allocator", None, None),
        # Left on.
        (
            desktop,
            torch(),
            {"CUDA_LAUNCH_BLOCKING": "1"},
            {},
            "Debug switches",
            "off",
            "unset CUDA_LAUNCH_BLOCKING",
        ),
        (desktop, torch(), {"CUDA_LAUNCH_BLOCKING": "0"}, {}, "Debug switches", None, None),
        (
            *(desktop, torch(), {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, {}),
            *("Debug switches", "off", "unset TORCH_DISTRIBUTED_DEBUG"),
        ),
        (desktop, torch(), {"TORCH_DISTRIBUTED_DEBUG": "INFO"}, {}, "Debug switches", None, None),
    ],
)
def test_advice(
    look: Look,
    build: Callable[[Path], None],
    asked: Interpreter,
    environ: Mapping[str, str],
    files: Mapping[str, str],
    subject: str,
    advised: str | None,
    command: str | None,
) -> None:
    row = look(build, asked, environ, files)[subject]
    if advised is None or command is None:
        assert row.standing in (Standing.FACT, Standing.FINE), row
    else:
        assert row.standing is Standing.ADVICE
        assert advised in (row.advised or "") and command in (row.command or ""), row


@pytest.mark.parametrize(
    ("environ", "files", "container", "command"),
    [
        ({}, {}, "none detected", "remount,size=8G"),
        ({}, {"/.dockerenv": ""}, "Docker", "docker run --ipc=host"),
        ({}, {"/run/.containerenv": ""}, "Podman", "--ipc=host"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {}, "Kubernetes", "emptyDir"),
    ],
)
def test_little_shared_memory(
    look: Look,
    monkeypatch: pytest.MonkeyPatch,
    environ: Mapping[str, str],
    files: Mapping[str, str],
    container: str,
    command: str,
) -> None:
    monkeypatch.setattr(Disk, "shared", 64 << 20)
    rows = look(desktop, torch(), environ, files)
    assert rows["Container"].now == container
    assert rows["Shared memory"].now == "/dev/shm holds 64 MiB"
    assert command in (rows["Shared memory"].command or "")


# --- who is asked ----------------------------------------------------------------------------------------


def test_the_torch_of_this_interpreter_answers() -> None:
    import importlib.metadata

    answer = ask()
    assert answer.problem is None and answer.torch is not None
    assert answer.torch.version == importlib.metadata.version("torch")
    assert answer.torch.threads and answer.torch.matmul == "highest"


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], str]:
    """A Python that answers as a test wants it to."""

    def script(body: str) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!{sys.executable}\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return script


def test_a_python_without_torch(python: Callable[[str], str], look: Look) -> None:
    path = python('print(\'{"python": "3.11.2", "torch": null, "problem": null}\')')
    answer = ask(path)
    assert (answer.python, answer.torch, answer.problem) == ("3.11.2", None, None)
    assert look(desktop, answer)["PyTorch"].now == (
        f"unknown: not installed in {path}; use --python for another interpreter"
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("raise ImportError('no libc')", "ImportError: no libc"),
        ("print('hello')", "exit status 0"),
    ],
)
def test_a_python_that_breaks(python: Callable[[str], str], body: str, problem: str) -> None:
    answer = ask(python(body))
    assert (answer.torch, answer.problem) == (None, problem)


def test_a_torch_that_cannot_be_loaded(tmp_path: Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libcudart.so.12: cannot open')")
    answer = ask(environ={"PYTHONPATH": str(tmp_path)})
    assert answer.problem == "torch cannot be imported: libcudart.so.12: cannot open"


def test_the_working_directory_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert ask().problem is None


# --- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """The output of ``torchlint env`` with these arguments, on the server."""
    server(tmp_path)
    asked = torch(cuda="13.0", cudnn="9.10.2", devices=A100, matmul="highest")
    monkeypatch.setattr("torchlint.environment.interpreter.ask", lambda python: asked)
    monkeypatch.setattr("torchlint.environment.system.System", lambda: Disk(tmp_path, {}))

    def result(*arguments: str) -> str:
        group = build(cli._COMMANDS, cli._DEFAULT)
        answer = CliRunner().invoke(group, ["env", *arguments], catch_exceptions=False)
        assert answer.exit_code == 0, answer.output
        return answer.stdout

    return result


def test_the_table_numbers_its_advice(run: Callable[..., str]) -> None:
    output = run()
    table, *notes = output.split("\n\n")
    assert table.splitlines()[0].split() == ["Subject", "Now", "Advised"]
    assert "2.13.0, CUDA 13.0, cuDNN 9.10.2" in table
    assert "8 x NVIDIA A100 (40 GiB)" in table
    for number, note in enumerate(notes, 1):
        assert note.startswith(f"[{number}] ") and f"[{number}]" in table
        assert "https://" in note.splitlines()[2]
    assert len(notes) >= 5
    assert "\x1b" not in output


def test_json_holds_every_row(run: Callable[..., str]) -> None:
    answer = json.loads(run("--output-format", "json"))
    assert [row["subject"] for row in answer["rows"]][:4] == ["Container", "GPUs", "NVIDIA driver", "PyTorch"]
    driver = answer["rows"][2]
    assert (driver["standing"], driver["advised"]) == ("advice", "580 or newer")
    assert set(driver) == {"subject", "now", "standing", "advised", "why", "command", "source"}


def test_an_interpreter_that_is_none_is_an_error(tmp_path: Path) -> None:
    group = build(cli._COMMANDS, cli._DEFAULT)
    answer = CliRunner().invoke(group, ["env", "--python", str(tmp_path / "missing")])
    assert answer.exit_code == 2
    assert "it cannot be started: No such file or directory" in answer.stderr


def test_the_help_says_that_nothing_is_changed() -> None:
    assert env.command.help is not None and "Nothing is changed" in env.command.help
