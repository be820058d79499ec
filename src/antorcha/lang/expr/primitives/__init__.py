"""Every scalar op, one record each, a file per family.

A record says all that antorcha knows of an op but how a device computes it: the type rule, NumPy's
twin, the derivative, the rule for complex numbers, the domain, the accuracy asked for, the
expansion. Its variable is the function itself: `exp(x)` builds a node on an expression, computes on
numbers, and dispatches on tensors (see `op.py`). Rules name other ops as ``E.exp``.

A derivative rule gets the cotangent, the arguments and the result, and gives the contribution to
one argument, in ops. Conventions are PyTorch's: subgradients (abs'(0) = 0, ties of maximum split in
halves), and for complex numbers the conjugate (`g * conj(dy/dx)`); `conj` of a real is itself.
An expansion gives the same value of real numbers in simpler ops, to a few ulp; devices prefer their
own (the CPU's: `devices/math`).
"""
