"""Plain records: classes of annotated fields, as dataclasses are, without their import.

The standard module brings the inspector, the tokenizer and the compiler's front end along, a tenth
of the whole import. This does what the records here need: ``__init__`` from the fields in order,
with defaults, then ``__post_init__``; no change afterwards; identity as equality.
"""

from __future__ import annotations

from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def struct(cls: type[T]) -> type[T]:
    """Decorates a class of annotated fields.

    >>> @struct
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0)
    Point(x=1.0, y=0.0)
    """
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}

    after = getattr(cls, "__post_init__", None)

    def init(self: Any, *args: Any, **given: Any) -> None:
        if len(args) > len(names) or not (not given or given.keys() <= set(names[len(args) :])):
            raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}")
        fields = self.__dict__  # to which `refuse` does not apply
        fields.update(defaults)
        fields.update(zip(names, args))
        fields.update(given)
        if len(fields) < len(names):
            missing = [n for n in names if n not in fields]
            raise TypeError(f"{cls.__name__} needs {', '.join(missing)}")
        if after is not None:
            after(self)

    def refuse(self: Any, name: str, value: Any = None) -> None:
        raise AttributeError(f"{cls.__name__}.{name} cannot be changed: use replace()")

    def show(self: Any) -> str:
        fields = ", ".join([f"{n}={getattr(self, n)!r}" for n in names])
        return f"{cls.__name__}({fields})"

    result: Any = cls
    result.__init__, result.__setattr__, result.__delattr__ = init, refuse, refuse
    result.__fields__ = names
    if "__repr__" not in cls.__dict__:
        result.__repr__ = show
    return cls


def replace(record: T, **changes: Any) -> T:
    """A copy of a record with some fields changed."""
    kind = type(record)
    return kind(**{n: getattr(record, n) for n in kind.__annotations__} | changes)
