"""`repeat-where-expand` (TL413): the rule, and what only it asks of the model."""
