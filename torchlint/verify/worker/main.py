"""The course of a measuring process: take the job, run the program, say how it ended.

Started as ``python -c "from torchlint.verify.worker.main import main; main()" FD_IN FD_OUT``, so that no
folder of torchlint's stands where the program's own has to stand on ``sys.path``.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from torchlint.verify.worker.channel import Channel
from torchlint.verify.worker.job import Job

if TYPE_CHECKING:
    from torchlint.verify.worker.device import Device
    from torchlint.verify.worker.ranks import Alone

OLDEST = (2, 3)
"""The oldest torch whose hooks the harness knows."""


def main() -> None:
    """Do the job that comes through the pipes whose numbers the command line has."""
    own_path()
    serve(Channel(int(sys.argv[1]), int(sys.argv[2])))


def own_path() -> None:
    """Leave the place on ``sys.path`` of the folder that the interpreter was started in to the program's."""
    if not sys.path[0]:
        del sys.path[0]


def serve(channel: Channel) -> NoReturn:
    """Do one job, and end without running what the program left behind for its exit."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    message = channel.receive()
    if message is not None:
        _work(channel, Job.from_json(message))
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and handlers of the program must not keep a process that is done.
    os._exit(0)


def _work(channel: Channel, job: Job) -> None:
    try:
        import torch
    except ImportError as error:
        channel.send(event="end", reason="torch", message=str(error))
        return
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        channel.send(event="end", reason="torch", message=_too_old(torch.__version__))
        return
    from torchlint.verify.worker.device import find
    from torchlint.verify.worker.ranks import join

    try:
        device = find(job.device)
    except ValueError as error:
        channel.send(event="end", reason="device", message=str(error))
        return
    if job.task == "machine":
        from torchlint.verify.worker.machine import describe

        channel.send(event="machine", **describe(device))
        return
    try:
        fellows = join(job, device)
    except Exception as error:  # whatever is wrong with the devices or what connects them
        _send_end(channel, "error", f"the ranks could not connect: {error}")
        return
    if job.form == "case":
        _warm_torch(device)
    channel.send(event="loaded")
    while (order := channel.receive()) is not None and order["do"] == "run":
        _run(channel, replace(job, **order["job"]), device, fellows)
        device.reset_peak()
        if job.form != "case":
            return


def _too_old(version: str) -> str:
    least = ".".join(map(str, OLDEST))
    return f"torch {version} is too old: measuring requires torch {least} or newer"


def _own(stack: TracebackType | None, project: str) -> TracebackType | None:
    """Return the stack from where it enters the program, without what has started that;
    None if it does not.
    """
    while stack is not None and not stack.tb_frame.f_code.co_filename.startswith(f"{project}/"):
        stack = stack.tb_next
    return stack


def _warm_torch(device: Device) -> None:
    """Do what torch does at its first use, and no measurement wants:
    the first optimizer loads the compiler.
    """
    import torch
    import torch._dynamo

    torch.zeros(1, device=device.kind)


def _send_end(channel: Channel, reason: str, message: str) -> None:
    """Say how the program ended, and when, so that the first of several ranks is known."""
    channel.send(event="end", reason=reason, message=message, at=time.monotonic())


def _run(channel: Channel, job: Job, device: Device, fellows: Alone) -> None:
    """Run the program once; of a case, which can be set up anew, several runs may follow each other."""
    from torchlint.verify.worker.blocks import Blocks
    from torchlint.verify.worker.boundary import Stop, Stopper
    from torchlint.verify.worker.examine import Examination
    from torchlint.verify.worker.programs import Program
    from torchlint.verify.worker.timeline import Recording
    from torchlint.verify.worker.training import Training
    from torchlint.verify.worker.watch import Watch

    began = time.perf_counter()
    stopper = Stopper(lambda: tell(ended=False))
    where = device.kind if job.device == "auto" else job.device
    if job.ranks > 1 and device.kind == "cuda":
        where = f"cuda:{job.rank}"
    examination = training = watch = recording = None
    if job.task == "time":
        blocks = Blocks(channel, device, stopper, began, fellows.meet)
        program = Program(job, where, blocks)
    elif job.task == "train":
        training = Training(stopper, job.train_steps, job.shift)
        program = Program(job, where, training)
        training.start()
    elif job.task == "watch":
        watch = Watch(job, device, stopper, began, fellows)
        program = Program(job, where, watch)
        watch.start()
    elif job.task == "record":
        recording = Recording(job, device, stopper)
        program = Program(job, where, recording)
    else:
        examination = Examination(job, device, stopper, began, fellows)
        program = Program(job, where, examination, examination.trace.began, examination.trace.returned)
        examination.trace.start()

    def tell(*, ended: bool) -> None:
        if training is not None:
            channel.send(event="trained", losses=training.outcome())
        if recording is not None:
            channel.send(event="recorded", **recording.outcome())
        if examination is not None and program.found_by:
            channel.send(event="examined", found_by=program.found_by, **examination.outcome(ended=ended))
        if watch is not None and program.found_by:
            found = watch.outcome(found_by=program.found_by, ended=ended)
            channel.send(event="examined", found_by=program.found_by, **found)

    reason, message = "finished", ""
    try:
        program.run()
    except Stop:
        reason = "stopped"
    except SystemExit as error:
        if error.code not in (None, 0):
            code = error.code
            reason, message = "error", f"it exited with {code}" if isinstance(code, int) else str(code)
    except BaseException as error:
        reason, message = "error", "".join(traceback.format_exception_only(error)).strip()
        own = _own(error.__traceback__, job.project)
        if own is not None:
            traceback.print_exception(type(error), error, own)
    if reason == "finished" and not stopper.stopped:
        tell(ended=True)
    _send_end(channel, reason, message)
