"""Tables of small programs that state, node by node, what the semantic model must know.

A program carries its expectations as comments at the ends of its lines:

    total += loss.item()  #: loss.item() => hot=batch phase=training; loss => kind=tensor

A selector is the source text of a node that starts on this line (the outermost such node; ``#2`` behind
it picks the second one). ``hot`` names the loop by its first target, ``while``, ``comprehension``, or the
function that runs every step; ``no`` for none. ``via`` lists the functions or properties on the path from
the loop. Each ``key=value`` is one test: a test function of a module with a dict ``PROGRAMS`` gets them one
by one as its argument ``expectation``, and calls it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from textwrap import dedent
from typing import cast

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.distributed.parallelism import Parallelism
from torchlint.rules.host_device.invariance import needless_move
from torchlint.rules.host_device.legacy_tensor_constructor.legacy import (
    legacy_cast,
    legacy_constructor,
    reported_as_move,
)
from torchlint.rules.host_device.roundtrips import copied_back_from
from torchlint.rules.host_device.scalars import is_python_number, sent_scalar
from torchlint.rules.host_device.tensor_from_device_scalars.elements import read_one_by_one
from torchlint.rules.input_pipeline.device_tensor_in_dataset import workercode
from torchlint.rules.input_pipeline.tensor_copies_array import copies
from torchlint.rules.input_pipeline.workercounts import usual_workers
from torchlint.rules.memory import clearances
from torchlint.rules.model.bias_before_batch_norm import consumers
from torchlint.rules.model.forward_called_directly.bypasses import bypass
from torchlint.rules.model.modules_in_plain_list.registration import hidden_modules
from torchlint.rules.model.unpacking import used_parts
from torchlint.semantics import arrays, places
from torchlint.semantics.compilation import compiled
from torchlint.semantics.contexts import context
from torchlint.semantics.dimensions import rank
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.gradmode import grad
from torchlint.semantics.loaders import Loaders, repeated_epochs
from torchlint.semantics.model import build
from torchlint.semantics.module import Module
from torchlint.semantics.operations import Operation, operations_of
from torchlint.semantics.phases import phase
from torchlint.semantics.repetition import frequency
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING
from torchlint.syntax import SyntaxTree


@dataclass(frozen=True)
class Row:
    """In ``program``, the node ``selector`` on ``line`` answers the question ``key`` with ``expected``."""

    program: str
    line: int
    selector: str
    key: str
    expected: str


@lru_cache(maxsize=16)
def model(program: str) -> Module:
    """The semantic model of a program."""
    settings = LintSettings()
    return build(SyntaxTree(program), settings)


@pytest.fixture
def semantic_model() -> Callable[[str], Module]:
    """Makes the semantic model of a program, for what a table cannot say."""
    return model


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test function every expectation of its module, named by program, line and question."""
    if "expectation" in metafunc.fixturenames:
        programs: dict[str, str] = metafunc.module.PROGRAMS
        rows = [
            (title, row) for title, text in programs.items() for row in expectations(dedent(text).lstrip())
        ]
        metafunc.parametrize(
            "expectation",
            [partial(check, row) for _, row in rows],
            ids=[f"{title}:{row.line} {row.selector} {row.key}={row.expected}" for title, row in rows],
        )


def expectations(program: str) -> Iterator[Row]:
    """The rows that the comments of a program state."""
    for number, line in enumerate(program.splitlines(), start=1):
        _, mark, comment = line.partition("#: ")
        for statement in comment.split("; ") if mark else ():
            selector, arrow, answers = statement.partition(" => ")
            assert arrow, f"line {number}: no '=>' in {statement!r}"
            for answer in answers.split():
                key, _, expected = answer.partition("=")
                assert key in QUESTIONS, f"line {number}: unknown question {key!r}"
                yield Row(program, number, selector.strip(), key, expected)


def check(row: Row) -> None:
    """Ask the model, and compare."""
    module = model(row.program)
    node = select(module.tree, row.line, row.selector)
    assert QUESTIONS[row.key](module, node) == row.expected


def select(tree: SyntaxTree, line: int, selector: str) -> cst.CSTNode:
    """The outermost node on a line whose source is ``selector``, or the n-th one of ``selector#n``."""
    text, _, nth = re.match(r"(.*?)(#(\d+))?$", selector).groups()  # type: ignore[union-attr]
    starts = [0]
    for found in re.finditer("\n", tree.text):
        starts.append(found.end())
    begin, end = starts[line - 1], starts[line] if line < len(starts) else len(tree.text)
    matching = [
        node
        for node in tree.order
        if isinstance(node, (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement))
        and not isinstance(node, (cst.Expr, cst.SimpleStatementLine))
        and begin <= tree.span(node).start < end
        and tree.source(node) == text
    ]
    parents = [node for node in matching if tree.parent(node) not in matching]
    assert parents, f"no {text!r} on line {line}"
    return parents[int(nth or 1) - 1]


