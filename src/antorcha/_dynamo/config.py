"""``torch._dynamo.config``: settings of a compiler that never runs here. They are kept, no more.

See https://docs.pytorch.org/docs/stable/torch.compiler_config.html.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

accumulated_cache_size_limit = accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
allow_unspec_int_on_fsdp_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = recompile_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compiled_autograd = False
dynamic_shapes = True
error_on_recompile = False
fail_on_recompile_limit_hit = False
force_parameter_static_shapes = True
force_unspec_int_unbacked_size_like_on_torchrec_kjt = False
guard_nn_modules = True
inline_inbuilt_nn_modules = True
log_level = None
optimize_ddp: Any = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
specialize_float = False
specialize_int = False
suppress_errors = False
trace_numpy = True
verbose = False


class _Patch(contextlib.ContextDecorator):
    """Settings for a block, or for a function."""

    def __init__(self, changes: dict[str, Any]) -> None:
        self.changes = changes

    def __enter__(self) -> None:
        names = vars(sys.modules[__name__])
        self.before = {name: names[name] for name in self.changes if name in names}
        names.update(self.changes)

    def __exit__(self, *_: object) -> None:
        names = vars(sys.modules[__name__])
        for name in self.changes.keys() - self.before.keys():
            names.pop(name, None)
        names.update(self.before)


def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
    """Changes settings in a ``with`` block or a function: ``patch(verbose=True)``,
    ``patch("verbose", True)`` or ``patch({"verbose": True})``."""
    changes = {arg1: arg2} if isinstance(arg1, str) else dict(arg1 or kwargs)
    return _Patch(changes)
