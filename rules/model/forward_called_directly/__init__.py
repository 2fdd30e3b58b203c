"""`forward-called-directly` (TL410): the rule, and what only it asks of the model."""
