"""`collective-for-logging` (TL708): the rule, and what only it asks of the model."""
