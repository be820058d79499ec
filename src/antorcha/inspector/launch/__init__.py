"""A launch of the simulated GPU, as ``antorcha.inspect`` shows it."""
