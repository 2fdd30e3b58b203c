"""`allocator-configured-too-late` (TL603): the rule, and what only it asks of the model."""
