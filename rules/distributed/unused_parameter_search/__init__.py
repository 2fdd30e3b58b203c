"""`unused-parameter-search` (TL703): the rule, and what only it asks of the model."""
