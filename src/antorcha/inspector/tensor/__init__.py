"""``antorcha.inspect``: what is known of a tensor, as text, as HTML and as pictures."""
