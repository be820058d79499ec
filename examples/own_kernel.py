"""A fused, differentiable op from a plain function: @antorcha.kernel, and how to look inside.

    python examples/own_kernel.py      (or antorcha run examples/own_kernel.py)

This one uses what antorcha has and PyTorch has not.
"""

import antorcha
import antorcha as torch
from antorcha.autograd import gradcheck, gradgradcheck
from antorcha.lang import expr
from antorcha.lang.native import f32, i64, interpreted, native, ptr


def plain(x, gate, beta=1.0):  # eight ops: eight passes over memory, eight nodes in the graph
    return x * torch.tanh(torch.log1p(torch.exp(beta * x))) * torch.sigmoid(gate)


# 1. A function of scalars becomes one op with one node; no value in between is kept. The same text
# serves, for here torch's functions are given expressions; as a decorator: @antorcha.kernel.
@antorcha.kernel
def mish_gate(x, gate, beta=1.0):
    return plain(x, gate, beta)


# 2. A function of rows: it may reduce. This is softmax at a temperature.
@antorcha.kernel(rows=True)
def sharpen(x, *, temperature=1.0):
    e = ((x - x.max().detach()) / temperature).exp()
    return e / e.sum()


# 3. A native function, for what neither can say: a loop that carries a value along.
@native
def smooth(out: ptr[f32], x: ptr[f32], n: i64, keep: f32) -> f32:
    state = f32(0)
    for i in range(n):
        state = keep * state + (f32(1) - keep) * x[i]
        out[i] = state
    return state


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 100, requires_grad=True)
    gate = torch.randn(100, requires_grad=True)  # broadcast

    ours, theirs = mish_gate(x, gate), plain(x, gate)
    torch.testing.assert_close(ours, theirs)
    grads = torch.autograd.grad(ours.square().sum(), (x, gate))
    wanted = torch.autograd.grad(theirs.square().sum(), (x, gate))
    torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-4)
    print("one node in the graph:", ours.grad_fn)

    few = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    print("gradients of two orders:", gradcheck(mish_gate, few), gradgradcheck(mish_gate, few))

    rows = torch.randn(5, 7)
    torch.testing.assert_close(sharpen(rows, temperature=0.5), torch.softmax(rows / 0.5, -1))

    # Looking inside. The expression, and its derivative:
    graph = expr.trace(lambda x: x * expr.sigmoid(x), [torch.float32])
    print("expression:", graph)
    print("derivative:", expr.derivative(graph, 0))

    # The kernel on the reference device: interpreted with NumPy instead of compiled.
    reference = mish_gate(x.detach().to("reference"), gate.detach().to("reference"))
    torch.testing.assert_close(reference.to("cpu"), ours.detach(), rtol=1e-5, atol=1e-6)

    # The native function, compiled; then as plain Python, statement by statement, with every
    # access to memory checked. A debugger stops inside.
    signal = torch.randn(50).numpy()
    compiled, stepped = torch.empty(50).numpy(), torch.empty(50).numpy()
    smooth(compiled, signal, 50, 0.9)
    with interpreted():
        smooth(stepped, signal, 50, 0.9)
        try:
            smooth(stepped, signal, 51, 0.9)  # one too many
        except IndexError as error:
            print("interpreted:", error)
    same = bool((abs(compiled - stepped) < 1e-6).all())
    print(f"kernels agree with the plain formula; compiled as interpreted: {same}")


if __name__ == "__main__":
    main()
