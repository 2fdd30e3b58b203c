"""The pictures of the documentation: of pages that are made anew, and one that the tests of VS Code take."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from torchlint.dev import ROOT, site

FOLDER = ROOT / "docs" / "pictures"
_EDITOR = ROOT / "editors" / "vscode" / "dist" / "tests" / "pictures" / "findings.png"
_WIDTH = 1200
_HEIGHTS = {"verify": 860, "summary": 660, "report": 860, "site": 860}
_TEAMS = {
    "vision": ("image_classifier", "metric_learning", "segmentation_amp"),
    "language": ("accelerate_finetune", "gpt"),
    "generative": ("dcgan", "diffusion"),
    "research": ("actor_critic", "speech_ctc", "tabular_autoencoder"),
}
_SUMMARY = """<!doctype html><meta charset="utf-8"><style>
body { font: 14px/1.5 sans-serif; margin: 24px; color: #1f2328; background: #fff; }
table { border-collapse: collapse; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; text-align: left; }
tr:nth-child(2n) { background: #f6f8fa; }
code { font: 12px monospace; background: #818b981f; border-radius: 6px; padding: 2px 5px; }
</style>"""


def main() -> int:
    """Take all pictures; the exit status, 2 where there is no Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    if browser is None:
        print("pictures are taken with Chromium, which is not on the PATH", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        pages = {
            "verify": _verify(scratch),
            "summary": _summary(scratch),
            "report": _report(scratch),
            "site": _site(scratch),
        }
        taken = {name: _taken(browser, name, page, scratch) for name, page in pages.items()}
        if _EDITOR.exists():
            taken["vscode"] = _EDITOR
        for name, picture in taken.items():
            _keep(picture, FOLDER / f"{name}.png")
            print((FOLDER / f"{name}.png").relative_to(ROOT))
    return 0


def _verify(scratch: Path) -> Path:
    page = scratch / "verify.html"
    page.write_text(site.verified(), encoding="utf-8")
    return page


def _summary(scratch: Path) -> Path:
    """Return what GitHub makes of the summary of a job."""
    from markdown_it import MarkdownIt

    program = ROOT / "fixtures" / "programs" / "gpt.py"
    repository = scratch / "pull-request"
    repository.mkdir()
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a", "--allow-empty"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    shutil.copy(program, repository / "train.py")
    told = _torchlint("check", "--changed-since=HEAD", "--output-format=markdown", cwd=repository)
    page = scratch / "summary.html"
    page.write_text(_SUMMARY + MarkdownIt("commonmark").enable("table").render(told), encoding="utf-8")
    return page


def _report(scratch: Path) -> Path:
    """Return the report about each of the example programs, as a repository of its own."""
    for team, programs in _TEAMS.items():
        for program in programs:
            checkout = scratch / "checkouts" / team / program.replace("_", "-")
            checkout.mkdir(parents=True)
            shutil.copy(ROOT / "fixtures" / "programs" / f"{program}.py", checkout / "train.py")
    folders = sorted((scratch / "checkouts").glob("*/*"))
    _torchlint("report", *map(str, folders), "--output", str(scratch / "report"), cwd=scratch)
    return scratch / "report" / "index.html"


def _site(scratch: Path) -> Path:
    """Return the page of a rule, as a browser without a server opens it."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--no-directory-urls", "--site-dir"]
    subprocess.run([*command, str(scratch / "site")], cwd=ROOT, check=True)
    return scratch / "site" / "rules" / "TL202.html"


def _torchlint(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "torchlint", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False).stdout


def _taken(browser: str, name: str, page: Path, scratch: Path) -> Path:
    """Return the picture of a page."""
    picture = scratch / f"{name}.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    options += [f"--user-data-dir={scratch / 'chromium'}", f"--window-size={_WIDTH},{_HEIGHTS[name]}"]
    command = [browser, *options, f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return picture


def _keep(picture: Path, target: Path) -> None:
    """Write it in few colours, so that it stays small."""
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(64).save(target, optimize=True)
