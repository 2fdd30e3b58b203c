"""Changes files as hurried people and tools do, and worse: by statement, by name, by token and by byte."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[str, Random, Sequence[str]], str]
"""Makes another text of a text; the third argument are other files, to take pieces from."""


def mutated(text: str, random: Random, others: Sequence[str]) -> str:
    """``text`` after one to five mutations; it need not be a program any more."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        text = random.choice(MUTATIONS)(text, random, others)
    return text


# --- statements ------------------------------------------------------------------------------------------


def _statements(text: str) -> list[tuple[int, int]]:
    """The lines, from and to, of all statements that share no line with another one's first or last."""
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
    """Without one statement; its block may be left empty."""
    if (found := _piece(text, random)) is None:
        return text
    lines, start, end = found
    return "".join([*lines[:start], *lines[end:]])


def repeat_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """With a statement twice."""
    if (found := _piece(text, random)) is None:
        return text
    lines, start, end = found
    return "".join([*lines[:end], *lines[start:end], *lines[end:]])


def move_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """With a statement at another's place, indented as that is."""
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
    """With a statement of another file, or a whole function, in front of one of its own."""
    other = _piece(random.choice(others), random)
    own = _piece(text, random)
    if other is None or own is None:
        return text
    lines, start, _ = own
    taken = _reindented(other[0][other[1] : other[2]], lines[start])
    return "".join([*lines[:start], taken, *lines[start:]])


def _reindented(block: Sequence[str], like: str) -> str:
    indent = like[: len(like) - len(like.lstrip())].strip("\r\n")
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
)


def wrap_statement(text: str, random: Random, _: Sequence[str]) -> str:
    """With a statement in a block of its own: a condition, a loop, a context, a function."""
    if (found := _piece(text, random)) is None:
        return text
    lines, start, end = found
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    frame = indent + random.choice(_FRAMES).format(indent) + "\n"
    block = "".join("    " + line if line.strip() else line for line in lines[start:end])
    if "case" in frame:
        block = textwrap.indent(block, "    ")
    if frame.strip() == "try:":
        block = f"{block.rstrip()}\n{indent}except {random.choice(('Exception', 'RuntimeError', ''))}:\n"
        block += f"{indent}    pass\n"
    return "".join([*lines[:start], frame.rstrip(" ").removesuffix("\n") + "\n", block, *lines[end:]])


def drop_imports(text: str, random: Random, _: Sequence[str]) -> str:
    """Without one of its imports."""
    imports = list(re.finditer(r"^(?:import|from) [^\n]*\n", text, re.MULTILINE))
    if not imports:
        return text
    match = random.choice(imports)
    return text[: match.start()] + text[match.end() :]


# --- tokens ----------------------------------------------------------------------------------------------

_Place = tuple[int, int, tokenize.TokenInfo]


def _tokens(text: str) -> list[_Place]:
    """The tokens with their offsets; none if the text cannot be read."""
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
    """With a name, here or everywhere, spelt as another one of the file."""
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
    """With another constant, or an expression, in place of a number, a string or a name."""
    kinds = random.choice(((tokenize.NUMBER, tokenize.STRING), (tokenize.NAME,)))
    return _replace_token(text, random, kinds, lambda _: random.choice(_CONSTANTS))


def change_arguments(text: str, random: Random, _: Sequence[str]) -> str:
    """With an argument more, or without one, or all of them hidden."""
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
    """Without a token: mostly no program any more."""
    places = _tokens(text)
    if not places:
        return text
    start, end, _token = random.choice(places)
    return text[:start] + text[end:]


def nest(text: str, random: Random, _: Sequence[str]) -> str:
    """With a name in brackets, a call, an f-string or a chain that is deeper than people write."""
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
    """With a comment at the end of a line, or in a line of its own."""
    lines = _lines(text)
    at = random.randrange(len(lines))
    line = lines[at]
    body = line.rstrip("\r\n")
    added = random.choice(_COMMENTS)
    indent = body[: len(body) - len(body.lstrip())]
    lines[at] = random.choice((f"{body}  {added}{line[len(body) :]}", f"{indent}{added}\n{line}"))
    return "".join(lines)


def newlines(text: str, random: Random, _: Sequence[str]) -> str:
    """With other line ends: all of them, or some."""
    ends = ("\n", "\r\n", "\r")
    if random.random() < 0.5:
        end = random.choice(ends)
        return re.sub(r"\r\n|\r|\n", end, text)
    return re.sub(r"\r\n|\r|\n", lambda _: random.choice(ends), text)


def indentation(text: str, random: Random, _: Sequence[str]) -> str:
    """Indented by tabs, or more, or less; or a single line out of step."""
    if random.random() < 0.7:
        unit = random.choice(("\t", " ", "  ", "        "))
        return re.sub(r"^(?: {4})+", lambda match: unit * (len(match[0]) // 4), text, flags=re.MULTILINE)
    lines = _lines(text)
    at = random.randrange(len(lines))
    lines[at] = random.choice((" ", "\t", "\f", "    ")) + lines[at]
    return "".join(lines)


def join_lines(text: str, random: Random, _: Sequence[str]) -> str:
    """With a line end replaced by a semicolon, a backslash, nothing; or one more."""
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
    """With a character that does not belong there, or a piece cut out."""
    at = random.randrange(len(text) + 1)
    if random.random() < 0.3:
        return text[:at] + text[at + random.randrange(1, 200) :]
    odd = "\f\t ;:,()[]{}'\"\\#@=*é\u2028\u00a0\ufeff\u0660𝔵\x0b\x1a\x85"
    return text[:at] + random.choice(odd) + text[at:]


MUTATIONS: tuple[Mutation, ...] = (
    *(drop_statement, drop_statement, repeat_statement, move_statement, move_statement, wrap_statement),
    *(wrap_statement, splice, splice, drop_imports, rename, rename, change_constant, change_constant),
    *(change_arguments, change_arguments, drop_token, nest, comment, newlines, indentation, join_lines),
    *(characters,),
)
