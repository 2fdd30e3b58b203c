"""Results that nobody measured, made from a seed: every verdict and outcome, as both commands give them.

The numbers are plausible, not derived: block times are drawn, verdicts are given, and nothing here uses the
statistics of the harness.
"""

from __future__ import annotations

import difflib
import math
import random
from dataclasses import dataclass, replace

from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    AppliedFix,
    Block,
    Comparison,
    Evidence,
    Examination,
    Interval,
    Line,
    Machine,
    Measurement,
    Noise,
    Results,
    Sameness,
    Slice,
    SyncPhase,
    SyncReport,
    SyncRow,
    SyncStatus,
    Timeline,
    Total,
    Track,
    TrackKind,
    Variant,
    Verdict,
)

H200 = Machine(
    device="cuda",
    gpu="NVIDIA H200",
    gpu_memory=150_754_820_096,
    driver="570.124.06",
    cuda="13.0",
    torch="2.11.0+cu130",
    python="3.12.11",
    platform="Linux-6.8.0-x86_64-with-glibc2.39",
    processor="INTEL(R) XEON(R) PLATINUM 8581C",
    cores=16,
    memory=137_438_953_472,
    packages={"numpy": "2.3.1", "triton": "3.6.0", "torchvision": "0.26.0"},
)
LAPTOP = Machine(device="cpu", torch="2.13.0+cpu", python="3.11.2", platform="Linux", cores=2)

GIB = 1024**3

SCRIPT = '''\
"""Trains an image classifier."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(64)
        self.head = nn.Linear(64, classes)

    def forward(self, images):
        x = torch.relu(self.norm1(self.conv1(images)))
        return self.head(x.mean((2, 3)))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    data = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    total = 0.0
    for epoch in range(10):
        for images, labels in loader:
            noise = torch.randn(images.shape).to(device)
            images = images.to(device, non_blocking=True) + 0.1 * noise
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=False)
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
            if loss > 100:
                raise RuntimeError("diverged")
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
'''

_EDITS: dict[str, tuple[str, str, str, str, str]] = {
    "TL201": (
        "tensor-created-on-host",
        "Create the tensor on the device",
        "unsafe",
        "torch.randn(images.shape).to(device)",
        "torch.randn(images.shape, device=device)",
    ),
    "TL202": (
        "item-in-hot-loop",
        "Accumulate the tensor, and read it after the loop",
        "safe",
        "total += loss.item()",
        "total += loss.detach()",
    ),
    "TL302": (
        "grad-zeroed-in-place",
        "Set the gradients to None",
        "safe",
        "optimizer.zero_grad(set_to_none=False)",
        "optimizer.zero_grad()",
    ),
    "TL401": (
        "bias-before-batch-norm",
        "Leave the bias out",
        "safe",
        "nn.Conv2d(3, 64, 3, padding=1)",
        "nn.Conv2d(3, 64, 3, padding=1, bias=False)",
    ),
}


@dataclass
class Draft:
    """What one variant is to look like."""

    name: str
    codes: tuple[str, ...]
    verdict: Verdict
    ratio: float = 1.0
    agreement: Agreement = Agreement.IDENTICAL
    reason: str = ""
    memory: float = 1.0
    syncs: float | None = 2.0
    kernels: float | None = 212.0
    remaining: tuple[Line, ...] = ()
    failure: str | None = None
    half: float = 0.012


def applied(codes: tuple[str, ...], file: str = "train.py", text: str = SCRIPT) -> tuple[AppliedFix, ...]:
    """The fixes of some rules in the example script."""
    fixes = []
    for code in codes:
        name, message, grade, old, _ = _EDITS[code]
        row = text[: text.index(old)].count("\n") + 1
        fixes.append(AppliedFix(code, name, message, grade, file, row))
    return tuple(fixes)


def diff(codes: tuple[str, ...], file: str = "train.py", text: str = SCRIPT) -> str:
    """What the fixes of some rules change in the example script."""
    fixed = text
    for code in codes:
        fixed = fixed.replace(_EDITS[code][3], _EDITS[code][4])
    lines = difflib.unified_diff(
        text.splitlines(keepends=True), fixed.splitlines(keepends=True), f"a/{file}", f"b/{file}"
    )
    return "".join(lines)


def row(snippet: str, text: str = SCRIPT) -> int:
    """The line of the example script that contains ``snippet``."""
    return text[: text.index(snippet)].count("\n") + 1


