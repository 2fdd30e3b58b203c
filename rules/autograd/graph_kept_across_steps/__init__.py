"""`graph-kept-across-steps` (TL303): the rule, and what only it asks of the model."""
