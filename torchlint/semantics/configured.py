"""What is set for a program from outside: the options of its command line, and its configuration files.

A value that comes from a configuration file is followed back to the call that reads the file
(``yaml.safe_load``, ``OmegaConf.load``, ``json.load``), or to the function that ``hydra.main`` hands it to,
through names, attributes, items, functions and files. The keys on the way are looked up in the file.

What is found is a default: a command line, or whoever edits the file, may ask for another value. So it is no
constant of the program, and rules that need certainty do not ask for it. A value that the program sets anew
under the same key is not known, nor is one that comes from two files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import NamedTuple

import libcst as cst

from torchlint.documents import OPAQUE, Entry, Scalar, Table
from torchlint.semantics.api.families import is_training_arguments
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.identifiers import setting_default
from torchlint.semantics.module import Module
from torchlint.semantics.names import canonical
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Item, Path, Source, Through, onward, sole, traced
from torchlint.semantics.spellings import last_name, parts_of_display
from torchlint.semantics.values import MISSING

_READERS = frozenset(
    {
        *("yaml.load", "yaml.safe_load", "yaml.full_load", "yaml.unsafe_load", "json.load", "json.loads"),
        "omegaconf.OmegaConf.load",
    }
)
_RESOLVING = "omegaconf."
_INSTANTIATE = frozenset({"hydra.utils.instantiate", "hydra.utils.call"})
# What makes the same settings of the first argument, or of ``**`` settings.
_REMAKING = frozenset(
    {
        *("omegaconf.OmegaConf.create", "omegaconf.OmegaConf.to_container", "omegaconf.DictConfig"),
        *("argparse.Namespace", "types.SimpleNamespace", "builtins.dict", "copy.copy", "copy.deepcopy"),
        *("easydict.EasyDict", "munch.Munch", "munch.munchify", "box.Box", "addict.Dict"),
        *("ml_collections.ConfigDict",),
    }
)
_MERGE = "omegaconf.OmegaConf.merge"
_COMMAND_LINE = frozenset({"omegaconf.OmegaConf.from_cli", "omegaconf.OmegaConf.from_dotlist"})
_CHANGING = frozenset(
    {"update", "merge_with", "merge_from_list", "merge_from_file"} | {"pop", "clear", "popitem"}
)
_CHANGING_FUNCTIONS = frozenset({"builtins.setattr", "omegaconf.OmegaConf.update"})
_SAME_PATH = frozenset(
    {
        *("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "builtins.str", "os.fspath"),
        *("os.path.abspath", "os.path.realpath", "os.path.expanduser", "os.path.normpath"),
        *("hydra.utils.to_absolute_path",),
    }
)
_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv"})
_OPENING = frozenset({"builtins.open", "io.open", "codecs.open"})
_FILE_METHODS = frozenset({"open", "read", "read_text", "read_bytes"})
_PATH_METHODS = frozenset({"resolve", "absolute", "expanduser", "as_posix"})
_PARSING_FILES = frozenset({"parse_json_file", "parse_yaml_file"})


class Place(NamedTuple):
    """Some keys in a configuration file; with what the defaults lists of ``hydra`` make of it."""

    file: FilePath
    keys: tuple[str | int, ...]
    hydra: bool
    resolved: bool


@dataclass(frozen=True, slots=True)
class Configured:
    """What a configuration file says of a parameter of a call.

    ``entry`` is the value, or the mapping that has no such key; ``value`` is ``MISSING`` then. ``key`` is
    what the file calls it. What stands there is the concern of this call alone if it is ``exclusive``.
    """

    key: str
    entry: Scalar | Table
    value: object
    exclusive: bool


# --- arguments ---------------------------------------------------------------------------------------------


def configured(module: Module, call: cst.Call, name: str) -> Configured | None:
    """Return what a configuration file says of a parameter of a call; None where none does,
    or it is not plain.

    The parameter is given an item of the configuration (``num_workers=cfg.num_workers``), or is among those
    that are unpacked (``**cfg.loader``) or instantiated.
    """
    if module.link is None:
        return None
    module = module.home(call)
    argument = module.argument(call, name)
    if argument.given:
        node = argument.node
        place = _place(module, node) if node is not None else None
        if place is None or not place.keys or not isinstance(place.keys[-1], str):
            return None
        return _scalar(module, place, place.keys[-1])
    if argument.absent:
        return None
    place = _unpacked(module, call)
    table = _entry(module, place) if place is not None else None
    if place is None or not isinstance(table, Table):
        return None
    if name in table.items:
        return _scalar(module, place._replace(keys=(*place.keys, name)), name)
    if _is_set(module, place.file, name):
        return None
    return Configured(name, table, MISSING, not table.shared and _is_exclusive(module, place))


def instantiated(module: Module, call: cst.Call) -> str | None:
    """Return the dotted name of what ``hydra.utils.instantiate(cfg.loader)`` makes an instance of."""
    if module.link is None or not call.args or module.qualified(call.func) not in _INSTANTIATE:
        return None
    place = _unpacked(module, call)
    table = _entry(module, place) if place is not None else None
    if not isinstance(table, Table):
        return None
    target, partial = table.items.get("_target_"), table.items.get("_partial_")
    if not isinstance(target, Scalar) or not isinstance(target.value, str) or partial is not None:
        return None
    return canonical(target.value)


def parses_file(call: cst.Call) -> bool:
    """Return whether a call makes arguments of what a file says: ``parser.parse_yaml_file(…)``."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _PARSING_FILES


