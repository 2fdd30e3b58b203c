"""Variables of the environment: where a file sets them, and what has certainly run by then.

Libraries read such variables once, when they are loaded or first used; what is set later is never read, and
nothing says so. What runs before a line is told by the blocks of the file and the calls of its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.identifiers import identifiers, named
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.values import MISSING, Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ASKING = """
can_device_access_peer cudart current_blas_handle current_device current_stream default_stream
get_device_capability get_device_name get_device_properties get_rng_state init initial_seed ipc_collect
is_bf16_supported mem_get_info memory.mem_get_info memory.reset_peak_memory_stats
reset_peak_memory_stats set_per_process_memory_fraction synchronize
"""

_INITIALISING = frozenset(f"torch.cuda.{name}" for name in _ASKING.split())
_ONLY_NAMING = frozenset(
    {"torch.device", "torch.set_default_device", "torch.autocast", "torch.amp.autocast", "torch.Generator"}
    | {"torch.amp.GradScaler", "torch.cuda.Stream", "torch.cuda.Event"}
)
# What starts other processes, wherever it comes from; the name of a start method may be text.
_STARTING = frozenset(
    {"subprocess", "Popen", "Process", "spawn", "system", "execv", "execve", "execvp", "execvpe", "ray"}
)


_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_TORCH = frozenset({"torch", "torchvision", "torchaudio"})
_NUMPY = frozenset({"numpy", "scipy", "pandas", "sklearn"})


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable of the environment is set: by which node, and to which expressions."""

    node: cst.Assign | cst.Call
    name: cst.SimpleString | cst.Name
    value: cst.BaseExpression | None

    @property
    def variable(self) -> str:
        """The name of the variable."""
        named = isinstance(self.name, cst.SimpleString)
        return str(self.name.evaluated_value if named else self.name.value)  # type: ignore[union-attr]

    @property
    def text(self) -> str | None:
        """The value, where it is written out."""
        written = isinstance(self.value, (cst.SimpleString, cst.ConcatenatedString))
        text = self.value.evaluated_value if written else None  # type: ignore[union-attr]
        return text if isinstance(text, str) else None


def settings(module: Module, node: cst.Assign | cst.Call) -> Iterator[Setting]:
    """Yield the variables of the environment that an assignment or a call sets."""
    for name, value in _set(module, node):
        keyword = isinstance(name, cst.Name) and isinstance(module.tree.parent(name), cst.Arg)
        if isinstance(name, cst.SimpleString) or (isinstance(name, cst.Name) and keyword):
            yield Setting(node, name, value)


def _set(
    module: Module, node: cst.Assign | cst.Call
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    if isinstance(node, cst.Assign):
        for target in node.targets:
            match target.target:
                case cst.Subscript(
                    value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=name))]
                ) if module.qualified(owner) == "os.environ":
                    yield name, node.value
        return
    called = module.qualified(node.func)
    values = [argument.value for argument in node.args if argument.keyword is None and not argument.star]
    if called in ("os.environ.setdefault", "os.putenv") and len(values) == 2:
        yield values[0], values[1]
    elif called == "os.environ.update":
        for argument in node.args:
            if argument.keyword is not None:
                yield argument.keyword, argument.value
            elif isinstance(argument.value, cst.Dict):
                for element in argument.value.elements:
                    if isinstance(element, cst.DictElement):
                        yield element.key, element.value


def settings_above(module: Module, setting: Setting) -> Iterator[Setting]:
    """Yield what is set higher up in the same function, or at the level of the module."""
    order = module.tree.order
    here = module.function(setting.node)
    nodes: list[cst.Assign | cst.Call] = [*module.tree.nodes(cst.Assign), *module.tree.nodes(cst.Call)]
    for node in nodes:
        if order[node] < order[setting.node] and module.function(node) in (None, here):
            yield from settings(module, node)


def inherited_by_others(module: Module) -> bool:
    """Return whether the file starts other processes, which get what it sets."""
    return not _STARTING.isdisjoint(identifiers(module)) or any(
        string.raw_value == "spawn" for string in module.tree.nodes(cst.SimpleString)
    )


# --- what has run by then ---------------------------------------------------------------------------


def found_before(
    module: Module, node: cst.CSTNode, wanted: Callable[[Module, cst.CSTNode], bool]
) -> cst.CSTNode | None:
    """Return what is wanted and certainly runs before ``node``; None if nothing is seen to.

    It stands above the node in its blocks, or above all calls of its function.
    """
    child = node
    for parent in module.tree.ancestors(node):
        if isinstance(parent, _FUNCTIONS):
            return next(iter(_found_before_calls(module, parent, wanted)), None)
        if isinstance(parent, (cst.IndentedBlock, cst.SimpleStatementLine, cst.Module)):
            for statement in parent.body:
                if statement is child:
                    break
                found = _first(module, statement, wanted)
                if found is not None:
                    return found
        child = parent
    return None


