"""`bias-before-batch-norm` (TL401): the rule, and what only it asks of the model."""
