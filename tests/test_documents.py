"""Configuration files as text: what stands where, and edits of one key that leave all else alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.documents import (
    MOST_CHARACTERS,
    OPAQUE,
    Document,
    Entry,
    Row,
    Scalar,
    Table,
    added,
    replaced,
)
from torchlint.source import Source, apply
from torchlint.suppressions import lines_of


def document(text: str, name: str = "config.yaml") -> Document:
    return Document(Source(Path(name), text))


def at(text: str, *keys: str | int, name: str = "config.yaml") -> Entry:
    """What stands behind some keys."""
    entry = document(text, name).root
    for key in keys:
        if isinstance(key, int):
            assert isinstance(entry, Row)
            entry = entry.items[key]
        else:
            assert isinstance(entry, Table)
            entry = entry.items[key]
    assert entry is not None
    return entry


def scalar(text: str, *keys: str | int, name: str = "config.yaml") -> Scalar:
    entry = at(text, *keys, name=name)
    assert isinstance(entry, Scalar)
    return entry


def table(text: str, *keys: str | int, name: str = "config.yaml") -> Table:
    entry = at(text, *keys, name=name)
    assert isinstance(entry, Table)
    return entry


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 0", 0),
        ("a: 1_000", 1000),
        ("a: no", False),
        ("a: True", True),
        ("a: ~", None),
        ("a:", None),
        ("a: 0.5", 0.5),
        ("a: '0'", "0"),
        ('a: "x\\ty"', "x\ty"),
        ("a: !!str 0", "0"),
        ("a: !secret 0", OPAQUE),
        ("a: 2020-01-01", OPAQUE),
        ("a: |\n  0\n", "0\n"),
        ("{a: 0}", 0),
        ("'a': 0", 0),
        ("a: 1\na: 0", 0),
        ("b: &b {a: 0}\n<<: *b", 0),
        ("<<: [{a: 0}, {a: 1}]", 0),
        ("<<: {a: 1}\na: 0", 0),
    ],
)
def test_values_are_those_of_yaml(text: str, value: object) -> None:
    found = scalar(text, "a").value
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "# nothing\n",
            "a: [",
            "a:\n\t- b",
            "a: 1\n---\nb: 2",
            "a: *b",
            "a: {b",
            "\x07",
            "a: b: c",
            "- a\nb",
        ),
        *(
            "&a [*a]",
            "&a {b: *a}",
            "a: &a\n  b: *a",
            "[" * 2000,
            "{a: " * 2000,
            "a: 'x",
            "%YAML 9\n---\na: 1",
        ),
        "x" * (MOST_CHARACTERS + 1),
        "a: " + "[1, " * 30_000,
        *("a: !!int x", "? [a, b]\n: 1", "? {a: 1}\n: 2", "!!python/object:os.system {}"),
    ],
)
@pytest.mark.parametrize("name", ["config.yaml", "config.json"])
def test_nothing_makes_it_fail(text: str, name: str) -> None:
    found = document(text, name)
    assert found.root is None or isinstance(found.root, (Table, Row, Scalar))
    assert isinstance(found.comments, tuple) and isinstance(found.inner_rows, frozenset)
    lines_of(found.source)


def test_aliases_take_no_longer_than_their_text() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert isinstance(document("\n".join(lines)).root, Table)


def test_places_are_those_of_the_text() -> None:
    text = "# ä\r\ndata:\r\n  workers: 0  # ö\r\n"
    found = scalar(text, "data", "workers")
    assert text[found.span.start : found.span.end] == "0"
    assert found.key is not None and text[found.key.start : found.key.end] == "workers"
    assert table(text, "data").place == table(text, "data").key


def test_json_may_be_indented_with_tabs() -> None:
    text = '{\n\t"data": {\n\t\t"workers":\t0\n\t}\n}\n'
    assert scalar(text, "data", "workers", name="config.json").value == 0
    assert document("{'a': 0}", "config.json").root is None
    assert document('{"a": 0} # no', "config.json").root is None


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        ("# a\nb: 1 # c\n", ["# a", "# c"]),
        ("a: 'x # y' # z", ["# z"]),
        ("a: x#y", []),
        ("a: |\n  # no\n  # comment\nb: 1 # c", ["# c"]),
        ("a: x\n  # c\n", ["# c"]),
        ("#a\r\nb: [1, # c\r\n2]", ["#a", "# c"]),
        ("a: [", []),
    ],
)
def test_comments(text: str, comments: list[str]) -> None:
    found = document(text)
    assert [found.text_of(span) for span in found.comments] == comments


# --- edits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1", "a: 1\nnew: true"),
        ("a: 1  # c\n\n# d\n", "a: 1  # c\nnew: true\n\n# d\n"),
        ("a: 1\r\nb:\r\n  - 2\r\n", "a: 1\r\nnew: true\r\nb:\r\n  - 2\r\n"),
        ("a: 1\nb: x\n  y\n", "a: 1\nnew: true\nb: x\n  y\n"),
        ("a: 1\nb: |\n  x\n", "a: 1\nnew: true\nb: |\n  x\n"),
        ("a: {b: 1}", "a: {b: 1}\nnew: true"),
        ("a:\n  b: 1\n", None),
        ("? a\n: 1\n", None),
        ("{}", None),
        ("{a: 1}", "{a: 1, new: true}"),
        ("{a: 1, }", "{a: 1, new: true, }"),
        ("{a: [1, 2]}", "{a: [1, 2], new: true}"),
        ("{\n  a: 1,\n  b: 2  # c\n}", "{\n  a: 1,\n  new: true,\n  b: 2  # c\n}"),
        ('{"a": 1}', '{"a": 1, "new": true}'),
        ('{"a":1}', '{"a":1, "new":true}'),
        ('{\r\n\t"a": 1,\r\n\t"b": 2\r\n}', '{\r\n\t"a": 1,\r\n\t"new": true,\r\n\t"b": 2\r\n}'),
    ],
)
def test_a_key_is_added_in_the_style_of_its_neighbours(before: str, after: str | None) -> None:
    name = "config.json" if before.startswith("{\r\n") else "config.yaml"
    edit = added(table(before, name=name), "new", True)
    assert (apply(before, [edit]) if edit is not None else None) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- a: 1\n  b: 2\n", "- a: 1\n  b: 2\n  new: true\n"),
        ("- a: 1\n", "- a: 1\n  new: true\n"),
        ("-   a: 1\n", "-   a: 1\n    new: true\n"),
    ],
)
def test_a_key_is_added_to_a_mapping_in_a_list(before: str, after: str) -> None:
    edit = added(table(before, 0), "new", True)
    assert edit is not None and apply(before, [edit]) == after


def test_what_is_more_than_a_value_is_not_replaced() -> None:
    for text in ("a: &b 0", "a: !!int 0", "a: |\n  0\n", "a:", "a: 0\n  1"):
        assert replaced(scalar(text, "a"), 4) is None
    assert replaced(scalar("a: '0'", "a"), 4) is not None


def test_what_has_an_alias_is_shared() -> None:
    text = "a: &x\n  b: 0\nc: *x\nd: &y\n  b: 0\n"
    assert scalar(text, "a", "b").shared and table(text, "c").shared
    assert not scalar(text, "d", "b").shared


KEYS = st.sampled_from(["lr", "workers", "batch size", "ä", "0", "yes", "a#b", "-x", "null", "x: y"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=12),
    st.sampled_from(["a\nb", "# no", "'", '"', "{", "x: y", "- x", "0", "1e3", "   "]),
)
DATA = st.recursive(
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=4),
    lambda inner: st.dictionaries(KEYS, st.one_of(VALUES, inner, st.lists(inner, max_size=3)), max_size=4),
    max_leaves=12,
)
STYLES = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([None, True, False]),
        "indent": st.sampled_from([2, 4]),
        "allow_unicode": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n"]),
        "width": st.sampled_from([20, 80]),
    }
)


def paths(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where all mappings of some data are."""
    found = [path] if isinstance(data, dict) else []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        found += paths(value, (*path, key))
    return found


