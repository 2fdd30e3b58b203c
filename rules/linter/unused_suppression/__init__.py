"""`unused-suppression` (TL002): the rule, and what only it asks of the model."""
