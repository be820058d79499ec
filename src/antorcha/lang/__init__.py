"""The kernel language: expressions, native functions, and descriptions of kernels."""
