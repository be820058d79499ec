"""``antorcha.graph``: the autograd graph, as a picture and as text."""
