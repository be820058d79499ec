"""``torch.library`` and ``torch.ops``: operators in Python, their kernels and derivatives."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

import antorcha as torch
from antorcha.library.schema import parse_schema

Tensor = torch.Tensor


@pytest.fixture
def scaled() -> Any:
    @torch.library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: Tensor, by: int = 2, *, bias: float | None = None) -> Tensor:
        return x * by + (bias or 0.0)

    return scaled


def test_a_custom_op_is_found_and_named(scaled: Any) -> None:
    op = torch.ops.tests.scaled
    assert str(op.default) == "tests.scaled.default"
    assert op.overloads() == ["default"]
    assert op.default.name() == "tests::scaled"
    assert repr(scaled) == "<CustomOpDef(tests::scaled)>"
    schema = "tests::scaled(Tensor x, SymInt by=2, *, float? bias=None) -> Tensor"
    assert str(op.default._schema) == schema
    assert op(torch.ones(2), 3, bias=1.0).tolist() == [4.0, 4.0]
    assert pickle.loads(pickle.dumps(op.default)) is op.default is copy.deepcopy(op.default)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        torch.ops.tests.nope
    with pytest.raises(AttributeError, match="has no overload name 'nope'"):
        op.nope


def test_a_derivative(scaled: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scaled(x).sum().backward()
    seen = []

    def setup_context(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Any) -> None:
        ctx.by = inputs[1]
        seen.append(keyword_only_inputs)

    def backward(ctx: Any, g: Tensor) -> Any:
        assert ctx.needs_input_grad == (True, False)
        return g * ctx.by, None

    scaled.register_autograd(backward, setup_context=setup_context)
    scaled(x, by=5).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert seen == [{"bias": None}]
    with torch.no_grad():
        assert not scaled(x).requires_grad


def test_lists_of_tensors_go_through_a_derivative() -> None:
    @torch.library.custom_op("tests::total", mutates_args=())
    def total(xs: Sequence[Tensor], by: float) -> list[Tensor]:
        return [x * by for x in xs]

    total.register_autograd(lambda ctx, gs: ([g * ctx.by for g in gs], None),
                            setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))  # fmt: skip  # noqa: E501
    xs = [torch.ones(2, requires_grad=True), torch.ones(3)]
    out = total(xs, 3.0)
    assert isinstance(out, list)
    out[0].sum().backward()
    assert xs[0].grad.tolist() == [3.0, 3.0]


def test_tensors_without_data(scaled: Any) -> None:
    x = torch.ones(2, 3, device="meta")
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        scaled(x)
    scaled.register_fake(lambda x, by=2, bias=None: torch.empty_like(x))
    assert scaled(x).shape == (2, 3)
    assert torch.library.opcheck(scaled, (torch.ones(2),))["test_faketensor"] == "SUCCESS"


def test_what_a_custom_op_must_not_do() -> None:
    @torch.library.custom_op("tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(2))

    @torch.library.custom_op("tests::grow", mutates_args={"x"})
    def grow(x: Tensor) -> None:
        x.add_(1)

    x = torch.zeros(2)
    before = x._version
    grow(x)
    assert x.tolist() == [1.0, 1.0]
    assert x._version > before
    with pytest.raises(RuntimeError, match="non-functional operator"):
        grow.register_autograd(lambda ctx: None)


def test_a_library_of_operators() -> None:
    with torch.library._scoped_library("tests_lib", "DEF") as lib:
        assert lib.define("pair(Tensor x, int[] n=[1, 2], *, bool b=True) -> (Tensor, Tensor)")

        @torch.library.impl(lib, "pair", "CPU")
        def pair(x: Tensor, n: Any = (1, 2), b: bool = True) -> Any:
            return x + n[0], x + n[1]

        assert torch.ops.tests_lib.pair(torch.zeros(1))[1].tolist() == [2.0]
        assert torch.ops.tests_lib.pair(torch.zeros(1), [5, 6], b=False)[0].tolist() == [5.0]
        with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
            torch.library.Library("tests_lib", "DEF")
    with pytest.raises(AttributeError):
        torch.ops.tests_lib.pair
    torch.library.define("tests_lib::cube", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel was registered"):
        torch.ops.tests_lib.cube(torch.ones(1))
    torch.library.impl("tests_lib::cube", "CompositeImplicitAutograd", lambda x: x**3)
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.tests_lib.cube(x).backward()
    assert x.grad.tolist() == [12.0]


def test_antorchas_own_operators() -> None:
    aten = torch.ops.aten
    assert str(aten.add.Tensor) == "aten.add.Tensor"
    assert aten.add.Tensor(torch.ones(2), torch.ones(2)).tolist() == [2.0, 2.0]
    assert aten.relu(torch.tensor([-1.0])).tolist() == [0.0]
    assert aten.add_.Tensor(torch.ones(1), 1).tolist() == [2.0]
    with pytest.raises(AttributeError):
        aten.no_such_operator


REFUSED = {
    "_assert_scalar(0, 'so')": "so",
    "_assert_async(torch.tensor(0))": "but got zero",
    "_assert_async(torch.tensor([0, 1]))": "more than one value is ambiguous",
    "_assert_async(torch.tensor([]))": "no values is ambiguous",
    "_assert_async.msg(torch.tensor(False), 'bad')": "bad",
    "_assert_tensor_metadata(x, [2, 4])": r"sizes mismatch! Expected: \[2, 4\], Got: \[2, 3\]",
    "_assert_tensor_metadata(x, None, (1, 1))": "strides mismatch",
    "_assert_tensor_metadata(x, dtype=torch.int64)": "dtype mismatch",
    "_assert_tensor_metadata(x, device=torch.device('meta'))": "device mismatch",
    "sym_constrain_range(7, min=1, max=2)": "range",
}


def test_operators_that_check() -> None:
    names = {"x": torch.ones(2, 3), "torch": torch}
    for text, message in REFUSED.items():
        with pytest.raises(RuntimeError, match=message):
            eval(f"torch.ops.aten.{text}", names)
    aten, x = torch.ops.aten, names["x"]
    aten._assert_scalar.default(1, "")
    aten._assert_async.default(torch.tensor([3]))
    aten._assert_tensor_metadata.default(x, [2, 3], [3, 1], torch.float32)
    aten._assert_tensor_metadata(x, device=torch.device("cpu"), layout=torch.strided)
    aten.sym_constrain_range_for_size.default(3, min=1, max=5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f(), "missing value for argument 'x'"),
        (lambda f: f(3), "Expected a value of type 'Tensor' for argument 'x'"),
        (lambda f: f(torch.ones(1), "a"), "Expected a value of type 'int'"),
        (lambda f: f(torch.ones(1), z=1), "Unknown keyword argument 'z'"),
        (lambda f: f(torch.ones(1), 1, 2), "expected at most 2 argument"),
        (lambda f: torch.library.register_fake("tests::none", f), "does not exist"),
        (lambda f: parse_schema("f(Tensor x"), "expected a schema"),
    ],
)
def test_what_is_refused(call: Any, text: str, scaled: Any) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(scaled)


def test_what_cannot_be_done_says_so() -> None:
    for call in (lambda: torch.library.wrap_triton(None), torch.library.get_ctx):
        with pytest.raises(NotImplementedError, match=r"torch\.library"):
            call()


@pytest.mark.oracle
def test_schemas_are_inferred_as_pytorch_infers_them() -> None:
    real = importlib.import_module("torch")
    lists = "xs: list[Tensor], n: Sequence[int] | None, *, q: bool = False"
    sources = [
        "def f(x: Tensor) -> Tensor: ...",
        "def f(x: Tensor, d: dtype, v: device, s: str = 'a', e: float = 1e-5) -> None: ...",
        f"def f({lists}) -> tuple[Tensor, Tensor]: ...",
        "def f(x: Tensor | None, y: float | int | bool, z: list[float]) -> list[Tensor]: ...",
        "def f(x: Tensor) -> tuple[Tensor]: ...",
    ]
    for source in sources:
        for changed in ((), "unknown"):
            texts = []
            for library in (torch, real):
                names = {"Tensor": library.Tensor, "dtype": library.dtype, "Sequence": Sequence,
                         "device": library.device}  # fmt: skip
                exec(source, names)
                try:
                    texts.append(library.library.infer_schema(names["f"], mutates_args=changed))
                except ValueError:
                    texts.append("ValueError")
            assert texts[0] == texts[1], source


def test_operators_that_are_no_functions_of_torch() -> None:
    aten = torch.ops.aten
    x = torch.arange(6.0).reshape(2, 3).t()
    copy = aten._to_copy.default(x, dtype=torch.float64)
    assert (copy.dtype, copy.stride()) == (torch.float64, x.stride())
    assert aten._to_copy(x).data_ptr() != x.data_ptr()
    assert aten.index.Tensor(x, [None, torch.tensor([1])]).tolist() == [[3], [4], [5]]
    assert aten._local_scalar_dense(x[1, 1]) == 4.0
    a = torch.eye(3).to_sparse_csr()
    assert aten._sparse_addmm(x, a, x, beta=2).tolist() == (3 * x).tolist()
    assert aten._sparse_mm_reduce_impl(a, x, "amax")[0].tolist() == x.tolist()
    assert aten.sort.stable(x, stable=True, dim=0)[0].tolist() == x.tolist()
