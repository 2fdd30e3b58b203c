"""`deprecated-api` (TL902): the rule, and what only it asks of the model."""
