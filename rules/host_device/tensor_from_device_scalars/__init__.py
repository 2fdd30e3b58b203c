"""`tensor-from-device-scalars` (TL212): the rule, and what only it asks of the model."""
