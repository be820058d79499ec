"""``antorcha.explain``: errors explained in the program's own words."""
