"""Lists the packages, and makes the archives the same wherever they are built; the rest is in pyproject.toml.

The rules live in the top-level folder ``rules/`` and are imported as ``torchlint.rules``. No static
setting can say "every package under rules/, but below another name", and a list kept by hand would
have to be edited with each new family.

setuptools writes into its archives when files were changed, who owns them and who may read them. That is
taken out again: what is built of the same sources is the same to the byte. Set ``SOURCE_DATE_EPOCH`` to
the time of the commit, as releases do; without it, it is 2020.
"""

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

# The wheel reads the variable, too.
EPOCH = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "1577836800"))


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Take out of an entry of an archive what differs from machine to machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    member.mtime = EPOCH
    return member


class PlainSdist(sdist):  # type: ignore[misc]
    """The source distribution, in which only names and contents count."""

    def make_archive(self, base_name: str, kind: str, *, base_dir: str, **_: object) -> str:
        """Pack a folder; the path of the archive."""
        assert kind == "gztar", f"no {kind}: a tar.gz is what the same bytes are promised of"
        path = Path(f"{base_name}.tar.gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=EPOCH) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for item in sorted([Path(base_dir), *Path(base_dir).rglob("*")]):
                archive.add(item, recursive=False, filter=_plain)
        return str(path)


class PlainWheel(bdist_wheel):  # type: ignore[misc]
    """The wheel, in which everybody may read the files, whoever built it."""

    def write_wheelfile(self, wheelfile_base: str, *args: str) -> None:
        """Write the last file that goes into the archive, which is packed next."""
        super().write_wheelfile(wheelfile_base, *args)
        for path in Path(wheelfile_base).parent.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


setup(
    packages=[
        # torchlint.dev works on a checkout and has no use outside of one.
        *find_packages(include=["torchlint", "torchlint.*"], exclude=["torchlint.dev"]),
        "torchlint.rules",
        *(f"torchlint.rules.{family}" for family in find_packages("rules")),
    ],
    package_dir={"torchlint.rules": "rules"},
    cmdclass={"bdist_wheel": PlainWheel, "sdist": PlainSdist},
)