def parses_training_arguments(module: Module, call: cst.Call) -> bool:
    """Return whether a call parses a file of training arguments: ``parser.parse_json_file(…)``."""
    if not parses_file(call) or not isinstance(call.func, cst.Attribute):
        return False
    parser = call.func.value
    if isinstance(parser, cst.Name):
        binding = module.names.assignment(parser)
        parser = binding.value if binding is not None and binding.value is not None else parser
    if not isinstance(parser, cst.Call) or last_name(parser.func) != "HfArgumentParser" or not parser.args:
        return False
    listed = parts_of_display(parser.args[0].value)
    return any(is_training_arguments(module.qualified(kind) or "") for kind in listed)


def settings_of(module: Module, call: cst.Call) -> Table | None:
    """Return the mapping of a configuration file that a call is given as its keywords."""
    if module.link is None:
        return None
    module = module.home(call)
    place = _unpacked(module, call)
    table = _entry(module, place) if place is not None else None
    return table if isinstance(table, Table) else None


def _unpacked(module: Module, call: cst.Call) -> Place | None:
    """Return where the mapping is that a call is given as its keywords, if that is the only one."""
    starred = [argument for argument in call.args if argument.star]
    if module.qualified(call.func) in _INSTANTIATE and not starred:
        first = call.args[0] if call.args else None
        return _place(module, first.value) if first is not None and first.keyword is None else None
    if parses_file(call) and len(call.args) == 1:
        file = sole(_files(module, call.args[0].value))
        return Place(file, (), hydra=False, resolved=False) if file is not None else None
    if len(starred) != 1 or starred[0].star != "**":
        return None
    return _place(module, starred[0].value)


def _scalar(module: Module, place: Place, name: str) -> Configured | None:
    entry = _entry(module, place)
    if not isinstance(entry, Scalar) or entry.value is OPAQUE or _is_set(module, place.file, name):
        return None
    key = name if entry.key is None else entry.document.text_of(entry.key).strip("\"'")
    return Configured(key, entry, entry.value, not entry.shared and _is_exclusive(module, place))


def _place(module: Module, node: cst.CSTNode) -> Place | None:
    return sole(_read_from(module, node))


def _entry(module: Module, place: Place) -> Entry | None:
    assert module.link is not None
    found: Entry | None = module.link.entry(
        place.file, place.keys, hydra=place.hydra, resolved=place.resolved
    )
    return found


def _is_exclusive(module: Module, place: Place) -> bool:
    """Return whether one place of one program alone has to do with what stands behind some keys."""
    assert module.link is not None
    if not place.keys or module.link.readers(place.file) != 1:
        return False
    word = re.compile(rf"""[."']{re.escape(str(place.keys[-1]))}\b""")
    texts = [each.tree.code for each in (module, *module.companions())]
    return sum(len(word.findall(text)) for text in texts) == 1 and not any("ConfigStore" in t for t in texts)


