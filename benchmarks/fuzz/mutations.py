"""Changes files as hurried people and tools do, and worse: by file, statement, name, token and byte."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Sequence
from random import Random

from benchmarks.fuzz import layout

Mutation = Callable[[str, Random, Sequence[str]], str]
"""Makes another text of a text; the third argument are other files, to take pieces from."""


def mutated(text: str, random: Random, others: Sequence[str]) -> str:
    """Return ``text`` after one to five mutations; it need not be a program any more."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        text = random.choice(MUTATIONS)(text, random, others)
    return text


# --- statements ------------------------------------------------------------------------------------------


def _statements(text: str) -> list[tuple[int, int]]:
    """Return the lines, from and to, of all statements that share no line
    with another one's first or last.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(item.lineno for item in decorators)])
            found.append((first - 1, node.end_lineno or node.lineno))
    return found


def _lines(text: str) -> list[str]:
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)


def _piece(text: str, random: Random) -> tuple[list[str], int, int] | None:
    places = _statements(text)
    return (_lines(text), *random.choice(places)) if places else None


def drop_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text without one statement; its block may be left empty."""
    if (found := _piece(text, random)) is None:
        return text
    lines, start, end = found
    return "".join([*lines[:start], *lines[end:]])


def repeat_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a statement twice."""
    if (found := _piece(text, random)) is None:
        return text
    lines, start, end = found
    return "".join([*lines[:end], *lines[start:end], *lines[end:]])


def move_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a statement at another's place, indented as that is."""
    first, second = _piece(text, random), _piece(text, random)
    if first is None or second is None:
        return text
    lines, start, end = first
    target = second[1]
    moved = _reindented(lines[start:end], lines[target])
    if start <= target < end:
        return text
    if target < start:
        return "".join([*lines[:target], moved, *lines[target:start], *lines[end:]])
    return "".join([*lines[:start], *lines[end:target], moved, *lines[target:]])


def splice(text: str, random: Random, others: Sequence[str]) -> str:
    """Return the text with a statement of another file, or a whole function, in front of one of its own."""
    other = _piece(random.choice(others), random)
    own = _piece(text, random)
    if other is None or own is None:
        return text
    lines, start, _ = own
    taken = _reindented(other[0][other[1] : other[2]], lines[start])
    return "".join([*lines[:start], taken, *lines[start:]])


def _reindented(block: Sequence[str], like: str) -> str:
    indent = _indent(like)
    text = textwrap.dedent("".join(block)).rstrip("\r\n") + "\n"
    return textwrap.indent(text, indent)


_FRAMES = (
    "if True:",
    "for _ in range(2):",
    "for epoch in range(10):",
    "while True:",
    "with torch.no_grad():",
    "try:",
    "def inner():",
    "async def inner():",
    "class Inner:",
    "if __name__ == '__main__':",
    "with torch.autocast('cuda'):",
    "for x, y in loader:",
    "match x:\n{0}    case [torch.Tensor(), *_]:\n{0}    ",
    "lambda: 0\n{0}if x:",
    "def inner[T](x: T) -> T:",
    "class Inner[T: torch.Tensor](nn.Module):",
    "async for x, y in loader:",
    "async with lock, torch.no_grad() as nothing:",
    "with (torch.no_grad(), open('x') as file):",
    "@torch.no_grad()\n{0}@staticmethod\n{0}def inner(self, *args, **kwargs):",
    "if TYPE_CHECKING:",
    "while (x := next(it, None)) is not None:",
    "match x, y:\n{0}    case {{'x': x, **rest}} | [x, *rest] if x:\n{0}    ",
)


def wrap_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a statement in a block of its own: a condition, a loop, a context, a function."""
    if (found := _piece(text, random)) is None:
        return text
    return _wrapped(*found, random)


def _wrapped(lines: list[str], start: int, end: int, random: Random) -> str:
    """Return the lines with some of them in a block of its own."""
    indent = _indent(lines[start])
    frame = indent + random.choice(_FRAMES).format(indent) + "\n"
    block = "".join("    " + line if line.strip() else line for line in lines[start:end])
    if "case" in frame:
        block = textwrap.indent(block, "    ")
    if frame.strip() == "try:":
        block = f"{block.rstrip()}\n{indent}except {random.choice(('Exception', 'RuntimeError', ''))}:\n"
        block += f"{indent}    pass\n"
    return "".join([*lines[:start], frame.rstrip(" ").removesuffix("\n") + "\n", block, *lines[end:]])


def drop_imports(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text without one of its imports."""
    imports = list(re.finditer(r"^(?:import|from) [^\n]*\n", text, re.MULTILINE))
    if not imports:
        return text
    match = random.choice(imports)
    return text[: match.start()] + text[match.end() :]


