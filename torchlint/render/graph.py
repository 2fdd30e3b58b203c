"""The files of projects, their imports and what they read: as text, JSON, DOT and Mermaid."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchlint.project.graph import Edge, FileKind, Node
from torchlint.project.records import Standing
from torchlint.render.report import plural

_SHOWN_NAMES = 6
_WHEN = {
    Standing.CONDITIONAL: "conditionally",
    Standing.LATER: "inside a function",
    Standing.TYPES: "for type checking",
}


def text(root: Path, nodes: Sequence[Node], library: bool) -> str:
    """Return a paragraph for each file: what it is, imports from where, and reads, and what was not found."""
    imports = sum(len(node.imports) for node in nodes)
    counts = f"{plural(len(nodes), 'file')}, {plural(imports, 'import')} between them"
    lines = [f"{root} ({_kind(library)}): {counts}"]
    for node in nodes:
        lines += ["", f"{_shown(node.file, root)} ({node.kind.value})"]
        lines += [f"  imports {_shown(edge.target, root)}{_details(edge)}" for edge in node.imports]
        lines += [f"  reads {_shown(document, root)}" for document in node.reads]
        lines += [f"  line {each.row}: not found: {each.statement}" for each in node.unresolved]
    return "\n".join(lines) + "\n"


def _kind(library: bool) -> str:
    return "library" if library else "application"


def as_json(root: Path, nodes: Sequence[Node], library: bool) -> str:
    """Return an object for each project: its root, what it is, and its files with what they import."""
    document = {
        "root": str(root),
        "kind": _kind(library),
        "files": [
            {
                "path": _shown(node.file, root),
                "kind": node.kind.value,
                "imports": [
                    {
                        "path": _shown(edge.target, root),
                        "names": list(edge.names),
                        "when": edge.standing.name.lower(),
                    }
                    for edge in node.imports
                ],
                "unresolved": [{"row": each.row, "statement": each.statement} for each in node.unresolved],
                "libraries": list(node.libraries),
                "reads": [_shown(document, root) for document in node.reads],
            }
            for node in nodes
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def dot(root: Path, nodes: Sequence[Node], library: bool) -> str:
    """Return a graph for Graphviz; imports that may not run are dashed."""
    lines = [f"digraph {json.dumps(root.name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for node in nodes:
        label = f"{_shown(node.file, root)}\n{node.kind.value}"
        lines.append(f"  {json.dumps(_shown(node.file, root))} [label={json.dumps(label)}];")
    for document in _documents(nodes):
        label = f"{_shown(document, root)}\n{FileKind.CONFIG.value}"
        lines.append(f"  {json.dumps(_shown(document, root))} [label={json.dumps(label)}];")
    for node in nodes:
        for edge in node.imports:
            style = "" if edge.standing is Standing.ALWAYS else " [style=dashed]"
            ends = json.dumps(_shown(node.file, root)), json.dumps(_shown(edge.target, root))
            lines.append(f"  {' -> '.join(ends)}{style};")
        for document in node.reads:
            ends = json.dumps(_shown(node.file, root)), json.dumps(_shown(document, root))
            lines.append(f"  {' -> '.join(ends)} [style=dotted];")
    return "\n".join([*lines, "}"]) + "\n"


def mermaid(root: Path, nodes: Sequence[Node], library: bool) -> str:
    """Return a flowchart for Markdown; imports that may not run are dotted."""
    numbers = {node.file: f"f{number}" for number, node in enumerate(nodes)}
    for node in nodes:
        for edge in node.imports:
            numbers.setdefault(edge.target, f"f{len(numbers)}")
    documents = _documents(nodes)
    numbers.update({document: f"f{len(numbers) + place}" for place, document in enumerate(documents)})
    kinds = {node.file: f"<br><i>{node.kind.value}</i>" for node in nodes}
    kinds.update(dict.fromkeys(documents, f"<br><i>{FileKind.CONFIG.value}</i>"))
    lines = ["flowchart LR"]
    for file, number in numbers.items():
        label = _shown(file, root).replace('"', "#quot;")
        lines.append(f'  {number}["{label}{kinds.get(file, "")}"]')
    for node in nodes:
        for edge in node.imports:
            arrow = "-->" if edge.standing is Standing.ALWAYS else "-.->"
            lines.append(f"  {numbers[node.file]} {arrow} {numbers[edge.target]}")
        lines += [f"  {numbers[node.file]} -.- {numbers[document]}" for document in node.reads]
    return "\n".join(lines) + "\n"


FORMATS: Mapping[str, Callable[[Path, Sequence[Node], bool], str]] = {
    "text": text,
    "json": as_json,
    "dot": dot,
    "mermaid": mermaid,
}


def _documents(nodes: Sequence[Node]) -> list[Path]:
    """Return the configuration files that some files read, in order."""
    return sorted({document for node in nodes for document in node.reads})


def _shown(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else file.as_posix()


def _details(edge: Edge) -> str:
    names = ", ".join(edge.names[:_SHOWN_NAMES])
    more = len(edge.names) - _SHOWN_NAMES
    said = [f"{names} and {more} more" if more > 0 else names] if names else []
    said += [_WHEN[edge.standing]] if edge.standing in _WHEN else []
    return f" ({'; '.join(said)})" if said else ""
