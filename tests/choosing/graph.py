"""Which test file uses which source file: read from their syntax trees, nothing is imported.

A test file uses a source file in one of three ways, which ``Graph`` keeps apart:

- *near*: it imports the file, or something that the file defines (whatever re-exports that), or a
  string in it names the module, or it bears its name (``ops/test_views.py`` and ``ops/views.py``);
- *named*: it says a public name that the file defines: ``torch.nn.Linear``, ``x.softmax(0)``;
- *far*: a file that it uses in one of these ways imports the file, itself or through others. An
  import inside a function does not count: by such imports everything would depend on everything.

What a test's helper modules use, the test uses. A helper is imported, or a string names it, as that
of a program that runs in a process of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE, TESTS = "antorcha", "tests"
NOT_SHOWN = ("lang", "runtime", "devices", "cli", "lab")
"""The packages whose names no user writes."""
RECORDS = (f"{PACKAGE}.ops.kinds.record", "REGISTRY")
WORDS = re.compile(r"[A-Za-z_]\w*")
LIST_OF_NAMES = re.compile(r"\s*[A-Za-z_][\w.]*(\s+[A-Za-z_][\w.]*)*\s*")
ATTRIBUTES = re.compile(r"\.([A-Za-z_]\w*)")
MODULES = re.compile(rf"\b{PACKAGE}(?:\.\w+)+")
Edges = Mapping[str, set[str]]


class Module:
    """What a Python file imports, defines and says."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.is_test = path.name.startswith("test_")
        self.functions = [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        names = [node.name for node in self.tree.body
                 if isinstance(node, (ast.FunctionDef, ast.ClassDef))]  # fmt: skip
        self.public = {name for name in names if not name.startswith("_")}
        self.defined = self.public | set(_assigned(self.tree))
        self.is_of_tests = name.partition(".")[0] == TESTS
        # (Tests import inside functions what they test.)
        nodes = ast.walk(self.tree) if self.is_of_tests else _when_imported(self.tree.body)
        self.imported = dict([pair for node in nodes for pair in _imports(node)])
        """The name here -> the module, and the name there."""
        self.strings = list(_strings(self.tree))

    def words(self) -> set[str]:
        """The names that it says: attributes, what it imports, and the words of strings that are
        lists of names or programs."""
        said = {name for _, name in self.imported.values()}
        said.update([node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)])
        for text in self.strings:
            said.update((WORDS if LIST_OF_NAMES.fullmatch(text) else ATTRIBUTES).findall(text))
        return {word.rstrip("_") for word in said}

    def shown(self) -> set[str]:
        """The names that it gives to users, without the ``_`` of in-place forms."""
        parts = self.name.split(".")
        if parts[0] != PACKAGE or len(parts) < 2 or parts[1] in NOT_SHOWN:
            return set()
        names = self.ops() if parts[1] == "ops" else self.public
        return {name.rstrip("_") for name in names}

    def ops(self) -> set[str]:
        """The functions under a decorator that comes from ``antorcha.ops``: they are op records."""
        return {each.name for each in self.functions if each.name != "_"
                and any([self._makes_records(maker) for maker in each.decorator_list])}  # fmt: skip

    def _makes_records(self, decorator: ast.expr) -> bool:
        made = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = made.id if isinstance(made, ast.Name) else ""
        home, _ = self.imported.get(name, ("", ""))
        return name in self.defined or home.startswith(f"{PACKAGE}.ops.")


