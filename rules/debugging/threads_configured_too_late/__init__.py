"""`threads-configured-too-late` (TL807): the rule, and what only it asks of the model."""
