"""`legacy-dynamo` (TL514): the rule, and what only it asks of the model."""
