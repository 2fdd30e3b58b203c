"""The generated documentation: written where it is stale, and told apart from what is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.dev import __main__ as command
from torchlint.dev import codes, layers, measured, pages, peers, readme, schema, weights


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with nothing but a README and the page of a rule that is gone."""
    (tmp_path / "README.md").write_text("a\n<!-- begin rules -->\nold\n<!-- end -->\nb\n", encoding="utf-8")
    directory = tmp_path / "docs" / "rules"
    directory.mkdir(parents=True)
    (directory / "TL998.md").write_text("gone\n", encoding="utf-8")
    monkeypatch.setattr(pages, "DIRECTORY", directory)
    monkeypatch.setattr(codes, "PATH", tmp_path / "codes.toml")
    (tmp_path / "codes.toml").write_text("# Frozen.\n", encoding="utf-8")
    monkeypatch.setattr(layers, "CONTRIBUTING", tmp_path / "CONTRIBUTING.md")
    (tmp_path / "CONTRIBUTING.md").write_text("a\n<!-- begin layers -->\n<!-- end -->\nb\n", encoding="utf-8")
    monkeypatch.setattr(readme, "README", tmp_path / "README.md")
    monkeypatch.setattr(measured, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(measured, "PAGE", tmp_path / "docs" / "measured.md")
    monkeypatch.setattr(schema, "PATH", tmp_path / "torchlint.schema.json")
    monkeypatch.setattr(measured, "DATA", tmp_path / "torchlint" / "effects.json")
    monkeypatch.setattr(peers, "RESULTS", tmp_path / "results" / "peers.json")
    monkeypatch.setattr(peers, "PLOTS", tmp_path / "docs")
    (tmp_path / "docs" / "peers-gone.svg").touch()
    monkeypatch.setattr(weights, "PAGE", tmp_path / "docs" / "impact.md")
    (tmp_path / "docs" / "impact.md").write_text(
        "a\n<!-- begin table -->\n<!-- end -->\nb\n", encoding="utf-8"
    )
    monkeypatch.setattr(command, "ROOT", tmp_path)
    return tmp_path


def test_what_is_stale_is_shown_and_then_written(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["generate", "--check"]) == 1
    told = capsys.readouterr()
    assert "\n-old\n" in told.out and "docs/rules/TL998.md documents no rule" in told.out
    assert "docs/peers-gone.svg shows no results" in told.out
    assert "run `make generate`" in told.err
    assert not (checkout / "docs" / "rules" / "TL601.md").exists()

    assert command.main(["generate"]) == 0
    page = (checkout / "docs" / "rules" / "TL601.md").read_text(encoding="utf-8")
    assert page.startswith("# cache-emptied-in-loop (TL601)\n\nSeverity: warning. On by default. ")
    assert "## Why is this bad?" in page
    text = (checkout / "README.md").read_text(encoding="utf-8")
    assert text.startswith("a\n<!-- begin rules -->\n") and text.endswith("<!-- end -->\nb\n")
    assert "| [TL601](docs/rules/TL601.md) | cache-emptied-in-loop | warning | safe |" in text
    assert not (checkout / "docs" / "rules" / "TL998.md").exists()
    assert not (checkout / "docs" / "peers-gone.svg").exists()

    listed = (checkout / "codes.toml").read_text(encoding="utf-8")
    assert (
        listed.startswith("# Frozen.\nTL001 = {") and codes.frozen()["TL601"].name == "cache-emptied-in-loop"
    )
    guide = (checkout / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "│ semantic model     │ semantics  " in guide and guide.endswith("```\n<!-- end -->\nb\n")
    weighed = (checkout / "docs" / "impact.md").read_text(encoding="utf-8")
    assert "\n| much | low | low | low | low | medium | medium | high | high | high |\n" in weighed
    assert '"item-in-hot-loop",' in (checkout / "torchlint.schema.json").read_text(encoding="utf-8")

    capsys.readouterr()
    assert command.main(["generate", "--check"]) == 0
    assert capsys.readouterr().out == ""


KEPT = 'TL601 = { name = "cache-emptied-in-loop", severity = "warning", fix = "safe" } # kept as it is\n'


def test_codes_are_only_ever_added(checkout: Path) -> None:
    assert command.main(["generate"]) == 0
    path = checkout / "codes.toml"
    whole = path.read_text(encoding="utf-8")
    path.write_text(KEPT, encoding="utf-8")
    assert command.main(["generate"]) == 0
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert KEPT in lines and lines == sorted(lines)
    assert len(lines) == len(whole.splitlines()) - 1  # all but the comment


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            KEPT.replace("warning", "error"),
            "TL601 is `cache-emptied-in-loop` (severity error, fix safe) in codes.toml",
        ),
        (
            KEPT.replace("601", "699"),
            "TL699 (cache-emptied-in-loop) is in codes.toml, but there is no such rule\n",
        ),
    ],
)
def test_a_broken_promise_is_refused(
    line: str, told: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "codes.toml").write_text(line, encoding="utf-8")
    assert command.main(["generate"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(told) and "delete its line from codes.toml" in error
    assert (checkout / "codes.toml").read_text(encoding="utf-8") == line


def test_a_transcript_is_what_the_command_prints() -> None:
    block = readme.transcript("torchlint --version")
    lines = block.splitlines()
    assert lines[:2] == ["```console", "$ torchlint --version"]
    assert lines[2].startswith("torchlint ") and lines[3:] == ["```"]


def test_a_transcript_of_a_failure_is_refused() -> None:
    with pytest.raises(RuntimeError, match="exits with 2"):
        readme.transcript("torchlint --no-such-option")
    with pytest.raises(RuntimeError, match="shows torchlint"):
        readme.transcript("rm -r .")


def test_the_picture_of_the_model_has_what_no_layer_names_on_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "torchlint" / "semantics"
    (folder / "api").mkdir(parents=True)
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    monkeypatch.setattr(layers, "MODEL_LAYERS", {"names": ("names",), "values": ("api",)})
    for name in ("__init__", "api/table", "names", "loaders", "program"):
        (folder / f"{name}.py").touch()
    rows = [" ".join(line.strip("│").split()) for line in layers.model().splitlines()[2:-2:2]]
    assert rows == ["facts of domains │ loaders, program", "values │ api", "names │ names"]