# --- whole files -----------------------------------------------------------------------------------------


def merge(text: str, random: Random, others: Sequence[str]) -> str:
    """Return the text with another file behind it, before it, or among its statements."""
    other = random.choice(others)
    way = random.randrange(3)
    ends = [end for start, end in _statements(text) if way == 2 and not _indent(_lines(text)[start])]
    if ends:
        lines, at = _lines(text), random.choice(ends)
        return "".join([*lines[:at], other.rstrip("\n") + "\n", *lines[at:]])
    first, second = (text, other) if way else (other, text)
    return f"{first.rstrip()}\n\n\n{second}"


def nest_file(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with all of it, or all but its imports, in a function, a class,
    a loop or another block.
    """
    lines = _lines(text)
    places = [place for place in sorted(_statements(text)) if not _indent(lines[place[0]])]
    if not places:
        return text
    start, end = places[0][0], max(place[1] for place in places)
    if random.random() < 0.5:
        behind = (place for place in places if not lines[place[0]].startswith(("import ", "from ")))
        start = next(behind, places[-1])[0]
    return _wrapped(lines, start, end, random)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())].strip("\r\n")


# --- names -----------------------------------------------------------------------------------------------


def _insert(text: str, at: int, code: str) -> str:
    """Return ``text`` with statements before the line ``at``, indented as it is."""
    lines = _lines(text)
    like = lines[at] if at < len(lines) else ""
    return "".join([*lines[:at], _reindented([code + "\n"], like), *lines[at:]])


def _assigned(text: str, random: Random) -> tuple[str, int, int] | None:
    """Return a name that a statement sets, and the lines of that statement."""
    found = [
        (node.id, item.lineno - 1, item.end_lineno or item.lineno)
        for item in _walk(text)
        if isinstance(item, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for node in ast.walk(item)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return random.choice(found) if found else None


def split_name(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with another name for what a name holds, which some of the uses behind it take."""
    if (found := _assigned(text, random)) is None:
        return text
    name, start, end = found
    lines = _lines(text)
    made = _reindented([f"{name}_2 = {name}\n"], lines[start])
    uses = rf"(?<![.\w]){re.escape(name)}(?![\w=])"
    later = [
        re.sub(uses, lambda match: f"{match[0]}_2", line) if random.random() < 0.5 else line
        for line in lines[end:]
    ]
    return "".join([*lines[:end], made, *later])


def delete_name(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a name deleted behind the statement that sets it, or somewhere."""
    if (found := _assigned(text, random)) is None:
        return text
    name, start, end = found
    lines = _lines(text)
    if random.random() < 0.5 and (piece := _piece(text, random)):
        start, end = piece[1:]
    return "".join([*lines[:end], _reindented([f"del {name}\n"], lines[start]), *lines[end:]])


def declare_name(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a name of a function declared as another scope's."""
    functions = [
        (node, name.id)
        for node in _walk(text)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    ]
    if not functions:
        return text
    node, name = random.choice(functions)
    return _insert(text, node.body[0].lineno - 1, f"{random.choice(('global', 'nonlocal'))} {name}")


_REBINDINGS = (
    *("torch = None", "torch = torch", "import numpy as torch", "nn = F = torch", "def torch(): ..."),
    *("for torch in []: pass", "class DataLoader: ...", "from mine import DataLoader, nn", "del torch"),
    *("with open('x') as nn: pass", "torch: object", "(torch := 1)", "import torch.nn as torch", "model = 1"),
    *("device, loader = None, None", "loss = loss_fn = criterion", "optimizer = [optimizer]", "x = y = x"),
    *("try: pass\nexcept OSError as torch: pass", "torch.nn = nn", "torch.zeros = torch.ones", "float = int"),
    *(
        "from torch import *",
        "from torch.nn import *",
        "from torch.nn.functional import *",
        "from mine import *",
    ),
)


def rebind(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a name that rules know set to something else, somewhere."""
    if (found := _piece(text, random)) is None:
        return text
    return _insert(text, found[1], random.choice(_REBINDINGS))


def _imports(text: str) -> list[tuple[int, int]]:
    return [
        (node.lineno - 1, node.end_lineno or node.lineno)
        for node in _walk(text)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]


def repeat_import(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with one of its imports again elsewhere, or of all names there are."""
    places, piece = _imports(text), _piece(text, random)
    if not places or piece is None:
        return text
    lines, at, _end = piece
    start, end = random.choice(places)
    code = textwrap.dedent("".join(lines[start:end])).rstrip("\r\n")
    if random.random() < 0.3:
        code = re.sub(r"(?s)\bimport\b.*", "import *", code) if code.startswith("from") else code
    return _insert(text, at, code)


_CONDITIONS = (
    "try:\n{0}\nexcept ImportError:\n    pass",
    "try:\n{0}\nexcept ImportError:\n    torch = nn = DataLoader = None",
    "try:\n    import nothing\nexcept ImportError:\n{0}\nelse:\n    from nothing import torch, nn",
    "if sys.version_info > (3, 9):\n{0}\nelse:\n    import old as torch",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n{0}",
    "def imported():\n    global torch, nn, F\n{0}",
    "class Imported:\n{0}",
    "with warnings.catch_warnings():\n{0}",
)


def import_on_condition(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with an import in a branch, a function, or tried."""
    if not (places := _imports(text)):
        return text
    start, end = random.choice(places)
    lines = _lines(text)
    code = textwrap.indent(textwrap.dedent("".join(lines[start:end])).rstrip("\r\n"), "    ")
    made = _reindented([random.choice(_CONDITIONS).format(code)], lines[start])
    return "".join([*lines[:start], made, *lines[end:]])


# --- tokens ----------------------------------------------------------------------------------------------

_Place = tuple[int, int, tokenize.TokenInfo]


def _tokens(text: str) -> list[_Place]:
    """Return the tokens with their offsets; none if the text cannot be read."""
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string.strip():
                start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
                if text[start:end] == token.string:
                    found.append((start, end, token))
    except (tokenize.TokenError, SyntaxError, IndexError):
        return []
    return found


def _replace_token(text: str, random: Random, kinds: tuple[int, ...], change: Callable[[str], str]) -> str:
    places = [item for item in _tokens(text) if item[2].type in kinds]
    if not places:
        return text
    start, end, token = random.choice(places)
    return text[:start] + change(token.string) + text[end:]


_NAMES = (
    *("x", "self", "torch", "nn", "F", "device", "model", "loader", "loss", "total", "print", "np", "args"),
    *("DataLoader", "optimizer", "None", "True", "_", "é", "__class__", "super", "len", "float", "data"),
)


def rename(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a name, here or everywhere, spelt as another one of the file."""
    names = sorted({item[2].string for item in _tokens(text) if item[2].type == tokenize.NAME})
    if not names:
        return text
    other = random.choice((*names, *_NAMES))
    if random.random() < 0.5:
        return _replace_token(text, random, (tokenize.NAME,), lambda _: other)
    old = random.choice(names)
    return re.sub(rf"\b{re.escape(old)}\b", other, text)


_CONSTANTS = (
    *(
        "0",
        "1",
        "-1",
        "2",
        "0.5",
        "1e400",
        "1e-400",
        "10**10",
        "0x10",
        "1_000",
        "3j",
        "None",
        "True",
        "False",
    ),
    *(
        '"cuda"',
        "'cpu'",
        '"cuda:1"',
        '""',
        "b'x'",
        "r'\\d'",
        "f'{x}'",
        "f'{x!r:>{width}}'",
        "'''a\nb'''",
        "...",
    ),
    *("float('inf')", "float('nan')", "[]", "{}", "()", "(1,)", "torch.float16", "'\\N{BULLET}'", "'a' 'b'"),
    *(
        "lambda: 0",
        "x if y else z",
        "[i for i in x]",
        "*x",
        "**x",
        "not x",
        "-x",
        "await x",
        "(yield)",
        "x := 1",
    ),
)


def change_constant(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with another constant, or an expression, in place of a number, a string or a name."""
    kinds = random.choice(((tokenize.NUMBER, tokenize.STRING), (tokenize.NAME,)))
    return _replace_token(text, random, kinds, lambda _: random.choice(_CONSTANTS))


def change_arguments(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with an argument more, or without one, or all of them hidden."""
    calls = [
        node
        for node in _walk(text)
        if isinstance(node, ast.Call) and (node.args or node.keywords) and node.lineno == node.end_lineno
    ]
    if not calls:
        return text
    call = random.choice(calls)
    lines = _lines(text)
    line = lines[call.lineno - 1].encode()
    before, code, after = (
        line[: call.col_offset].decode(),
        line[call.col_offset : call.end_col_offset].decode(),
        line[call.end_col_offset :].decode(),
    )
    try:
        arguments = [ast.unparse(item) for item in (*call.args, *call.keywords)]
        function = ast.unparse(call.func)
    except (RecursionError, ValueError):
        return text
    more = (
        "*args",
        "**kwargs",
        "device=device",
        "None",
        "x=1",
        "dim=-1",
        "out=out",
        "non_blocking=True",
        "True",
    )
    way = random.randrange(6)
    if way == 0:
        arguments.pop(random.randrange(len(arguments)))
    elif way == 1:
        arguments.append(random.choice(more))
    elif way == 2:
        arguments.insert(0, random.choice(more))
    elif way == 3:
        arguments = [random.choice(("*args", "**kwargs", "*a, **k"))]
    elif way == 4:
        random.shuffle(arguments)
    else:
        arguments = [*arguments, arguments[-1]]
    made = f"{function}({', '.join(arguments)})" if code else code
    return "".join([*lines[: call.lineno - 1], before + made + after, *lines[call.lineno :]])


def _walk(text: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []


def drop_token(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text without a token: mostly no program any more."""
    places = _tokens(text)
    if not places:
        return text
    start, end, _token = random.choice(places)
    return text[:start] + text[end:]


def nest(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a name in brackets, a call,
    an f-string or a chain that is deeper than people write.
    """
    depth = random.choice((1, 3, 30))
    ways: tuple[tuple[str, str], ...] = (
        ("(", ")"),
        ("[", "]"),
        ("f(", ")"),
        ("-", ""),
        ("", ".a"),
        ("not ", ""),
    )
    left, right = random.choice(ways)
    return _replace_token(text, random, (tokenize.NAME,), lambda name: left * depth + name + right * depth)


# --- layout ----------------------------------------------------------------------------------------------

_COMMENTS = (
    *(
        "# torchlint: ignore[TL202]",
        "# torchlint: ignore",
        "# torchlint: disable[ALL]",
        "# torchlint: enable",
    ),
    *(
        "# noqa",
        "# noqa: TL999",
        "# type: ignore[attr-defined]",
        "# fmt: off",
        "# -*- coding: utf-8 -*-",
        "# é",
    ),
    *(
        "# torchlint: ignore-file",
        "# torchlint: ignore[",
        "# torchlint-test: unsafe=false",
        "#",
        "#\f",
        "# %%",
    ),
)


def comment(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a comment at the end of a line, or in a line of its own."""
    lines = _lines(text)
    at = random.randrange(len(lines))
    line = lines[at]
    body = line.rstrip("\r\n")
    added = random.choice(_COMMENTS)
    indent = body[: len(body) - len(body.lstrip())]
    lines[at] = random.choice((f"{body}  {added}{line[len(body) :]}", f"{indent}{added}\n{line}"))
    return "".join(lines)


def newlines(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with other line ends: all of them, or some."""
    ends = ("\n", "\r\n", "\r")
    if random.random() < 0.5:
        end = random.choice(ends)
        return re.sub(r"\r\n|\r|\n", end, text)
    return re.sub(r"\r\n|\r|\n", lambda _: random.choice(ends), text)


def indentation(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text indented by tabs, or more, or less; or with a single line out of step."""
    if random.random() < 0.7:
        unit = random.choice(("\t", " ", "  ", "        "))
        return re.sub(r"^(?: {4})+", lambda match: unit * (len(match[0]) // 4), text, flags=re.MULTILINE)
    lines = _lines(text)
    at = random.randrange(len(lines))
    lines[at] = random.choice((" ", "\t", "\f", "    ")) + lines[at]
    return "".join(lines)


def join_lines(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a line end replaced by a semicolon, a backslash, nothing; or one more."""
    ends = [match.start() for match in re.finditer("\n", text)]
    if not ends:
        return text
    at = random.choice(ends)
    return (
        text[:at]
        + random.choice(("; ", " \\\n", " ", "\n\n", "\n\f\n", ";\n", "\\\n\\\n", "\n#\n"))
        + text[at + 1 :]
    )


def characters(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with a character that does not belong there, or a piece cut out."""
    at = random.randrange(len(text) + 1)
    if random.random() < 0.3:
        return text[:at] + text[at + random.randrange(1, 200) :]
    odd = "\f\t ;:,()[]{}'\"\\#@=*é\u2028\u00a0\ufeff\u0660𝔵\x0b\x1a\x85"
    return text[:at] + random.choice(odd) + text[at:]


def in_brackets(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with brackets around expressions that need none; the same program."""
    return layout.brackets(text, random)


def over_lines(text: str, random: Random, _: Sequence[str]) -> str:
    """Return the text with lines that end early; the same program."""
    return layout.breaks(text, random)


MUTATIONS: tuple[Mutation, ...] = (
    *(in_brackets, in_brackets, in_brackets, over_lines, over_lines, over_lines),
    *(drop_statement, drop_statement, repeat_statement, move_statement, move_statement, wrap_statement),
    *(merge, merge, nest_file, nest_file, split_name, split_name, delete_name, declare_name, rebind, rebind),
    *(repeat_import, import_on_condition, import_on_condition),
    *(wrap_statement, splice, splice, drop_imports, rename, rename, change_constant, change_constant),
    *(change_arguments, change_arguments, drop_token, nest, comment, newlines, indentation, join_lines),
    *(characters,),
)
