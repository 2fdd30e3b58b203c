"""`double-precision-on-device` (TL211): the rule, and what only it asks of the model."""
