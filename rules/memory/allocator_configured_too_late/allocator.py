"""The configuration of the allocator of device memory: where a file sets it, and whether torch reads it.

torch reads the variable once, when CUDA is initialised: by the first tensor on the device, or by a function
that asks the driver for more than how many devices there are. The backend alone is read when torch is
imported, and another one found later is an error. Measured with 2.11 on an H100; the headers of 2.13 and 2.15
and the sources of older releases say the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint.semantics.environmentvariables import (
    Setting,
    found_before,
    imports_torch,
    inherited_by_others,
    initialises_cuda,
    settings,
    settings_above,
)

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

CUDA_VARIABLE: Final = "PYTORCH_CUDA_ALLOC_CONF"
"""The name that every release reads."""

COMMON_VARIABLE: Final = "PYTORCH_ALLOC_CONF"
"""The name for all accelerators, which torch reads since 2.9."""

_READ = frozenset({CUDA_VARIABLE, COMMON_VARIABLE, "PYTORCH_HIP_ALLOC_CONF"})

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
OPTIONS: Final = frozenset([*_VALUED.split(), *_SWITCHED.split()])
"""Every option that some release knows."""

_SWITCHES = frozenset(_SWITCHED.split())
_SMALLEST_SPLIT = 20
_NUMBER = re.compile(r"\d+(?:\.\d*)?")


def configurations(module: Module, node: cst.Assign | cst.Call) -> Iterator[Setting]:
    """Return what an assignment or a call sets that configures the allocator, or is meant to."""
    return (setting for setting in settings(module, node) if _is_for_allocator(setting.variable))


def _is_for_allocator(variable: str) -> bool:
    """Return whether a variable configures the allocator, or is meant to."""
    return (variable.startswith("PYTORCH_") and "ALLOC" in variable) or "CUDA_ALLOC_CONF" in variable


# --- what is written --------------------------------------------------------------------------------


def misspelt_variable(setting: Setting) -> str | None:
    """Return the variable that is meant where no release and no other accelerator reads the one
    that is set.
    """
    name = setting.variable
    if name.startswith("PYTORCH_") and name.endswith("_ALLOC_CONF"):
        return None
    return next(iter(difflib.get_close_matches(name, sorted(_READ), 1, 0.8)), None)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What torch refuses in a configuration: the words, what is wrong with them, and the right ones.

    Where what was meant is not certain, ``remedy`` says what may be written.
    """

    words: str
    why: str
    right: str | None
    remedy: str


def mistakes(setting: Setting) -> Iterator[Mistake]:
    """Yield the options that no release knows, and values that none accepts."""
    text = setting.text
    if text is None or setting.variable not in _READ:
        return
    for words, key, colon, value in _options(text):
        if key not in OPTIONS:
            why, right = f"`{key}` is not an allocator option", _meant(key, colon, value)
            yield Mistake(words, why, right, f"Remove `{words}`")
        elif not value:
            example = f", such as `{key}:True`" if key in _SWITCHES else ""
            yield Mistake(words, f"`{key}` has no value", None, f"Give `{key}` a value{example}")
        elif ";" in value and ":" in value:
            parted = re.sub(r"\s*;\s*", ",", words)
            why = "options are separated by commas, not semicolons"
            yield Mistake(words, why, parted, f"Use `{parted}`")
        elif key in _SWITCHES and value not in ("True", "False"):
            right = value.capitalize() if value.lower() in ("true", "false") else None
            right = {"1": "True", "0": "False"}.get(value, right)
            why = f"`{key}` must be `True` or `False`"
            remedy = f"Use `{key}:True` or `{key}:False`"
            yield Mistake(words, why, f"{key}:{right}" if right else None, remedy)
        elif key == "max_split_size_mb" and value.isdecimal() and int(value) < _SMALLEST_SPLIT:
            why = f"`{key}` must be at least {_SMALLEST_SPLIT}"
            yield Mistake(words, why, None, f"Use `{key}:{_SMALLEST_SPLIT}` or a larger value")
        elif key == "garbage_collection_threshold" and _NUMBER.fullmatch(value) and not 0 < float(value) < 1:
            why = f"`{key}` must be between 0 and 1"
            yield Mistake(words, why, None, f"Use a fraction, such as `{key}:0.8`")


def _options(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the options of a configuration: each as it is written, and its key, colon and value.

    A comma parts two of them, but none between brackets: ``roundup_power2_divisions:[256:1,512:2]``.
    """
    for option in re.split(r",(?![^\[]*\])", text):
        if option.strip():
            key, colon, value = (part.strip() for part in option.partition(":"))
            yield option.strip(), key, colon, value


def _meant(key: str, colon: str, value: str) -> str | None:
    """Return the setting as torch reads it, for a misspelt one such as ``max_split_size_mb=128``."""
    if not colon and "=" in key:
        key, _, value = (part.strip() for part in key.partition("="))
    if ";" in value or not value:
        return None
    close = difflib.get_close_matches(key, sorted(OPTIONS), 1, 0.75)
    return f"{close[0]}:{value}" if close else None


def sets_backend(setting: Setting) -> bool:
    """Return whether the configuration asks for another backend than the native one."""
    return any(
        key == "backend" and value and not value.startswith("native")
        for _, key, _, value in _options(setting.text or "")
    )


# --- when it is written -----------------------------------------------------------------------------


def too_late(module: Module, setting: Setting) -> cst.CSTNode | None:
    """Return what has certainly made torch read the configuration before a variable is set.

    None as well where the file sets it earlier, too, or starts other processes, which inherit it.
    """
    if inherited_by_others(module) or setting.variable not in _READ:
        return None
    if any(earlier.variable in _READ for earlier in settings_above(module, setting)):
        return None
    return found_before(module, setting.node, imports_torch if sets_backend(setting) else initialises_cuda)
