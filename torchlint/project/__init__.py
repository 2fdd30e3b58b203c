"""The files around a file: where their names lead, and which of them are parts of one program."""
