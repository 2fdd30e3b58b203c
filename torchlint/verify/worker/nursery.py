"""A process that imports torch, and then copies itself for each measuring process that is wanted, or is one.

When told to, it imports the libraries of a program as well, before further copies are made.

Started as ``python -c "from torchlint.verify.worker.nursery import main; main()" FD``, where ``FD`` is one
end of a socket that keeps messages apart. It never touches a device: a CUDA context does not survive a copy.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from torchlint.verify.worker.channel import Channel
from torchlint.verify.worker.main import own_path, serve

_LONGEST = 1 << 20
"""Bytes of an order, which has all variables of an environment in it."""
_FILES = 3


def main() -> None:
    """Copy this process as often as is asked for, until nobody can ask any more."""
    own_path()
    # A terminal's Ctrl-C is for the process that steers this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError):
        import torch
        import torch._dynamo  # noqa: F401  - the first optimizer wants it
    _settle()
    imported: dict[str, str] = {}
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        while True:
            message, files, _, _ = socket.recv_fds(orders, _LONGEST, _FILES)
            if not message:
                return
            order = json.loads(message)
            if order["do"] == "copy":
                order["environment"] |= imported
                answer = _copy(order, files, orders)
            elif order["do"] == "become":
                orders.send(json.dumps({"number": order["number"]}).encode())
                orders.close()
                _become(order, files)
            elif order["do"] == "import":
                answer = _import(Path(order["file"]), imported)
            else:
                answer = _status(order["pid"])
            orders.send(json.dumps({**answer, "number": order["number"]}).encode())


def _settle() -> None:
    """Freeze what is there: looking for garbage in it would only make copies of its memory."""
    gc.collect()
    gc.freeze()


def _import(file: Path, imported: dict[str, str]) -> dict[str, bool]:
    """Import the modules that a file lists, and note the variables that they set meanwhile."""
    from torchlint.verify.worker.libraries import load

    before = dict(os.environ)
    usable = load(json.loads(file.read_text(encoding="utf-8")))
    imported |= {name: value for name, value in os.environ.items() if before.get(name) != value}
    _settle()
    return {"usable": usable}


def _copy(order: dict[str, Any], files: Sequence[int], orders: socket.socket) -> dict[str, Any]:
    """Make a copy, which does not return from here."""
    pid = os.fork()
    if pid == 0:
        orders.close()
        os.setsid()
        _become(order, files)
    for file in files:
        os.close(file)
    return {"pid": pid}


def _become(order: dict[str, Any], files: Sequence[int]) -> NoReturn:
    """Take the place of a fresh process, in a session of its own."""
    incoming, outgoing, output = files
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.chdir(order["folder"])
    copies = dict(zip(_searched(os.environ), _searched(order["environment"]), strict=True))
    sys.path[:] = [copies.get(entry, entry) for entry in sys.path]
    os.environ.clear()
    os.environ.update(order["environment"])
    # Asked before, it would have remembered the folder of the nursery.
    tempfile.tempdir = None
    serve(Channel(incoming, outgoing))


def _searched(variables: Mapping[str, str]) -> list[str]:
    """Return the folders of ``PYTHONPATH``, which is where a program finds its own modules in its copy."""
    return variables.get("PYTHONPATH", "").split(os.pathsep)


def _status(pid: int) -> dict[str, int | None]:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return {"status": os.waitstatus_to_exitcode(status) if ended else None}