# --- where settings come from ------------------------------------------------------------------------------


@traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
def _read_from(module: Module, node: cst.CSTNode, path: Path) -> Place | list[Source] | None:
    match node:
        case cst.Param():
            return _handed_by_hydra(module, node, path)
        case cst.Attribute(value=owner, attr=cst.Name(name)) if (
            not SelfAttributes.is_self(owner) and module.qualified(node) is None
        ):
            return onward(owner, path=(name, *path))
        case cst.Call():
            return _called(module, node, path)
        case _:
            return None


def _called(module: Module, call: cst.Call, path: Path) -> Place | list[Source] | None:
    name = module.qualified(call.func)
    first = call.args[0].value if call.args else None
    if name in _READERS and first is not None:
        file = sole(_files(module, first))
        return _at(file, path, resolved=name.startswith(_RESOLVING)) if file is not None else None
    if name in _REMAKING and len([a for a in call.args if not a.keyword]) == 1 and first is not None:
        return onward(first, path=path)
    if name == _MERGE:
        given = [argument.value for argument in call.args if not _is_command_line(module, argument.value)]
        return onward(given[0], path=path) if len(given) == 1 else None
    if name is None and isinstance(call.func, cst.Attribute) and call.func.attr.value == "get":
        key = module.value(first).constant if first is not None else MISSING
        return onward(call.func.value, path=(key, *path)) if isinstance(key, str) else None
    if name == "builtins.int" and len(call.args) == 1 and first is not None and not path:
        return onward(first)
    return None


