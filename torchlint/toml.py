"""The standard library's TOML reader, and its twin on Python 3.10, under one name."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib as reader
else:
    import tomli as reader

TOMLDecodeError = reader.TOMLDecodeError


# The readers take time and memory in the square of the parts of a dotted key.
_LONGEST_KEY = 500
_KEY = re.compile(r"[\w \t\"'.-]+")


class _BeyondLimitsError(TOMLDecodeError):
    """What is TOML and yet more than the reader, or the interpreter, can take."""

    def __init__(self, message: str) -> None:
        # Releases of the reader differ in what they take.
        ValueError.__init__(self, message)


def loads(text: str) -> dict[str, Any]:
    """Return the document that ``text`` is.

    Raises:
        TOMLDecodeError: it is no TOML, is nested too deeply, or has a number of too many digits.
    """
    if any(match[0].count(".") > _LONGEST_KEY for match in _KEY.finditer(text)):
        raise _BeyondLimitsError("it has a key of too many parts")
    try:
        return reader.loads(text)
    except TOMLDecodeError:
        raise
    except RecursionError as error:
        raise _BeyondLimitsError("it is nested too deeply") from error
    except ValueError as error:
        raise _BeyondLimitsError(str(error).partition(";")[0]) from error


@lru_cache(maxsize=16)
def document(text: str) -> Mapping[str, Any]:
    """Return the document that ``text`` is; an empty one if it is none."""
    try:
        return loads(text)
    except TOMLDecodeError:
        return {}


def table(value: object, *keys: str) -> Mapping[str, Any]:
    """Return the table at a path of keys in a document; an empty one if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
