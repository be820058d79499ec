"""The machinery behind the records: what an op is, and what each kind of op does."""
