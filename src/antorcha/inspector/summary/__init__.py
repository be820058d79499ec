"""``antorcha.summary``: the layers of a model, as a table."""
