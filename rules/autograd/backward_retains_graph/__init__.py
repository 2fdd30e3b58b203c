"""`backward-retains-graph` (TL304): the rule, and what only it asks of the model."""
