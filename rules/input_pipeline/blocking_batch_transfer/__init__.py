"""`blocking-batch-transfer` (TL103): the rule, and what only it asks of the model."""