@solved(())
def _found_before_calls(
    module: Module, function: cst.FunctionDef | cst.Lambda, wanted: Callable[[Module, cst.CSTNode], bool]
) -> tuple[cst.CSTNode, ...]:
    """Return what is wanted and runs before every call of a function that sets a variable."""
    calls = module.callers(function)
    if calls:
        found = [found_before(module, call, wanted) for call in calls]
        return () if None in found or found[0] is None else (found[0],)
    # Others call it, once the whole module has run.
    return _first_of_module(module, wanted)


@remembered
def _first_of_module(
    module: Module, wanted: Callable[[Module, cst.CSTNode], bool]
) -> tuple[cst.CSTNode, ...]:
    """Return what is wanted and runs when the file is imported, if anything does."""
    for statement in module.tree.root.body:
        made = None if is_main_guard(statement) else _first(module, statement, wanted)
        if made is not None:
            return (made,)
    return ()


def _first(
    module: Module, node: cst.CSTNode, wanted: Callable[[Module, cst.CSTNode], bool]
) -> cst.CSTNode | None:
    """Return the first part of a statement that is wanted, or that calls a function with it."""
    if isinstance(node, (*_FUNCTIONS, cst.ClassDef, cst.ExceptHandler)):
        return None
    if wanted(module, node):
        return node
    if isinstance(node, cst.If) and not (is_main_guard(node) or _is_about_devices(module, node.test)):
        return None
    for part in module.tree.parts(node):
        found = _first(module, part, wanted)
        if found is not None:
            return found
    if isinstance(node, cst.Call):
        callee = module.callee(node)
        if isinstance(callee, cst.FunctionDef) and _comes_to(module, callee, wanted):
            return node
    return None


def _is_about_devices(module: Module, test: cst.BaseExpression) -> bool:
    return any(has(name, Role.HARDWARE) for name in named(module, test))


@solved(False)
def _comes_to(
    module: Module, function: cst.FunctionDef, wanted: Callable[[Module, cst.CSTNode], bool]
) -> bool:
    """Return whether what is wanted runs when a function does."""
    return _first(module, function.body, wanted) is not None


def is_main_guard(node: cst.CSTNode) -> bool:
    """Return whether it is ``if __name__ == "__main__":``."""
    match node:
        case cst.If(test=cst.Comparison(left=cst.Name("__name__"))):
            return True
        case _:
            return False


def imports_torch(module: Module, node: cst.CSTNode) -> bool:
    """Return whether torch is imported, itself or by one of its libraries."""
    return not _TORCH.isdisjoint(_imported(module, node))


def imports_numpy(module: Module, node: cst.CSTNode) -> bool:
    """Return whether NumPy is imported, itself or by what is built on it."""
    return not _NUMPY.isdisjoint(_imported(module, node))


def _imported(module: Module, node: cst.CSTNode) -> Iterator[str]:
    """Return the packages that a statement imports."""
    names: list[cst.BaseExpression | None] = []
    if isinstance(node, cst.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, cst.ImportFrom) and not node.relative:
        names = [node.module]
    return (module.source(name).partition(".")[0] for name in names if name is not None)


def initialises_cuda(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a call makes torch initialise CUDA, where there is a device."""
    if not isinstance(node, cst.Call):
        return False
    called = module.qualified(node.func)
    if called in _INITIALISING:
        return True
    if called is None and isinstance(node.func, cst.Attribute):
        method = node.func.attr.value
        if method in ("cuda", "pin_memory") and len(node.args) <= 1:
            return True
        if method == "to" and node.args and _is_accelerator(module, node.args[0].value):
            return True
    for argument in node.args:
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if keyword == "device" and called is not None and called.startswith("torch."):
            return called not in _ONLY_NAMING and _is_accelerator(module, argument.value)
        if keyword == "device_map" and isinstance(argument.value, cst.SimpleString):
            return str(argument.value.evaluated_value).startswith(("cuda", "auto"))
    return False


def _is_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    return value.kind in (Kind.DEVICE, Kind.STRING) and value.device is Device.ACCELERATOR


def read_where_unset(module: Module, node: cst.BaseExpression) -> str | None:
    """Return the text that is read from a variable of the environment where that is not set:
    ``os.getenv("PIN", True)``, also by ``str(…)`` and ``….lower()``.
    """
    match node:
        case cst.Call(func=func, args=[_, cst.Arg(value=default)]) if module.qualified(func) in _READING:
            constant = module.value(default).constant
            return None if constant is MISSING or constant is None else str(constant)
        case cst.Call(func=cst.Name("str"), args=[cst.Arg(value=read)]):
            return read_where_unset(module, read)
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name("lower")), args=[]):
            text = read_where_unset(module, read)
            return None if text is None else text.lower()
    return None


_READING = frozenset({"os.environ.get", "os.getenv"})
