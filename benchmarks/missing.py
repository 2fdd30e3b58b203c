"""What libraries gave up of which the table of upgrades says nothing: read from their releases.

Two lists for each library: the public names that a release has and the next one that was looked at lacks,
and the names of which the newest one says that they are deprecated. Much of it nobody needs to be told of:
`LEFT_OUT` says what, and why. What is on neither list is for who extends the table.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.libraries import Library
from torchlint.semantics.api.upgrades import UPGRADES
from torchlint.semantics.names import canonical

PACKAGES = ("torch", "torchvision", "torchaudio")
LEFT_OUT = (
    (
        r"torch\.(ao|quantization|nn\.(intrinsic|qat|quantized|quantizable))\b",
        "quantization left for torchao as a whole; the functions that start it have rows",
    ),
    (
        (
            r"torch\.utils\.data\.(datapipes|communication|datasets|dataloader_experimental|graph\w*|sharding|"
            r"gen_pyi|backward_compatibility)\b|torch\.utils\.data\.dataset\.(\w*DataPipe|DataChunk)"
        ),
        "data pipes were a beta, and left for torchdata as a whole",
    ),
    (
        (
            r"torch\.distributed\.(pipeline\.sync|fsdp\.(flat_param|flatten_params_wrapper|utils|"
            r"fully_sharded_data_parallel|wrap\.ConfigAutoWrap|(wrap\.)?ParamExecOrderWrapPolicy)|"
            r"checkpoint\.(F|f|state_dict\.|staging)|distributed_c10d\.exception_handler|"
            r"tensor\.(parallel\.(ddp|fsdp|multihead|style\.SequenceParallel)|placement_types)|launch\.main|"
            r"elastic\.multiprocessing)"
        ),
        "parts of parallel training that were internal or experimental; what is called has rows",
    ),
    (
        (
            r"torch\.(autograd\.(profiler|profiler_util|profiler_legacy|gradcheck|function\.FunctionCtx)|"
            r"profiler\.profiler\._|overrides|package|hub\.import|jit\.(cuda|frontend|quantized\.apply)|numa|manager_path|types|"
            r"utils\.(hipify|benchmark\.examples|flop_counter|cpp_extension|mkldnn|\w*minidumps\w*)|"
            r"multiprocessing\.reductions|optim\.functional|nn\.modules\.(module\.Module|rnn)|"
            r"nn\.parallel\.scatter_gather|cuda\.(tunable|green_contexts)|export\.Argument|"
            r"functional\.lu_unpack|tensor\.Tensor|autocast_mode\.autocast_decorator|nn\.utils\.weight_norm\.)"
        ),
        "helpers and methods that no page documents, or that are reached through objects",
    ),
    (
        (
            r"torch\.(cpu\.amp\.autocast_mode|utils\.data\.dataset\.ConcatDataset\.cumm|"
            r"distributions\.distribution\.|nn\.attention\.flex_attention\.flex_attention)"
        ),
        "only a method or one parameter of it is given up, or it has a row where it is public",
    ),
    (
        (
            r"torchvision\.(models\.quantization|datasets\.\w+\.\w+|transforms\.v2\.(utils|functional\.(convert_dtype|get_spatial_size)_)|"
            r"io\.video_reader)"
        ),
        "helpers that no page documents, and kernels of a beta that its functions call",
    ),
    (
        r"torchaudio\.(backend|io|kaldi_io|sox_effects|utils\.sox_utils)(\.(common|\w*_backend))*(\.(load|save))?$",
        "modules, of whose contents there are rows",
    ),
)
"""Patterns of names that have no row on purpose, and the reason."""

_HOMES: defaultdict[str, list[str]] = defaultdict(list)
for _row in UPGRADES:
    _HOMES[canonical(_row.symbol).rpartition(".")[2]].append(canonical(_row.symbol).rpartition(".")[0])
_OTHER_PEOPLES = re.compile(r"\b_|\.(test|testing|prototype|fx|onnx|_inductor)\b|setup")


def missing(libraries: Mapping[str, Library], package: str) -> dict[str, Any]:
    """Return the two lists for one library, whose releases are given oldest first,
    and how many are left out.
    """
    gone: dict[str, list[str]] = {}
    left_out: Counter[str] = Counter()

    def lacking(names: Iterable[str]) -> list[str]:
        unknown = sorted(name for name in set(names) if not _known(name))
        left_out.update(reason for name in unknown if (reason := _left_out(name)))
        return [name for name in unknown if not _left_out(name)]

    before: set[str] = set()
    for release, library in libraries.items():
        now = set(public_names(library, package))
        # What is handed on by ``import *`` is still there.
        lost = lacking(name for name in before - now if library.symbol(name) is None)
        if lost:
            gone[release] = lost
        before = now
    newest = list(libraries.values())[-1:]
    said = lacking(name for library in newest for name in _given_up(library, package))
    return {"gone": gone, "deprecated": said, "left out": dict(sorted(left_out.items()))}


def _left_out(name: str) -> str | None:
    return next((reason for pattern, reason in LEFT_OUT if re.match(pattern, name)), None)


def _known(name: str) -> bool:
    """Return whether a row is about what a module defines, there or where a package above hands it on."""
    module, _, last = canonical(name).rpartition(".")
    return any(module == home or module.startswith(f"{home}.") for home in _HOMES.get(last, ()))


def public_names(library: Library, package: str) -> Iterator[str]:
    """Yield the functions and classes of public modules, by the modules that define them or hand them on."""
    for module, tree in library.modules(package):
        if _OTHER_PEOPLES.search(module):
            continue
        handed_on = library.is_package(module)
        for name in _bound(tree.body, imports=handed_on):
            if not name.startswith("_"):
                yield f"{module}.{name}"


def _bound(body: Iterable[ast.stmt], *, imports: bool) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield statement.name
        elif imports and isinstance(statement, ast.ImportFrom) and statement.level:
            yield from (alias.asname or alias.name for alias in statement.names if alias.name != "*")


def _given_up(library: Library, package: str) -> Iterator[str]:
    """Yield the functions and classes that are decorated as deprecated."""
    for module, tree in library.modules(package):
        if _OTHER_PEOPLES.search(module):
            continue
        for node in tree.body:
            for each in (node, *node.body) if isinstance(node, ast.ClassDef) else (node,):
                if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not each.name.startswith("_"):
                    if any("deprecated" in ast.unparse(mark) for mark in each.decorator_list):
                        owner = f"{module}.{node.name}" if isinstance(node, ast.ClassDef) else module
                        yield owner if each is node and owner != module else f"{owner}.{each.name}"
