"""Kernels for GPUs, in the kernel language: one source for every kind of GPU and the simulator.

A template (a file here for each family) turns a description into a :class:`~.frame.GridPlan`: which
kernels run, over which grid, and the words that each is given. A device (``devices/sim``,
``devices/cuda``) compiles them for its target and launches them. No template knows a device.
"""
