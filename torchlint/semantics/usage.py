"""What becomes of a value: the calls it is handed to, through names, indexing, loops and callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.families import HOST_ALGORITHMS
from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.names import Binding, BindingKind, ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Onward, Standing, Use, UseKind, Verdict, sinks, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def handed_to(module: Module, node: cst.BaseExpression, asked: Callable[[Module, cst.Call], bool]) -> bool:
    """Return whether a call of which ``asked`` holds gets the value of ``node`` each time."""
    return True in verdicts(module, node, _HandedTo(asked))


def receivers(module: Module, node: cst.BaseExpression) -> Iterator[cst.Call]:
    """Return the calls that get the value of ``node``, also once a loop has collected it, nearest first."""
    return sinks(module, node, _received)


@dataclass(frozen=True, slots=True)
class _HandedTo:
    """Whether a question is answered yes by a call that gets a value in the same iteration."""

    asked: Callable[[Module, cst.Call], bool]

    def __call__(self, module: Module, use: Use) -> Verdict[bool]:
        onward = _onward(module, use, collected=False)
        return (self.asked(module, use.call), *onward) if use.kind is UseKind.ARGUMENT else onward


def _received(module: Module, use: Use) -> Verdict[cst.Call]:
    """Return a call that gets a value, also once a loop has collected it."""
    onward = _onward(module, use, collected=True)
    return (use.call, *onward) if use.kind is UseKind.ARGUMENT else onward


def _onward(module: Module, use: Use, *, collected: bool) -> tuple[Onward | Standing, ...]:
    """Return where a value goes on, or what is computed from it."""
    match use.kind:
        case UseKind.ARGUMENT:
            entered = (ONWARD,) if _takes_in(module, use.call) else ()
            updated = _reads_of_updated(module, use.call) if collected else ()
            return (Standing(use.call), *entered, *updated)
        case UseKind.ASSIGNED | UseKind.AUGMENTS | UseKind.AUGMENTED:
            target = use.by.target if isinstance(use.by, cst.AugAssign) else use.by
            binding = module.binding_of(target)
            return _reads_of(module, target, [binding] if binding is not None else [], collected)
        case UseKind.STORED:
            if isinstance(use.by, cst.Subscript) and isinstance(use.by.value, cst.Name):
                # What goes into a dictionary or an array is handed on with it.
                bindings = module.names.bindings_at(use.by.value.value, use.by.value)
                return _reads_of(module, use.by, bindings, collected)
            return (ONWARD,) if collected and isinstance(use.by, cst.Attribute) else ()
        case UseKind.UNPACKED | UseKind.ITERATED | UseKind.RETURNED | UseKind.YIELDED | UseKind.FORMATTED:
            return (ONWARD,)
    return (Standing(use.by),) if isinstance(use.by, cst.BaseExpression) and use.kind in COMPUTING else ()


def _takes_in(module: Module, call: cst.Call) -> bool:
    """Return whether a value goes on inside of what takes it: a function, or a list of the round."""
    if isinstance(module.callee(call), cst.FunctionDef):
        return True
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value in FILLING
        and isinstance(func.value, cst.Name)
        and filled_here(module, func.value)
    )


FILLING = frozenset({"append", "extend", "insert"})
"""The methods by which a list takes a value in."""


def filled_here(module: Module, owner: cst.BaseExpression) -> bool:
    """Return whether a list is made anew in each round of the hot loop, which is done with it at its end."""
    bindings = module.bindings(owner)
    around = [loop for loop in module.flow.loops(owner) if places.heat(module, loop) is places.Heat.HOT]
    return bool(bindings) and all(
        binding.kind is BindingKind.ASSIGN and (not around or module.tree.contains(around[0], binding.node))
        for binding in bindings
    )


COMPUTING = frozenset(
    {UseKind.METHOD, UseKind.CALLED, UseKind.ATTRIBUTE, UseKind.ITEM, UseKind.INDEX, UseKind.ELEMENT}
    | {UseKind.OPERAND, UseKind.COMPARED, UseKind.CHOICE, UseKind.TESTED, UseKind.AWAITED, UseKind.OTHER}
)
"""Uses whose result stands for the value that it is computed from."""


def _reads_of(
    module: Module, target: cst.CSTNode, bindings: Iterable[Binding], collected: bool
) -> tuple[Standing, ...]:
    """Return the later reads of what is assigned, in the same iteration of the loop around it if not all."""
    loops = () if collected else module.flow.loops(target)
    hot = (loop for loop in loops if places.heat(module, loop) is places.Heat.HOT)
    loop = next(hot, next(iter(loops), None))
    reads = (module.uses(binding) for binding in bindings)
    return tuple(
        Standing(read)
        for found in reads
        for read in (found if loop is None else module.tree.within(loop, found))
        if _may_follow(module, target, read)
    )


def reads_in_iteration(module: Module, target: cst.CSTNode) -> tuple[Standing, ...]:
    """Return where the variable just assigned is read in the same iteration of the hot loop."""
    binding = module.binding_of(target)
    return _reads_of(module, target, [binding] if binding is not None else [], collected=False)


def _may_follow(module: Module, store: cst.CSTNode, read: cst.CSTNode) -> bool:
    """Return whether a read may see a store: below it, in a loop around both, or in another function."""
    tree = module.tree
    if tree.is_elsewhere(read) or tree.order[store] < tree.order[read]:
        return True
    if module.function(store) is not module.function(read):
        return True
    return any(tree.contains(loop, read) for loop in module.flow.loops(store)[-1:])


def _reads_of_updated(module: Module, call: cst.Call) -> tuple[Standing, ...]:
    """Return the reads of the dictionary that ``own.update(…)`` puts its argument into."""
    match call.func:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name("update")):
            return tuple(Standing(binding) for binding in module.bindings(owner))
    return ()


_ENGINES = frozenset(
    {"run", "infer", "inference", "setInput", "set_input", "set_tensor", "copy_from_cpu"}
    | {"predict", "predict_proba", "fit", "partial_fit"}
    | {"decode", "batch_decode", "decode_batch", "detokenize", "ids_to_tokens", "convert_ids_to_tokens"}
)
# Libraries whose algorithms have no counterpart on the device.
_HOST_LIBRARIES = frozenset(
    {"scipy", "sklearn", "skimage", "cv2", "PIL", "librosa", "soundfile", "faiss", "numba", "networkx"}
    | {"onnxruntime", "pycocotools", "editdistance", "jiwer", "nltk", "rouge_score", "sacrebleu", "lap"}
    | {"pyworld", "pesq", "pystoi", "mir_eval", "museval", "parselmouth", "resampy", "kaldiio"}
    | {"trimesh", "open3d", "shapely", "pandas", "h5py", "umap", "hdbscan", "SimpleITK", "nibabel"}
    | {"Bio", "ase", "mdtraj", "openmm", "pymatgen", "rdkit"}
    # Lattices take the lengths of the utterances from the host.
    | {"k2"}
)
# What scores predictions, and functions of single numbers, exist for tensors as well.
_ON_DEVICE_TOO = ("sklearn.metrics", "scipy.special")


def feeds_host_engine(module: Module, call: cst.Call) -> bool:
    """Return whether ``call`` hands its input to something other than torch that computes on the host.

    An inference engine's session, an estimator of scikit-learn, an algorithm of SciPy, what makes text of
    numbers, or numbers of sounds and pictures.
    """
    qualified = module.qualified(call.func)
    if last_name(call.func) in HOST_ALGORITHMS:
        return True
    if qualified is not None:
        return qualified.partition(".")[0] in _HOST_LIBRARIES and not qualified.startswith(_ON_DEVICE_TOO)
    if module.value(call.func).kind is Kind.MODULE:
        return False
    if ends(last_name(call.func), Role.PREPROCESSING):
        return True
    if not isinstance(call.func, cst.Attribute):
        return False
    if isinstance(call.func.value, cst.Name) and _of_host_library(module, call.func.value):
        return True
    if call.func.attr.value not in _ENGINES:
        return False
    owner = module.value(call.func.value)
    return owner.kind in (Kind.UNKNOWN, Kind.OBJECT) and owner.definition is None


def _of_host_library(module: Module, name: cst.Name) -> bool:
    """Return whether a variable is what a library of the host made: ``index = faiss.IndexFlatL2(8)``."""
    makers = [
        module.qualified(binding.value.func) or ""
        for binding in module.bindings(name)
        if isinstance(binding.value, cst.Call) and not binding.path
    ]
    return bool(makers) and all(
        maker.partition(".")[0] in _HOST_LIBRARIES or maker.startswith(("torchaudio.io.", "torchvision.io."))
        for maker in makers
    )


def method_call(module: Module, call: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """Return the receiver and name of ``receiver.name(...)``; None for library functions."""
    if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
        return call.func.value, call.func.attr.value
    return None


_READING_BY_NAME = frozenset(f"builtins.{name}" for name in ("globals", "eval", "exec", "locals", "vars"))


@remembered
def _reading_by_name(module: Module) -> list[tuple[cst.Call, str]]:
    """Return the calls that read names that are not spelt, or may."""
    called = ((call, module.qualified(call.func)) for call in module.tree.nodes(cst.Call))
    return [(call, name) for call, name in called if name is not None and name in _READING_BY_NAME]


def uses_by_name(module: Module, binding: Binding) -> bool:
    """Return whether code may read a name otherwise: by ``locals()``, ``eval``, as an attribute."""
    if binding.scope.kind is ScopeKind.CLASS:
        return True
    function = module.function(binding.node)
    everywhere = {"builtins.globals", "builtins.eval", "builtins.exec"}
    for call, name in _reading_by_name(module):
        here = module.function(call) is function
        if name in everywhere if function is None else name in ("builtins.eval", "builtins.exec") and here:
            return True
        if here and (name == "builtins.locals" or (name == "builtins.vars" and not call.args)):
            return True
    return False
