"""Devices: each folder runs descriptions of kernels on one kind of machine."""