def blocks(
    random_: random.Random,
    step: float,
    ratios: dict[str, float],
    *,
    replicates: int = 5,
    rounds: int = 12,
    steps: int = 20,
    spread: float = 0.01,
) -> tuple[Block, ...]:
    """Interleaved blocks: a level for each process, a slow drift, a little noise, some disturbances."""
    found = []
    for replicate in range(replicates):
        levels = {name: random_.gauss(0, spread / 3) for name in ratios}
        for number in range(rounds):
            order = list(ratios)
            random_.shuffle(order)
            drift = 0.006 * math.sin(number / 4 + replicate)
            for position, name in enumerate(order):
                noise = abs(random_.gauss(0, spread)) + (0.08 if random_.random() < 0.02 else 0)
                wall = step / ratios[name] * math.exp(levels[name] + drift + noise) * steps
                throttled = random_.random() < 0.01
                found.append(
                    Block(
                        name,
                        replicate,
                        number,
                        position,
                        steps,
                        wall * (1.1 if throttled else 1),
                        wall * 0.93,
                        1755 if throttled else 1980,
                        "the clock fell from 1980 to 1755 MHz" if throttled else None,
                    )
                )
    return tuple(found)


def noise(threshold: float = 0.03, *, fit: bool = True) -> Noise:
    """The original against itself."""
    if fit:
        return Noise(Interval(1.0016, 0.9941, 1.0093), threshold, True)
    return Noise(
        Interval(1.074, 1.041, 1.112),
        0.071,
        False,
        "The original and a copy of it differ by 7.4 %: something else is using the machine.",
    )


def comparison(draft: Draft, *, pairs: int = 110) -> Comparison:
    """The verdict of a draft with an interval that fits it."""
    timed = draft.verdict not in (Verdict.REJECTED, Verdict.UNMEASURED)
    wall = Interval(draft.ratio, draft.ratio * (1 - draft.half), draft.ratio * (1 + draft.half))
    return Comparison(
        variant=draft.name,
        verdict=draft.verdict,
        reason=draft.reason,
        wall=wall if timed else None,
        device=replace(wall, ratio=1 + (draft.ratio - 1) * 0.6) if timed else None,
        pairs=pairs if timed else 0,
        discarded=2 if timed else 0,
        memory=None if draft.agreement is Agreement.FAILED else draft.memory,
    )


def examination(draft: Draft, peak: int, lines: tuple[Line, ...], missing: tuple[str, ...]) -> Examination:
    """What the untimed run of a draft saw."""
    failed = draft.agreement is Agreement.FAILED
    largest = {Agreement.IDENTICAL: 0.0, Agreement.CLOSE: 3.1e-6, Agreement.DIFFERENT: 0.41}
    reasons = {
        Agreement.CLOSE: "The largest relative difference is 3.1e-06, in the gradient of conv1.weight; the "
        "tolerance is 1e-04.",
        Agreement.STREAM_MOVED: "Random numbers come from the device's generator: shapes, types and moments "
        "agree.",
        Agreement.DIFFERENT: "The loss at step 3 differs by 41 %, and the original from itself by nothing.",
        Agreement.FAILED: "The fixed program ended before its first step.",
    }
    seen = Evidence(
        steps=5,
        peak_allocated=None if failed or missing else round(peak / draft.memory),
        peak_reserved=None if failed or missing else round(1.2 * peak / draft.memory),
        syncs=None if failed or missing else draft.syncs,
        kernels=None if failed or missing else draft.kernels,
        copies_to_device=None if failed or missing else 3.0,
        copies_to_host=None if failed or missing else draft.syncs,
        sync_lines=() if missing else lines,
        missing=missing,
    )
    return Examination(
        variant=draft.name,
        found_by="optimizer steps",
        steps=0 if failed else 23,
        step_seconds=None if failed else 0.0124,
        startup_seconds=4.2,
        sameness=Sameness(
            draft.agreement,
            8,
            largest.get(draft.agreement, 0.0),
            0.0,
            1e-4,
            "gradient of conv1.weight",
            reasons.get(draft.agreement, ""),
        ),
        evidence=seen,
        failure=draft.failure,
    )


