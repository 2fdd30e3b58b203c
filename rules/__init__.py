"""The rules, one file each, in one folder a family; imported as ``torchlint.rules``."""
