"""`scalar-sent-every-step` (TL210): the rule, and what only it asks of the model."""