def measurement(
    random_: random.Random,
    subject: str,
    drafts: list[Draft],
    *,
    size: str | None = None,
    step: float = 0.0124,
    peak: int = round(3.1 * GIB),
    file: str = "train.py",
    source: str = SCRIPT,
    fit: bool = True,
    missing: tuple[str, ...] = (),
    rounds: int = 12,
    dropped: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    syncs: SyncReport | None = None,
) -> Measurement:
    """One program with its variants."""
    lines = (
        Line(file, row("loss.item()"), 1.0, 0.0031, "aten::item"),
        Line(file, row("if loss > 100"), 1.0, 0.00007, "aten::is_nonzero"),
        Line("/opt/venv/lib/python3.12/site-packages/torch/optim/sgd.py", 101, 0.2, None, "aten::item"),
    )
    original = Draft(ORIGINAL, (), Verdict.SAME)
    again = Draft(AGAIN, (), Verdict.SAME)
    ratios = {ORIGINAL: 1.0, AGAIN: 1.0 if fit else 1.07}
    ratios |= {
        draft.name: draft.ratio
        for draft in drafts
        if draft.verdict not in (Verdict.REJECTED, Verdict.UNMEASURED)
    }
    return Measurement(
        subject=subject,
        size=size,
        variants=(
            Variant(ORIGINAL),
            Variant(AGAIN),
            *(
                Variant(
                    draft.name,
                    draft.codes,
                    applied(draft.codes, file, source),
                    diff(draft.codes, file, source),
                )
                for draft in drafts
            ),
        ),
        examinations=(
            examination(original, peak, lines, missing),
            examination(again, peak, lines, missing),
            *(examination(draft, peak, draft.remaining, missing) for draft in drafts),
        ),
        blocks=blocks(random_, step, ratios, rounds=rounds) if len(ratios) > 2 else (),
        noise=noise(fit=fit) if len(ratios) > 2 else None,
        comparisons=tuple(map(comparison, drafts)),
        replicates=5,
        warmup_steps=40,
        dropped=dropped,
        notes=notes,
        source=source,
        syncs=syncs,
    )


def sync_report(file: str = "train.py") -> SyncReport:
    """Lines of every status."""
    return SyncReport(
        steps=50,
        rows=(
            SyncRow(
                file,
                row("loss.item()"),
                SyncStatus.CONFIRMED,
                ("TL202",),
                "`loss.item()` synchronizes with the device in every iteration",
                1.0,
                0.0031,
                "aten::item",
                "total += loss.item()",
                calls=50,
                phases=("training in train()",),
            ),
            SyncRow(
                file,
                row("torch.randn(images.shape)"),
                SyncStatus.REACHED,
                ("TL201",),
                "the tensor is made on the host and copied",
                text="noise = torch.randn(images.shape).to(device)",
            ),
            SyncRow(
                file,
                row("optimizer.step()"),
                SyncStatus.NOT_REACHED,
                ("TL205",),
                "the branch waits for the device",
                text="optimizer.step()",
            ),
            SyncRow(
                file,
                row("if loss > 100"),
                SyncStatus.NOT_PREDICTED,
                (),
                "",
                1.0,
                0.00007,
                "aten::is_nonzero",
                "if loss > 100:",
            ),
            SyncRow(
                "/opt/venv/lib/python3.12/site-packages/torch/optim/sgd.py",
                101,
                SyncStatus.NOT_PREDICTED,
                per_step=0.16,
                seconds=0.16 * 0.00056,
                what="aten::item",
                calls=8,
                phases=("inference in evaluate()",),
            ),
        ),
        phases=(
            SyncPhase("start-up", 4.1, 0),
            SyncPhase("training in train()", 9.2, 50),
            SyncPhase("inference in evaluate()", 2.0, 8),
        ),
    )


def timelines(*, cpu: bool = False) -> tuple[Timeline, ...]:
    """A step of a program before and after; on a GPU the kernels end later than the host."""

    def track(kind: TrackKind, *parts: tuple[str, float, float], detail: str = "", count: int = 1) -> Track:
        slices = tuple(Slice(name, begin, end, 0.8 * (end - begin), count) for name, begin, end in parts)
        longest = tuple(Total(name, end - begin, 1) for name, begin, end in parts)
        return Track(kind, detail, sum(item.busy for item in slices), slices, longest)

    def step(variant: str, scale: float) -> Timeline:
        forward, backward = 0.004 * scale, 0.01 * scale
        host = [
            track(
                TrackKind.LINES,
                (f"train.py:{row('loss.item()')}: total += loss.item()", 0.0, 0.0001),
                (f"train.py:{row('loss.backward()')}: loss.backward()", forward, backward),
            ),
            track(TrackKind.OPERATORS, ("aten::linear", 0.001, forward), ("MmBackward0", forward, backward)),
        ]
        if variant == ORIGINAL:
            line = f"train.py:{row('loss.item()')}: total += loss.item()"
            host.insert(1, track(TrackKind.CHANGED, (line, 0.0, 0.0001)))
        launched = [("cudaLaunchKernel", 0.0001 * number, 0.0001 * number + 0.00005) for number in range(60)]
        device = [
            track(TrackKind.LAUNCHES, *launched),
            track(TrackKind.WAITS, ("cudaStreamSynchronize", backward, 0.011 * scale)),
            track(TrackKind.KERNELS, ("gemm<float>", 0.002, 0.012 * scale), detail="stream 7", count=12),
            track(TrackKind.KERNELS, ("ncclAllReduce", 0.006, 0.012 * scale), detail="stream 13"),
            track(TrackKind.COPIES, ("Memcpy HtoD (Pageable -> Device)", 0.0005, 0.002)),
        ]
        return Timeline(variant, 12, 0.011 * scale, tuple(host if cpu else [*host, *device]))

    return step(ORIGINAL, 1.3), step(TOGETHER, 1.0)