class Graph:
    """Who uses whom among a repository's Python files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Module] = {}
        self.at: dict[str, str] = {}  # a file's path in the repository -> the module's name
        for base, folder in ((root / "src", PACKAGE), (root, TESTS)):
            for path in sorted((base / folder).rglob("*.py")):
                name = _module_name(path.relative_to(base))
                try:
                    self.modules[name] = Module(name, path)
                except SyntaxError:  # a page of a notebook, which only a test reads
                    continue
                self.at[path.relative_to(root).as_posix()] = name
        self.imports = {name: self._imports(module) for name, module in self.modules.items()}
        self.tests = [name for name, module in self.modules.items() if module.is_test]
        self.helpers = {name: self._helpers(name) for name in self.modules if _is_of_tests(name)}
        parts = {test: closure([test], self.helpers) for test in self.tests}
        self.parts = parts  # a test and its helpers
        said = {name: self.modules[name].words() for name in self.helpers}
        self.said = {test: set().union(*[said[each] for each in parts[test]]) for test in parts}
        self.used = {test: set().union(*[self.imports[each] for each in parts[test]])
                     for test in parts}  # fmt: skip

    def near(self, module: str) -> set[str]:
        """The test modules that import a module, or bear its name in a folder of the same name."""
        *folders, own = module.split(".")
        same = re.compile(rf"test_{re.escape(own)}(_\w*)?")
        return {test for test in self.tests if module in self.used[test]
                or (same.fullmatch(test.rpartition(".")[2])
                    and not set(folders).isdisjoint(test.split(".")))}  # fmt: skip

    def named(self, module: str) -> set[str]:
        """The test modules that say one of the module's public names."""
        shown = self.modules[module].shown()
        return {test for test in self.tests if not shown.isdisjoint(self.said[test])}

    def far(self, module: str) -> set[str]:
        """The test modules that use, in either way, what imports the module."""
        users = closure([module], self.users())
        return set().union(*[self.near(user) | self.named(user) for user in users])

    def users(self) -> dict[str, set[str]]:
        """The source modules that import a module."""
        users: dict[str, set[str]] = {}
        for name, imported in self.imports.items():
            for each in imported if not _is_of_tests(name) else ():
                users.setdefault(each, set()).add(name)
        return users

    def of_records(self) -> set[str]:
        """The test modules that go through the records of all ops."""
        return {test for test in self.tests for each in self.parts[test]
                if RECORDS in self.modules[each].imported.values()}  # fmt: skip

    def of_helper(self, helper: str) -> set[str]:
        """The test modules that a module of the tests is part of: itself, if it is one."""
        return {test for test in self.tests if helper in self.parts[test]}

    def mentioned(self, test: str) -> set[str]:
        """The parts of paths in the strings of a test module and its helpers."""
        strings = [text for each in self.parts[test] for text in self.modules[each].strings]
        return {part for text in strings for part in text.split("/")}

    def file(self, module: str) -> str:
        """The path in the repository."""
        return self.modules[module].path.relative_to(self.root).as_posix()

    def _imports(self, module: Module) -> set[str]:
        """The modules that define what a module imports, or that its strings name. (A source file
        so names what it imports late: a part of its own package, or something above it.)"""
        named = [name.rpartition(".") for text in module.strings for name in MODULES.findall(text)]
        folder = module.name.rpartition(".")[0]
        late = [(home, name) for home, _, name in named
                if module.is_of_tests or home == folder != PACKAGE]  # fmt: skip
        found = {self._home(*origin) for origin in (*module.imported.values(), *late)}
        return found & self.modules.keys() - {module.name, PACKAGE}

    def _home(self, module: str, name: str, deepest: int = 9) -> str:
        """The module that defines a name of a module, through re-exports."""
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}"
        known = self.modules.get(module)
        if known is None or name in known.defined or name not in known.imported or not deepest:
            return module
        return self._home(*known.imported[name], deepest - 1)

    def _helpers(self, name: str) -> set[str]:
        """The modules of the tests that a module of the tests imports, or names in a string."""
        module = self.modules[name]
        words = {word for text in module.strings for word in WORDS.findall(text)}
        beside = {f"{name.rpartition('.')[0]}.{word}" for word in words} & self.modules.keys()
        programs = {each for each in beside if not self.modules[each].is_test}
        through = {home for home, _ in module.imported.values()} & self.modules.keys()
        return {each for each in self.imports[name] | programs | through if _is_of_tests(each)}


def closure(start: Iterable[str], edges: Edges) -> set[str]:
    """All that the edges lead to."""
    found = set(start)
    waiting = list(found)
    while waiting:
        fresh = edges.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found


def _is_of_tests(module: str) -> bool:
    return module.partition(".")[0] == TESTS


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(node: ast.AST) -> Iterator[tuple[str, tuple[str, str]]]:
    if isinstance(node, ast.ImportFrom) and node.module:
        for each in node.names:
            yield each.asname or each.name, (node.module, each.name)
    elif isinstance(node, ast.Import):
        for each in node.names:
            module, _, name = each.name.rpartition(".")
            yield each.asname or each.name, (module, name)


def _when_imported(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the file is imported, none of functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from _when_imported(node.orelse)
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            for part in ("body", "orelse", "finalbody"):
                yield from _when_imported(getattr(node, part, []))


def _assigned(tree: ast.Module) -> Iterator[str]:
    for statement in _when_imported(tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield statement.name
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def _strings(tree: ast.Module) -> Iterator[str]:
    """The string constants, but not the docstrings."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
