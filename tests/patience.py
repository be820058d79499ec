"""How long a test waits for what must come.

Nobody waits so long where all is well: it only ends what hangs. It must make no difference whether
the machine is quick or slow, idle or busy; what a test asserts is counted, never timed.
"""

PATIENCE = 1200.0  # seconds for a process; pytest ends a test that takes longer (pyproject.toml)