def _is_argument(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is an argument of the command line as it was given: ``sys.argv[1]``."""
    return isinstance(node, cst.Subscript) and module.qualified(node.value) == "sys.argv"


def _at(file: FilePath, path: Path, *, hydra: bool = False, resolved: bool = False) -> Place | None:
    keys = tuple(step for step in path if isinstance(step, (str, int)))
    return Place(file, keys, hydra, resolved) if len(keys) == len(path) else None


def _is_command_line(module: Module, node: cst.BaseExpression) -> bool:
    made: cst.BaseExpression | None = node
    if isinstance(node, cst.Name):
        binding = module.names.assignment(node)
        made = binding.value if binding is not None else None
    return isinstance(made, cst.Call) and module.qualified(made.func) in _COMMAND_LINE


def _handed_by_hydra(module: Module, param: cst.Param, path: Path) -> Place | None:
    """Return the configuration that ``@hydra.main(config_path=…, config_name=…)`` hands to a function."""
    binding = module.binding_of(param)
    function = binding.scope.node if binding is not None else None
    if module.link is None or not isinstance(function, cst.FunctionDef):
        return None
    if not function.params.params or function.params.params[0] is not param:
        return None
    for decorator in function.decorators:
        made = decorator.decorator
        if not isinstance(made, cst.Call) or module.qualified(made.func) != "hydra.main":
            continue
        given: dict[str, object] = {}
        for position, argument in zip(("config_path", "config_name"), made.args, strict=False):
            if argument.keyword is None:
                given[position] = module.value(argument.value).constant
        for argument in made.args:
            if argument.keyword is not None:
                given[argument.keyword.value] = module.value(argument.value).constant
        folder, name = given.get("config_path"), given.get("config_name")
        if not isinstance(name, str) or not isinstance(folder, (str, type(None))):
            return None
        file = module.link.composed(module, folder or "", name)
        return _at(file, path, hydra=True, resolved=True) if file is not None else None
    return None


# --- files -------------------------------------------------------------------------------------------------


class _Named(NamedTuple):
    """The name of a file; ``beside`` if it begins at the folder of the program, and else where that runs."""

    text: str
    beside: bool = False


@traced(Through.RETURNS | Through.PARAMETERS)
def _files(module: Module, node: cst.CSTNode, path: Path) -> FilePath | list[Source] | None:
    """Return the configuration file that something is the name of, or the path, the open file or the text."""
    if path not in ((), (Item.ENTERED,)) or module.link is None:
        return None
    if isinstance(node, cst.Call):
        name = module.qualified(node.func)
        if name in _OPENING and node.args:
            return onward(node.args[0].value)
        if name in _ENVIRONMENT and len(node.args) == 2:
            return onward(node.args[1].value)
        if name is None and isinstance(node.func, cst.Attribute) and node.func.attr.value in _FILE_METHODS:
            return onward(node.func.value)
    if isinstance(node, cst.IfExp):
        # ``sys.argv[1] if len(sys.argv) > 1 else "train.yaml"``
        ways = [way for way in (node.body, node.orelse) if not _is_argument(module, way)]
        return onward(*ways)
    if isinstance(node, cst.Attribute):
        default = setting_default(module, node)
        if default is not None:
            return onward(default)
    named = _name(module, node)
    found: FilePath | None = None
    if named is not None:
        found = module.link.configuration(module, named.text, beside=named.beside)
    return found


def _name(module: Module, node: cst.CSTNode) -> _Named | None:
    """Return the name of a file that an expression is, as far as it is written out."""
    return sole(_names(module, node))


@traced(Through.NOTHING)
def _names(module: Module, node: cst.CSTNode, path: Path) -> _Named | list[Source] | None:
    constant = module.value(node).constant
    if isinstance(constant, str):
        return _Named(constant)
    if module.qualified(node) == "builtins.__file__":
        return _Named("__file__", beside=True)
    match node:
        case cst.Attribute(value=owner, attr=cst.Name("parent")):
            return _above(_name(module, owner))
        case cst.BinaryOperation(operator=cst.Divide()):
            return _joined(_name(module, node.left), _name(module, node.right))
        case cst.Call():
            return _made_path(module, node)
    return None


def _made_path(module: Module, call: cst.Call) -> _Named | list[Source] | None:
    """Return the name of a file that a function or method for paths gives."""
    function, given = module.qualified(call.func), [argument.value for argument in call.args]
    if given and function == "os.path.dirname":
        return _above(_name(module, given[0]))
    if given and (function in _SAME_PATH or function == "os.path.join"):
        found = _name(module, given[0])
        for each in given[1:]:
            found = _joined(found, _name(module, each))
        return found
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _PATH_METHODS:
        return onward(call.func.value)
    return None


def _above(named: _Named | None) -> _Named | None:
    return named and named._replace(text=str(PurePosixPath(named.text).parent))


def _joined(folder: _Named | None, name: _Named | None) -> _Named | None:
    if folder is None or name is None or name.beside:
        return None
    return folder._replace(text=str(PurePosixPath(folder.text) / name.text))


# --- what the program sets itself --------------------------------------------------------------------------


def _is_set(module: Module, file: FilePath, key: str) -> bool:
    """Return whether the program sets a key of a configuration anew, or perhaps any."""
    return any(
        place == file and name in (key, None)
        for each in (module, *module.companions())
        for place, name in _changes(each)
    )


@remembered
def _changes(module: Module) -> tuple[tuple[FilePath, str | None], ...]:
    """Return the keys of configurations that a module sets, with the file; None for any key of it."""
    return tuple(
        (end.file, key)
        for owner, key in _set_items(module)
        for end in _read_from(module, owner)
        if end is not None
    )


def _set_items(module: Module) -> Iterator[tuple[cst.BaseExpression, str | None]]:
    """Yield what a module sets an item of, and under which key."""
    for name, bindings in module.names.attributes.items():
        yield from ((binding.target.value, name) for binding in bindings)
    for assign in module.tree.nodes(cst.Assign):
        for target in assign.targets:
            match target.target:
                case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                    constant = module.value(index).constant
                    yield owner, constant if isinstance(constant, str) else None
    for call in module.tree.nodes(cst.Call):
        if isinstance(call.func, cst.Attribute) and last_name(call.func) in _CHANGING:
            taken = call.args[0].value if call.args and last_name(call.func) == "pop" else None
            key = module.value(taken).constant if taken is not None else MISSING
            yield call.func.value, key if isinstance(key, str) else None
        if call.args and module.qualified(call.func) in _CHANGING_FUNCTIONS:
            yield call.args[0].value, None
