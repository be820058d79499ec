"""What shows a tensor, a graph, a model or an error to whoever wants to see inside.

Each is reachable from the face (``antorcha.inspect``), and loaded when it is first used.
"""
