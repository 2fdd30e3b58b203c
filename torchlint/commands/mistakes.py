"""What is said of a mistake in the arguments: in one voice, with what was likely meant, and where help is."""

from __future__ import annotations

import re

import click
from click.core import ParameterSource


def told(error: click.UsageError) -> str:
    """Return the message for a mistake that the help of its command would have spared."""
    command = error.ctx.command_path if error.ctx else "torchlint"
    return f"{message(error)}\n\nTry `{command} --help`."


def message(error: click.UsageError) -> str:
    """Return what is wrong, without the full stop and the capital that click gives its own messages."""
    if isinstance(error, click.NoSuchOption):
        return f"unknown option `{error.option_name}`{_meant(error)}"
    if type(error) is click.BadParameter and error.param is not None:
        return f"{_place(error, error.param)}: {_plain(_of_number(error))}"
    of_click = isinstance(error, click.MissingParameter | click.BadOptionUsage | click.BadArgumentUsage)
    return _plain(_ticked(error.format_message()) if of_click else error.format_message())


def _meant(error: click.NoSuchOption) -> str:
    """Return the long option of the command that was likely meant; the dashes, which all have,
    do not count.
    """
    from torchlint.options import did_you_mean

    word = error.option_name.lstrip("-")
    root = error.ctx.find_root().command if error.ctx is not None else None
    if isinstance(root, click.Group) and error.ctx is not None and word in root.list_commands(error.ctx):
        return f"; `torchlint {word}` is a command"
    parameters = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
    spelled = (word for parameter in parameters for word in (*parameter.opts, *parameter.secondary_opts))
    known = [word.removeprefix("--") for word in spelled if word.startswith("--")]
    return re.sub(r"`(?=\w)", "`--", did_you_mean(word, known))


def _place(error: click.BadParameter, parameter: click.Parameter) -> str:
    """Return where a value was given: the option, the variable of the environment, or the argument."""
    source = error.ctx.get_parameter_source(parameter.name or "") if error.ctx else None
    if source is ParameterSource.ENVIRONMENT and isinstance(parameter.envvar, str):
        return parameter.envvar
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.strip("[].")


def _of_number(error: click.BadParameter) -> str:
    """Return the reason why a value is refused; click names a range where a number is wanted."""
    number, below, least = error.message.removesuffix(".").partition(" is not in the range x>=")
    if below:
        return f"`{number}` is less than {least}"
    kinds = {"integer range": "whole number", "float range": "number", "integer": "whole number"}
    for said, meant in kinds.items():
        head, found, _ = error.message.partition(f" is not a valid {said}")
        if found:
            return f"`{head.strip(chr(39))}` is not a {meant}"
    return _ticked(error.message) if isinstance(error.param, click.Argument) else error.message


def _ticked(text: str) -> str:
    """Return a message of click with names between the marks that torchlint's messages have."""
    return re.sub(r"'([^'\n]*)'", r"`\1`", text)


def _plain(text: str) -> str:
    text = text.removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


class Choice(click.Choice):  # type: ignore[type-arg, unused-ignore]
    """One of several words; of any other it says which was likely meant."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word that was given.

        Raises:
            click.BadParameter: it is none of the choices.
        """
        from torchlint.options import none_of

        words = [str(choice) for choice in self.choices]
        if str(value) not in words:
            # Imported here, so that `--help` need not.
            from torchlint.options import none_of

            raise click.BadParameter(none_of(str(value), words), ctx, param)
        return str(value)
