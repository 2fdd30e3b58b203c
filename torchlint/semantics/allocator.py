"""The configuration of the allocator of device memory: where a file sets it, and whether torch reads it.

torch reads the variable once, when CUDA is initialised: by the first tensor on the device, or by a function
that asks the driver for more than how many devices there are. The backend alone is read when torch is
imported, and another one found later is an error. Measured with 2.11 on an H100; the headers of 2.13 and 2.15
and the sources of older releases say the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint import rewriting
from torchlint.diagnostics import Edit
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

CUDA_VARIABLE: Final = "PYTORCH_CUDA_ALLOC_CONF"
"""The name that every release reads."""

COMMON_VARIABLE: Final = "PYTORCH_ALLOC_CONF"
"""The name for all accelerators, which torch reads since 2.9."""

_READ = frozenset({CUDA_VARIABLE, COMMON_VARIABLE, "PYTORCH_HIP_ALLOC_CONF"})
_WELL_FORMED = re.compile(r"PYTORCH_([A-Z]+_)?ALLOC_CONF")
_VARIABLE = re.compile(r"PYTORCH_\w*ALLOC\w*|\w*CUDA_ALLOC_CONF\w*")

_VALUED = """
backend expandable_segments_reserve expandable_segments_reserve_by_class garbage_collection_threshold
large_segment_size_mb max_non_split_rounding_mb max_split_size_mb per_process_memory_fraction
pinned_max_cached_size_mb pinned_max_round_threshold_mb pinned_num_register_threads
pinned_reserve_segment_size_mb roundup_bypass_threshold_mb roundup_power2_divisions
"""
_SWITCHED = """
expandable_segments graph_capture_record_stream_reuse pinned_free_catch_all pinned_use_background_threads
pinned_use_cuda_host_register pinned_use_hip_host_register release_lock_on_cudamalloc
release_lock_on_hipmalloc throw_on_cudamalloc_oom
"""
_ASKING = """
can_device_access_peer cudart current_blas_handle current_device current_stream default_stream
get_device_capability get_device_name get_device_properties get_rng_state init initial_seed ipc_collect
is_bf16_supported mem_get_info memory.mem_get_info memory.reset_peak_memory_stats
reset_peak_memory_stats set_per_process_memory_fraction synchronize
"""

OPTIONS: Final = frozenset([*_VALUED.split(), *_SWITCHED.split()])
"""Every option that some release knows."""

_SWITCHES = frozenset(_SWITCHED.split())
_SMALLEST_SPLIT = 20
_NUMBER = re.compile(r"\d+(?:\.\d*)?")
_INITIALISING = frozenset(f"torch.cuda.{name}" for name in _ASKING.split())
_ONLY_NAMING = frozenset(
    {"torch.device", "torch.set_default_device", "torch.autocast", "torch.amp.autocast", "torch.Generator"}
    | {"torch.amp.GradScaler", "torch.cuda.Stream", "torch.cuda.Event"}
)
_FOR_OTHERS = re.compile(r"\bsubprocess\b|\bPopen\b|\bspawn\b|\bexecv|\bProcess\(|os\.system|\bray\.")


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


def settings(module: Module, node: cst.Assign | cst.Call) -> Iterator[Setting]:
    """What an assignment or a call sets that configures the allocator, or is meant to."""
    for name, value in _set(module, node):
        keyword = isinstance(name, cst.Name) and isinstance(module.tree.parent(name), cst.Arg)
        if isinstance(name, cst.SimpleString) or (isinstance(name, cst.Name) and keyword):
            setting = Setting(node, name, value)
            if _VARIABLE.fullmatch(setting.variable):
                yield setting


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
                case _:
                    pass
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


# --- what is written --------------------------------------------------------------------------------


def misspelt_variable(setting: Setting) -> str | None:
    """The variable that is meant where no release and no other accelerator reads the one that is set."""
    name = setting.variable
    if _WELL_FORMED.fullmatch(name):
        return None
    return next(iter(difflib.get_close_matches(name, sorted(_READ), 1, 0.8)), None)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What torch refuses in a configuration: the words, what is wrong with them, and the right ones."""

    words: str
    why: str
    right: str | None


