"""The call path: keys, plans, nodes; from an op and its arguments to a result."""