def _flag(value: bool) -> str:
    return "yes" if value else "no"


def _loop_name(loop: cst.CSTNode) -> str:
    match loop:
        case cst.For():
            return _first_name(loop.target)
        case cst.While():
            return "while"
        case cst.FunctionDef():
            return loop.name.value
        case cst.Lambda():
            return "lambda"
        case _:
            return "comprehension"


def _first_name(target: cst.CSTNode) -> str:
    while isinstance(target, (cst.Tuple, cst.List)):
        target = target.elements[0].value
    return last_name(target) or "?"


def _hot(module: Module, node: cst.CSTNode) -> str:
    hot = places.hot(module, node)
    return _loop_name(hot.loop) if hot is not None else "no"


def _via(module: Module, node: cst.CSTNode) -> str:
    hot = places.hot(module, node)
    return ",".join(last_name(step) or "?" for step in hot.path) if hot is not None else "no"


def _bindings(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Name)
    lines = [
        module.tree.text.count("\n", 0, module.tree.span(b.node).start) + 1 for b in module.bindings(node)
    ]
    return ",".join(map(str, lines)) or "none"


def _callee(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    callee = module.callee(node)
    return _loop_name(callee) if callee is not None else "none"


def _callers(module: Module, node: cst.CSTNode) -> str:
    function = module.function(node)
    assert function is not None
    return str(len(module.callers(function)))


def _constant(module: Module, node: cst.CSTNode) -> str:
    constant = module.value(node).constant
    return "none" if constant is MISSING else repr(constant)


def _elements(module: Module, node: cst.CSTNode) -> str:
    elements = module.value(node).elements
    return ",".join(e.kind.value for e in elements) if elements is not None else "none"


def _definition(module: Module, node: cst.CSTNode) -> str:
    definition = module.value(node).definition
    match definition:
        case cst.ClassDef() | cst.FunctionDef():
            return definition.name.value
        case cst.Lambda():
            return "lambda"
        case _:
            return "none"


def _argument(name: str) -> Callable[[Module, cst.CSTNode], str]:
    def ask(module: Module, node: cst.CSTNode) -> str:
        assert isinstance(node, cst.Call)
        argument = module.argument(node, name)
        return "given" if argument.given else "absent" if argument.absent else "unknown"

    return ask


def _loops(module: Module, node: cst.CSTNode) -> str:
    return ",".join(_loop_name(loop) for loop in module.flow.loops(node)) or "none"


def _feeds(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    function = (module.qualified(node.func) or "").startswith("torch.nn.functional.")
    found = consumers.after_result(module, node) if function else consumers.after_layer(module, node)
    return ",".join(sorted({(c.name or "?").rpartition(".")[2] for c in found}))


def _goes(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    return Loaders.of(module).destination(node).value


def _collected(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    return _flag(Loaders.of(module).only_collected(node))


def _batch_of(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    sources = Loaders.of(module).batch_sources(node)
    lines = [module.tree.text.count("\n", 0, module.tree.span(call).start) + 1 for call in sources.calls]
    return ",".join([*map(str, lines), *([] if sources.complete else ["?"])]) or "none"


def _sends(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    sent = sent_scalar(module, node)
    return sent.size if sent is not None else "no"


def _reads(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    read = read_one_by_one(module, node)
    return "no" if read is None else "some" if read.written is None else str(len(read.written))


def _of_call(ask: Callable[[Module, cst.Call], str]) -> Callable[[Module, cst.CSTNode], str]:
    def answer(module: Module, node: cst.CSTNode) -> str:
        assert isinstance(node, cst.Call)
        return ask(module, node)

    return answer


def _again(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    repeated = needless_move(module, node)
    return "no" if repeated is None else "module" if repeated.whole_module else "tensor"


def _back(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    return _flag(copied_back_from(module, node) is not None)


def _clears(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    hot = clearances.clears_each_step(module, node)
    return _loop_name(hot.loop) if hot is not None else "no"


def _python(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    return _flag(is_python_number(module, node))


def _array(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    found = arrays.array(module, node)
    return "no" if found is None else f"{found.dtype or '?'}{'' if found.numeric else ',objects'}"


def _arrays(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    found = arrays.list_of_arrays(module, node)
    if found is None:
        return "no"
    return f"{len(found.items)}{',filled' if found.filled else ''}{',alike' if found.alike else ''}"


def _copied(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    found = copies.copied(module, node)
    return "no" if found is None else "tensor" if found.tensor else "array"


def _passes(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    loop = next((loop for _, loop in repeated_epochs(module, node)), None)
    return "no" if loop is None else _loop_name(loop)


def _workers(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    workers = usual_workers(module, node)
    return "no" if workers is None else f"{workers.count}{'' if workers.code is None else '?'}"


def _worker(module: Module, node: cst.CSTNode) -> str:
    use = workercode.worker_code(module, node)
    if use is None:
        return "no"
    forked = ",forked" if use.forked(module) is not None else ""
    return f"{_loop_name(use.function)},{len(use.loaders)}{forked}"


def _reaches(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    return _flag(workercode.reaches_accelerator(module, node))


def _parts(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    used = used_parts(module, node, 2)
    return "?" if used is None else ",".join(map(str, sorted(used))) or "none"


def _bypass(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    found = bypass(module, node)
    return "no" if found is None else "plain" if found.plain else "unsure"


def _hides(module: Module, node: cst.CSTNode) -> str:
    target = node.targets[0].target if isinstance(node, cst.Assign) else None
    assert isinstance(node, cst.Assign) and isinstance(target, cst.Attribute)
    found = hidden_modules(module, target, node.value)
    if found is None:
        return "no"
    kind = "dict" if found.mapping else "list"
    return f"{kind},modules" if found.only_modules else kind


def _wraps(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    found = Parallelism.of(module).wraps(node)
    words = ",".join(wrapper.wrapping.value for wrapper in found.wrappers)
    return f"{words}{'' if found.always else '?'}" if words else "no"


def _spelt(module: Module, operation: Operation | None) -> str:
    if operation is None:
        return "no"

    def source(node: cst.CSTNode) -> str:
        return module.source(node).replace(" ", "")

    options = ",".join(sorted(f"{name}={source(value)}" for name, value in operation.options.items()))
    operands = ",".join(map(source, operation.operands))
    return (
        f"{operation.name}({operands}){f'[{options}]' if options else ''}{'!' if operation.in_place else ''}"
    )


def _computes(module: Module, node: cst.CSTNode) -> str:
    return _spelt(module, operations_of(module).of(node))


def _behind(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.BaseExpression)
    return _spelt(module, operations_of(module).behind(node))


def _number(module: Module, node: cst.CSTNode) -> str:
    number = operations_of(module).number(node)
    return "none" if number is None else f"{number:.5f}"


def _alike(module: Module, node: cst.CSTNode) -> str:
    """Of ``x * f(x)``: whether the function is given the other factor."""
    operations = operations_of(module)
    product = operations.of(node)
    inner = operations.behind(product.operands[1]) if product is not None else None
    assert product is not None and inner is not None
    return _flag(operations.same(product.operands[0], inner.operands[0]))


def _context(module: Module, node: cst.CSTNode) -> str:
    found = context(module, node)
    return found.value if found is not None else "none"


QUESTIONS: dict[str, Callable[[Module, cst.CSTNode], str]] = {
    "clears": _clears,
    "wraps": _wraps,
    "qualified": lambda module, node: module.qualified(node) or "none",
    "rank": lambda module, node: str(rank(module, cast(cst.BaseExpression, node))),
    "memory": lambda module, node: module.value(node).memory.value,
    "kind": lambda module, node: module.value(node).kind.value,
    "device": lambda module, node: module.value(node).device.value,
    "graph": lambda module, node: module.value(node).graph.value,
    "dtype": lambda module, node: module.value(node).dtype or "none",
    "cls": lambda module, node: module.value(node).cls or "none",
    "constant": _constant,
    "computes": _computes,
    "behind": _behind,
    "number": _number,
    "alike": _alike,
    "elements": _elements,
    "definition": _definition,
    "bindings": _bindings,
    "callee": _callee,
    "callers": _callers,
    "num_workers": _argument("num_workers"),
    "loops": _loops,
    "feeds": _feeds,
    "array": _array,
    "arrays": _arrays,
    "copied": _copied,
    "worker": _worker,
    "past": _bypass,
    "hides": _hides,
    "reaches": _reaches,
    "need_weights": _argument("need_weights"),
    "parts": _parts,
    "passes": _passes,
    "workers": _workers,
    "goes": _goes,
    "collected": _collected,
    "batch_of": _batch_of,
    "hot": _hot,
    "via": _via,
    "frequency": lambda module, node: frequency(module, node).label,
    "throttled": lambda module, node: _flag(places.throttled(module, node)),
    "phase": lambda module, node: phase(module, node).value,
    "grad": lambda module, node: grad(module, node).value,
    "context": _context,
    "compiled": lambda module, node: _flag(compiled(module, node)),
    "guarded": lambda module, node: _flag(places.main_guarded(module, node)),
    "sends": _sends,
    "python": _python,
    "reads": _reads,
    "again": _again,
    "back": _back,
    "legacy": _of_call(lambda module, call: legacy_constructor(module, call) or "no"),
    "cast": _of_call(lambda module, call: legacy_cast(module, call) or "no"),
    "moves": _of_call(lambda module, call: _flag(reported_as_move(module, call))),
    "accelerated": lambda module, _: _flag(accelerated(module)),
}
