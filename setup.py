"""Lists the packages; everything else about the distribution is in pyproject.toml.

The rules live in the top-level folder ``rules/`` and are imported as ``torchlint.rules``. No static
setting can say "every package under rules/, but below another name", and a list kept by hand would
have to be edited with each new family.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        # torchlint.dev works on a checkout and has no use outside of one.
        *find_packages(include=["torchlint", "torchlint.*"], exclude=["torchlint.dev"]),
        "torchlint.rules",
        *(f"torchlint.rules.{family}" for family in find_packages("rules")),
    ],
    package_dir={"torchlint.rules": "rules"},
)
