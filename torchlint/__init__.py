"""A static linter that finds the lines that make PyTorch programs slow, and fixes them."""

__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """Register the magics ``%torchlint`` and ``%%torchlint``; called by ``%load_ext torchlint``."""
    # By its name, as commands are: this module is below all others.
    from importlib import import_module

    import_module("torchlint.ipython").load(shell)
