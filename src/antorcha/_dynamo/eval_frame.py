"""``torch._dynamo.eval_frame``: where libraries look for OptimizedModule."""

from __future__ import annotations

from antorcha._dynamo import is_dynamo_supported, is_inductor_supported, optimize
from antorcha.compiler.eager import OptimizedModule
from antorcha.errors import explain_missing

__all__ = ["OptimizedModule", "is_dynamo_supported", "is_inductor_supported", "optimize"]

explain_missing("torch._dynamo.eval_frame", globals())
