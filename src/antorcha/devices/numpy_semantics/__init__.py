"""What each description of a kernel means, computed with NumPy."""
