"""The parts of the lab's page, a file for each. Each is built once, and refreshed when the session
has changed what it shows."""
