"""`impossible-loader-arguments` (TL105): the rule, and what only it asks of the model."""
