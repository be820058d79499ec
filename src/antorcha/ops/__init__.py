"""The ops: one record each, a file per family, and the machinery behind the records."""
