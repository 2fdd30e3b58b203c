"""Enumerations with cheap hashing and comparison, for values that are compared millions of times."""

from __future__ import annotations

import enum


class IdentityEnum(enum.Enum):
    """An enumeration whose members are hashed by identity; ``Enum`` hashes their names in Python code."""

    __hash__ = object.__hash__
