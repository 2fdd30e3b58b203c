"""`loader-without-workers` (TL101): the rule, and what only it asks of the model."""
