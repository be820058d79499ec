"""L-BFGS: a quasi-Newton method for small problems without noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from antorcha.autograd import no_grad
from antorcha.errors import GraphError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.optim.optimizer import Optimizer, check
from antorcha.runtime.tensor import Tensor

__all__ = ["LBFGS"]

_KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    r"""L-BFGS: steps along ``-H g``, where H, the inverse of the second derivative, is estimated
    from the last gradients.

    Each step makes up to ``max_iter`` iterations and calls the closure for each. It has one group
    of parameters, and needs memory for ``2 * history_size`` copies of them.

    Liu & Nocedal, "On the limited memory BFGS method for large scale optimization" (1989); the line
    search: Nocedal & Wright, "Numerical optimization" (2006), algorithms 3.5 and 3.6.

    Args:
        params (iterable): parameters
        lr (float or Tensor): the length of a step. Default: 1
        max_iter (int): iterations of a step. Default: 20
        max_eval (int, optional): calls of the closure in a step. Default: max_iter * 5 // 4
        tolerance_grad (float): a gradient this small ends the step. Default: 1e-7
        tolerance_change (float): so does a change this small. Default: 1e-9
        history_size (int): how many gradients H is estimated from. Default: 100
        line_search_fn (str, optional): 'strong_wolfe', or None for steps of fixed length.
            Default: None

    >>> w = torch.nn.Parameter(torch.tensor([3., -4.]))
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - torch.tensor([1., 2.])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    40.0
    >>> w.detach()
    tensor([1., 2.])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check(lr=lr)
        defaults = {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueRangeError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to ``max_iter`` iterations.

        Args:
            closure (callable): drops the gradients, computes the loss and its gradients, and
                returns the loss
        """
        if len(self.param_groups) != 1:
            raise AssertionError(
                f"LBFGS: Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        how = self.param_groups[0]["line_search_fn"]
        if how not in (None, "strong_wolfe"):
            raise GraphError(f"LBFGS: line_search_fn={how!r}: only 'strong_wolfe' is supported")
        with no_grad():
            return self._minimize(lambda: self._loss(closure))

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = group["lr"].squeeze() if isinstance(group["lr"], Tensor) else group["lr"]
        most, small = group["max_iter"], group["tolerance_change"]
        state = self.state[group["params"][0]]  # of the first parameter: loading casts it
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, grad = float(first_loss), self._flat_grad()
        state["func_evals"] += 1
        calls = 1
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss
        now = {key: state.get(key) for key in _KEPT}
        for k in range(1, most + 1):
            state["n_iter"] += 1
            self._turn(state, now, grad)
            if now["prev_flat_grad"] is None:
                now["prev_flat_grad"] = grad.clone()
            else:
                now["prev_flat_grad"].copy_(grad)
            now["prev_loss"] = loss
            now["t"] = lr
            if state["n_iter"] == 1:
                now["t"] = min(1.0, 1.0 / grad.abs().sum()) * lr
            d, slope = now["d"], grad.dot(now["d"])
            if slope > -small:
                break
            if group["line_search_fn"] is not None:
                start = _Point(0, loss, grad, slope)
                budget = group["max_eval"] - calls
                found, spent = self._search(closure, start, now["t"], d, budget)
                loss, grad, now["t"] = found.loss, found.grad, found.t
                self._move(now["t"], d)
            else:
                self._move(now["t"], d)
                spent = 0
                if k != most:  # the last one's loss would not be used
                    loss, grad = float(closure()), self._flat_grad()
                    spent = 1
            calls += spent
            state["func_evals"] += spent
            if (
                k == most
                or calls >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(d.mul(now["t"])) <= small
                or abs(loss - now["prev_loss"]) < small
            ):
                break
        state.update(now)
        return first_loss

    def _turn(self, state: dict[str, Any], now: dict[str, Any], grad: Tensor) -> None:
        """The next direction, ``-H grad``: the two loops over the history."""
        if state["n_iter"] == 1:
            now.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return
        size = self.param_groups[0]["history_size"]
        changes, steps, ro = now["old_dirs"], now["old_stps"], now["ro"]
        y, s = grad.sub(now["prev_flat_grad"]), now["d"].mul(now["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(changes) == size:
                for history in (changes, steps, ro):
                    history.pop(0)
            changes.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            now["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * size)
        q: Any = grad.neg()
        for i in range(len(changes) - 1, -1, -1):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(changes[i], alpha=-float(al[i]))
        d = T.mul(q, now["H_diag"])
        for i in range(len(changes)):
            d.add_(steps[i], alpha=float(al[i] - changes[i].dot(d) * ro[i]))
        now["d"] = d

    def _search(
        self, closure: Callable[[], Any], start: _Point, t: Any, d: Tensor, budget: int
    ) -> tuple[_Point, int]:
        """A point along d that satisfies the strong Wolfe conditions; the parameters stay."""
        params = self.param_groups[0]["params"]
        before = [p.clone() for p in params]

        def at(t: Any) -> _Point:
            self._move(t, d)
            loss, grad = float(closure()), self._flat_grad()
            for p, value in zip(params, before, strict=True):
                p.copy_(value)
            return _Point(t, loss, grad, grad.dot(d))

        small = 1e-9  # PyTorch's, whatever tolerance_change is
        return _strong_wolfe(at, start, t, _largest(d), small, budget)

    def _flat_grad(self) -> Any:
        """All gradients, one after the other; complex ones as pairs of reals."""
        parts = []
        for p in self.param_groups[0]["params"]:
            grad = T.zeros_like(p) if p._grad is None else p._grad.to_dense()
            parts.append(T.reshape(_real(grad), (-1,)))
        return T.cat(parts)

    def _move(self, t: Any, d: Any) -> None:
        """Adds ``t * d`` to the parameters."""
        at = 0
        for p in self.param_groups[0]["params"]:
            real = _real(p)
            size = real.numel()
            real.add_(d[at : at + size].view(real.shape), alpha=float(t))
            at += size


def _real(t: Tensor) -> Any:
    return T.view_as_real(t) if t._layout.dtype.kind == "c" else t


def _largest(t: Tensor) -> Any:
    return t.abs().max()


# ------------------------------------------------------------------------------------ line search
class _Point(NamedTuple):
    """A step length, the loss and its gradient there, and its slope along the direction."""

    t: Any
    loss: float
    grad: Any
    slope: Any


def _strong_wolfe(
    at: Callable[[Any], _Point], start: _Point, t: Any, reach: Any, small: float, budget: int
) -> tuple[_Point, int]:
    """The point found, and how often ``at`` was called.

    First the step grows until a good point or a bracket around one is found; then the bracket
    shrinks. ``reach`` is the direction's largest element.
    """
    previous, now = start, at(t)
    tries = 0
    while tries < budget:
        if _too_high(now, start) or (tries > 1 and now.loss >= previous.loss):
            return _zoom(at, start, [previous, now], reach, small, tries, budget)
        if _flat(now, start):
            return now, tries + 1
        if now.slope >= 0:
            return _zoom(at, start, [previous, now], reach, small, tries, budget)
        t = _cubic(previous, now, now.t + 0.01 * (now.t - previous.t), now.t * 10)
        previous, now = now, at(t)
        tries += 1
    return _zoom(at, start, [start, now], reach, small, tries, budget)


def _zoom(
    at: Callable[[Any], _Point], start: _Point, bracket: list[_Point], reach: Any, small: float,
    tries: int, budget: int,
) -> tuple[_Point, int]:  # fmt: skip
    """Shrinks a bracket until its lower end is a good point."""
    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    while tries < budget:
        least, most = sorted([bracket[0].t, bracket[1].t])
        if abs(most - least) * reach < small:
            break
        t = _cubic(bracket[0], bracket[1], least, most)
        margin = 0.1 * (most - least)
        near = min(most - t, t - least) < margin
        if near and (stuck or t >= most or t <= least):
            t = most - margin if abs(t - most) < abs(t - least) else least + margin
            near = False
        stuck = near
        now = at(t)
        tries += 1
        if _too_high(now, start) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        good = _flat(now, start)
        if not good and now.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
        if good:
            break
    return bracket[low], tries + 1


def _too_high(now: _Point, start: _Point) -> bool:
    """Has the loss fallen too little? (Armijo's condition)"""
    return bool(now.loss > start.loss + 1e-4 * now.t * start.slope)


def _flat(now: _Point, start: _Point) -> bool:
    """Is the slope small enough? (the curvature condition)"""
    return bool(abs(now.slope) <= -0.9 * start.slope)


def _cubic(a: _Point, b: _Point, least: Any, most: Any) -> Any:
    """The minimum, within bounds, of the cubic through two points with their slopes."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2.0
    d2 = square.sqrt()
    if a.t > b.t:
        a, b = b, a
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, least), most)
