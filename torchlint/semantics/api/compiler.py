"""What `torch.compile` can trace and what it cannot, as data.

Each name in `UNTRACED` breaks the graph in a row of ``benchmarks/constructs.py``, measured by
``benchmarks/breaks.py``; ``tests/benchmarks/test_breaks.py`` holds them to that.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNTRACED: Final = _words("""
    builtins.print builtins.open sys.stdout.write warnings.warn
    logging.debug logging.info logging.warning logging.error logging.exception logging.critical logging.log
    time.time time.perf_counter time.monotonic time.time_ns time.sleep
    random.random random.choice random.sample random.gauss random.shuffle random.seed
    os.getcwd os.path.exists json.dumps
    torch.save torch.manual_seed
    numpy.random.permutation numpy.random.default_rng numpy.save
    numpy.unique numpy.bincount numpy.interp numpy.digitize numpy.array2string
""")
"""Functions that the compiler leaves to Python, by their qualified names."""

DRAWN_NUMBERS: Final = {
    "numpy.random.rand": 0,
    "numpy.random.uniform": 2,
    "numpy.random.normal": 2,
    "numpy.random.randint": 2,
    "numpy.random.choice": 1,
}
"""Functions that draw one number where no size is given, with the positional arguments in front of the size.

An array that is drawn is traced, a number is not.
"""

LOGGING_METHODS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
"""Methods of a logger that write a record."""

ASKING: Final = _words("""
    builtins.any builtins.all builtins.sorted torch.equal torch.allclose torch.is_nonzero
""")
"""Functions that ask for the values of tensors; `max`, `min` and `sum` of tensors are traced."""

DISABLERS: Final = re.compile(
    r"^torch\.(compiler|_dynamo)\.(disable|allow_in_graph|assume_constant_result|disallow_in_graph)$"
    r"|^torch\.library\.(custom_op|triton_op)$"
)
"""Decorators of functions that the compiler does not look into."""

ASKS_COMPILER: Final = re.compile(r"(^|_)(compiling|exporting)$|dynamo")
"""Last words of the functions that say whether code is being compiled."""