def verify_results(seed: int = 0, *, cpu: bool = False, fit: bool = True) -> Results:
    """A script with one variant of each verdict (all UNFIT on an unfit machine)."""
    random_ = random.Random(seed)
    everything = ("TL201", "TL202", "TL302", "TL401")
    drafts = [
        Draft(
            TOGETHER,
            everything,
            Verdict.FASTER,
            1.34,
            Agreement.STREAM_MOVED,
            memory=1.12,
            syncs=1.0,
            kernels=187,
            remaining=(Line("train.py", row("if loss > 100"), 1.0, 0.00007, "aten::is_nonzero"),),
        ),
        Draft("TL202:38", ("TL202",), Verdict.FASTER, 1.297, syncs=1.0, kernels=211),
        Draft("TL401:11", ("TL401",), Verdict.SAME, 1.006, Agreement.CLOSE, memory=1.07, kernels=205),
        Draft("TL302:34", ("TL302",), Verdict.SLOWER, 0.93, memory=1.05, kernels=190),
        Draft(
            "TL201:31",
            ("TL201",),
            Verdict.UNCLEAR,
            1.022,
            Agreement.STREAM_MOVED,
            "The interval reaches from 0.97 to 1.07, over the threshold of 3 %.",
            half=0.05,
        ),
        Draft(
            "TL201",
            ("TL201",),
            Verdict.REJECTED,
            agreement=Agreement.DIFFERENT,
            reason="The fix changes the results.",
            memory=1.0,
        ),
        Draft(
            "TL302",
            ("TL302",),
            Verdict.REJECTED,
            agreement=Agreement.FAILED,
            reason="The fixed program fails.",
            failure='The program ended with an error after 0 steps:\n  File "train.py", line 37, in main\n'
            "    loss.backward()\nRuntimeError: element 0 of tensors does not require grad",
        ),
        Draft(
            "TL401",
            ("TL401",),
            Verdict.UNMEASURED,
            agreement=Agreement.UNCHECKED,
            reason="The budget of 120 s was spent before this fix had its turn.",
        ),
    ]
    if not fit:
        for draft in drafts:
            draft.verdict = Verdict.UNFIT if draft.verdict in _TIMED else draft.verdict
    missing = (
        (
            "Synchronizing calls are seen on CUDA devices only.",
            "Peak memory is counted on accelerators only.",
        )
        if cpu
        else ()
    )
    found = measurement(
        random_,
        "train.py",
        drafts,
        fit=fit,
        missing=missing,
        dropped=("TL401 was not timed: the budget of 120 s is spent.",),
        notes=("The program ended after 640 steps, before the plan was through.",),
        syncs=None if cpu else sync_report(),
    )
    return Results(
        command="verify",
        torchlint="0.1.0",
        started="2026-11-21T07:12:31+00:00",
        seconds=118.4,
        machine=LAPTOP if cpu else H200,
        measurements=(replace(found, timelines=timelines(cpu=cpu)),),
        commit="506fb45c0ffee506fb45c0ffee506fb45c0ffee5",
    )


_TIMED = (Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNCLEAR)

