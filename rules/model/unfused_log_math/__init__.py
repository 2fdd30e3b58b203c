"""`unfused-log-math` (TL406): the rule, and what only it asks of the model."""