def _text(setting: Setting) -> str | None:
    """The configuration, where it is written out."""
    written = isinstance(setting.value, (cst.SimpleString, cst.ConcatenatedString))
    text = setting.value.evaluated_value if written else None  # type: ignore[union-attr]
    return text if isinstance(text, str) else None


def mistakes(setting: Setting) -> Iterator[Mistake]:
    """The options that no release knows, and values that none accepts."""
    text = _text(setting)
    if text is None or setting.variable not in _READ:
        return
    for option in re.split(r",(?![^\[]*\])", text):
        key, colon, value = (part.strip() for part in option.partition(":"))
        words = option.strip()
        if not words:
            continue
        if key not in OPTIONS:
            yield Mistake(words, f"`{key}` is no option of the allocator", _meant(key, colon, value))
        elif not value:
            yield Mistake(words, f"`{key}` has no value", None)
        elif ";" in value and ":" in value:
            parted = re.sub(r"\s*;\s*", ",", words)
            yield Mistake(words, "options are parted by commas, not by semicolons", parted)
        elif key in _SWITCHES and value not in ("True", "False"):
            right = value.capitalize() if value.lower() in ("true", "false") else None
            right = {"1": "True", "0": "False"}.get(value, right)
            why = f"`{key}` has to be `True` or `False`, spelt like this"
            yield Mistake(words, why, f"{key}:{right}" if right else None)
        elif key == "max_split_size_mb" and value.isdecimal() and int(value) < _SMALLEST_SPLIT:
            yield Mistake(words, f"`{key}` has to be at least {_SMALLEST_SPLIT}", None)
        elif key == "garbage_collection_threshold" and _NUMBER.fullmatch(value) and not 0 < float(value) < 1:
            yield Mistake(words, f"`{key}` is a share of the memory, between 0 and 1", None)


def _meant(key: str, colon: str, value: str) -> str | None:
    """``max_split_size_mb=128`` and ``max_split_size:128``, as torch wants them."""
    if not colon and "=" in key:
        key, _, value = (part.strip() for part in key.partition("="))
    if ";" in value or not value:
        return None
    close = difflib.get_close_matches(key, sorted(OPTIONS), 1, 0.75)
    return f"{close[0]}:{value}" if close else None


def sets_backend(setting: Setting) -> bool:
    """Whether the configuration asks for another backend than the native one."""
    return re.search(r"backend\s*:\s*(?!\s*native)\w", _text(setting) or "") is not None


# --- when it is written -----------------------------------------------------------------------------


def too_late(module: Module, setting: Setting) -> cst.CSTNode | None:
    """What has certainly made torch read the configuration before a variable is set.

    None as well where the file sets it earlier, too, or starts other processes, which inherit it.
    """
    if _FOR_OTHERS.search(module.tree.text) or setting.variable not in _READ:
        return None
    if any(earlier.variable in _READ for earlier in _settings_above(module, setting)):
        return None
    wanted = _imports if sets_backend(setting) else _initialises
    return _found_before(module, setting.node, wanted, frozenset())


def _settings_above(module: Module, setting: Setting) -> Iterator[Setting]:
    """What is set higher up in the same function, or at the level of the module."""
    order = module.tree.order
    here = module.function(setting.node)
    nodes: list[cst.Assign | cst.Call] = [*module.tree.nodes(cst.Assign), *module.tree.nodes(cst.Call)]
    for node in nodes:
        if order[node] < order[setting.node] and module.function(node) in (None, here):
            yield from settings(module, node)


def _found_before(
    module: Module,
    node: cst.CSTNode,
    wanted: Callable[[Module, cst.CSTNode], bool],
    seen: frozenset[cst.CSTNode],
) -> cst.CSTNode | None:
    """What is wanted and runs before ``node``: above it in its blocks, or above all calls of its function."""
    child = node
    for parent in module.tree.ancestors(node):
        if isinstance(parent, _FUNCTIONS):
            return _found_before_calls(module, parent, wanted, seen)
        if isinstance(parent, (cst.IndentedBlock, cst.SimpleStatementLine, cst.Module)):
            for statement in parent.body:
                if statement is child:
                    break
                found = _first(module, statement, wanted, seen)
                if found is not None:
                    return found
        child = parent
    return None