def changed(data: Any, path: tuple[str | int, ...], key: str, value: object) -> Any:
    """The same data but for one key."""
    copy = json.loads(json.dumps(data))
    inner = copy
    for step in path:
        inner = inner[step]
    inner[key] = value
    return copy


def written(data: Any, style: dict[str, Any] | None) -> tuple[str, str]:
    """A text of the data, and the name of its file."""
    if style is None:
        return json.dumps(data, indent=2), "config.json"
    return str(yaml.safe_dump(data, sort_keys=False, **style)), "config.yaml"


@settings(max_examples=150, deadline=None)
@given(DATA, st.one_of(st.none(), STYLES), st.data())
def test_an_edit_changes_one_key_and_nothing_else(data: Any, style: Any, draw: st.DataObject) -> None:
    text, name = written(data, style)
    load = json.loads if style is None else yaml.safe_load
    # PyYAML breaks some long lines so that it reads something else than it was given.
    data = load(text)
    path = draw.draw(st.sampled_from(paths(data) or [()]))
    mapping = table(text, *path, name=name)
    edit = added(mapping, "new", True)
    if edit is not None:
        assert load(apply(text, [edit])) == changed(data, path, "new", True)
        assert edit.span.start == edit.span.end
    for key, entry in mapping.items.items():
        edit = replaced(entry, 4) if isinstance(entry, Scalar) else None
        if edit is not None:
            after = apply(text, [edit])
            assert load(after) == changed(data, path, key, 4)
            assert after == text[: edit.span.start] + "4" + text[edit.span.end :]
