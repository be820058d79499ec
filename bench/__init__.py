"""antorcha measured against PyTorch, in one process, in turns: ``python -m bench``."""