def _found_before_calls(
    module: Module,
    function: cst.FunctionDef | cst.Lambda,
    wanted: Callable[[Module, cst.CSTNode], bool],
    seen: frozenset[cst.CSTNode],
) -> cst.CSTNode | None:
    """What is wanted and runs before every call of a function that sets a variable."""
    if function in seen:
        return None
    calls = module.callers(function)
    if calls:
        found = [_found_before(module, call, wanted, seen | {function}) for call in calls]
        return None if None in found else found[0]
    # Others call it, once the whole module has run.
    for statement in module.tree.root.body:
        made = None if _is_guard(statement) else _first(module, statement, wanted, seen | {function})
        if made is not None:
            return made
    return None


def _first(
    module: Module,
    node: cst.CSTNode,
    wanted: Callable[[Module, cst.CSTNode], bool],
    seen: frozenset[cst.CSTNode],
) -> cst.CSTNode | None:
    """The first part of a statement that is wanted, or that calls a function of the file which holds it."""
    if isinstance(node, (*_FUNCTIONS, cst.ClassDef, cst.ExceptHandler)):
        return None
    if wanted(module, node):
        return node
    if isinstance(node, cst.If) and not (_is_guard(node) or _OF_DEVICES.search(module.source(node.test))):
        return None
    for part in node.children:
        found = _first(module, part, wanted, seen)
        if found is not None:
            return found
    if isinstance(node, cst.Call):
        callee = module.callee(node)
        if isinstance(callee, cst.FunctionDef) and callee not in seen and len(seen) < _DEPTH:
            if _first(module, callee.body, wanted, seen | {callee}) is not None:
                return node
    return None


_DEPTH = 6
_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_OF_DEVICES = re.compile(r"cuda|gpu|device|accelerator", re.IGNORECASE)
_IMPORTING = frozenset({"torch", "torchvision", "torchaudio"})


def _is_guard(node: cst.CSTNode) -> bool:
    """``if __name__ == "__main__":``."""
    match node:
        case cst.If(test=cst.Comparison(left=cst.Name("__name__"))):
            return True
        case _:
            return False


def _imports(module: Module, node: cst.CSTNode) -> bool:
    """Whether torch is imported, itself or by one of its libraries."""
    names: list[cst.BaseExpression | None] = []
    if isinstance(node, cst.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, cst.ImportFrom) and not node.relative:
        names = [node.module]
    return any(module.source(name).partition(".")[0] in _IMPORTING for name in names if name is not None)


def _initialises(module: Module, node: cst.CSTNode) -> bool:
    """Whether a call makes torch initialise CUDA, where there is a device."""
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


def moved_up(module: Module, setting: Setting, used: cst.CSTNode) -> tuple[Edit, ...] | None:
    """The edits that set a variable above what has made torch read it, in the same block.

    None where a comment above it would be left behind, or the line holds more than this.
    """
    parent = module.tree.parent(setting.node)
    statement = module.tree.parent(parent) if isinstance(parent, cst.Expr) else parent
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    if any(line.comment is not None for line in statement.leading_lines):
        return None
    block = module.tree.parent(statement)
    around = (used, *module.tree.ancestors(used))
    target = next((node for node in around if module.tree.parent(node) is block), None)
    if target is None or not isinstance(setting.value, cst.SimpleString):
        return None
    if not _means_the_same(module, setting, target):
        return None
    comment = statement.trailing_whitespace.comment
    code = module.source(setting.node) + (f"  {comment.value}" if comment is not None else "")
    above = rewriting.insert_before(module.tree, target, code)
    below = module.remove_statement(setting.node)
    return None if above is None or below is None else (*above, *below)


def _means_the_same(module: Module, setting: Setting, at: cst.CSTNode) -> bool:
    """Whether the name of the environment, as the setting spells it, is bound at another place, too."""
    node = setting.node
    owners = [node.func] if isinstance(node, cst.Call) else [target.target for target in node.targets]
    for owner in owners:
        named = owner.value if isinstance(owner, cst.Subscript) else owner
        qualified = module.qualified(named)
        if qualified is None or module.names.spelling(qualified, at) != module.source(named):
            return False
    return True