_BENCH: tuple[tuple[str, tuple[tuple[str, Verdict, float, Agreement], ...]], ...] = (
    (
        "TL201",
        (
            ("small", Verdict.FASTER, 12.4, Agreement.STREAM_MOVED),
            ("medium", Verdict.FASTER, 61.0, Agreement.STREAM_MOVED),
            ("large", Verdict.FASTER, 251.0, Agreement.STREAM_MOVED),
        ),
    ),
    (
        "TL202",
        (
            ("small", Verdict.FASTER, 1.41, Agreement.IDENTICAL),
            ("medium", Verdict.UNCLEAR, 1.03, Agreement.IDENTICAL),
            ("large", Verdict.SAME, 1.008, Agreement.IDENTICAL),
        ),
    ),
    (
        "TL302",
        (
            ("small", Verdict.FASTER, 1.22, Agreement.IDENTICAL),
            ("medium", Verdict.SAME, 1.01, Agreement.IDENTICAL),
            ("large", Verdict.SLOWER, 0.94, Agreement.IDENTICAL),
        ),
    ),
    (
        "TL401",
        (
            ("small", Verdict.UNFIT, 1.07, Agreement.CLOSE),
            ("medium", Verdict.REJECTED, 1.0, Agreement.DIFFERENT),
            ("large", Verdict.UNMEASURED, 1.0, Agreement.UNCHECKED),
        ),
    ),
)


def bench_results(seed: int = 0, *, started: str = "2026-11-21T07:40:02+00:00", rounds: int = 8) -> Results:
    """Four rules at three sizes, with every verdict among them."""
    random_ = random.Random(seed)
    found = []
    for code, sizes in _BENCH:
        name = _EDITS[code][0].replace("-", "_")
        for number, (size, verdict, ratio, agreement) in enumerate(sizes):
            draft = Draft(
                TOGETHER,
                (code,),
                verdict,
                ratio,
                agreement,
                memory=1.0 if number else 1.1,
                syncs=1.0 if code == "TL202" else 2.0,
                half=0.05 if verdict is Verdict.UNCLEAR else 0.012,
            )
            found.append(
                measurement(
                    random_,
                    code,
                    [draft],
                    size=size,
                    step=(0.0011, 0.0093, 0.087)[number],
                    file=f"{name}.py",
                    fit=verdict is not Verdict.UNFIT,
                    rounds=rounds,
                )
            )
    return Results(
        command="bench",
        torchlint="0.1.0",
        started=started,
        seconds=342.0,
        machine=H200,
        measurements=tuple(found),
    )


HOSTILE = (
    "</script><script>alert(1)</script><img src=http://x.invalid/a onerror=alert(2)>&\"'{{ 7*7 }}\x1b[31m\0"
)


def hostile_results() -> Results:
    """Results with markup, template syntax and control characters wherever text comes from the user."""
    results = verify_results()
    (found,) = results.measurements

    def poison(text: str) -> str:
        return f"{HOSTILE}{text}"

    variants = tuple(
        replace(
            variant,
            name=variant.name if variant.name in (ORIGINAL, AGAIN, TOGETHER) else poison(variant.name),
            diff="".join(f"{line[0]}{poison(line[1:])}\n" for line in variant.diff.splitlines() if line),
            fixes=tuple(
                replace(fix, message=poison(fix.message), file=poison(fix.file), name=poison(fix.name))
                for fix in variant.fixes
            ),
        )
        for variant in found.variants
    )

    def renamed(name: str) -> str:
        return name if name in (ORIGINAL, AGAIN, TOGETHER) else poison(name)

    bad = replace(
        found,
        subject=poison(found.subject),
        variants=variants,
        examinations=tuple(
            replace(
                item,
                variant=renamed(item.variant),
                failure=poison(item.failure) if item.failure else None,
                sameness=replace(item.sameness, reason=poison(item.sameness.reason)),
                evidence=replace(
                    item.evidence,
                    sync_lines=tuple(
                        replace(line, file=poison(line.file), what=poison(line.what))
                        for line in item.evidence.sync_lines
                    ),
                ),
            )
            for item in found.examinations
        ),
        comparisons=tuple(
            replace(item, variant=renamed(item.variant), reason=poison(item.reason))
            for item in found.comparisons
        ),
        blocks=tuple(replace(block, variant=renamed(block.variant)) for block in found.blocks),
        notes=tuple(map(poison, found.notes)),
        dropped=tuple(map(poison, found.dropped)),
        source="\n".join(map(poison, found.source.splitlines())),
        syncs=replace(
            sync_report(),
            rows=tuple(
                replace(row_, file=poison(row_.file), text=poison(row_.text), message=poison(row_.message))
                for row_ in sync_report().rows
            ),
        ),
    )
    machine = replace(results.machine, gpu=poison("NVIDIA"), packages={poison("numpy"): poison("2")})
    return replace(results, machine=machine, measurements=(bad,))
