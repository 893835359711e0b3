"""Liquid within bounds: whoever writes a template, or a value for it, cannot hold a worker up.

Each step of a rendering, each value that it looks at and each character that it makes is paid for out of one budget,
which is the same on every machine: so is what a template says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, ClassVar, Final

from liquid import DictLoader, Environment, Node, RenderContext, StrictUndefined
from liquid.builtin.expressions import FilteredExpression, StringLiteral
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.tags.render_tag import RenderNode
from liquid.exceptions import LiquidError, UndefinedError
from liquid.expression import Expression
from liquid.template import BoundTemplate
from liquid.token import Token
from msgspec import Struct

from waypost.domain.template import MISSING_VARIABLE, TEMPLATE_FAILED, Unrendered

BUDGET: Final = 10_000
"""The steps of one rendering; a value costs one more for each 256 of its characters or elements."""
UNIT: Final = 256
OUTPUT_LIMIT_BYTES: Final = 256 * 1024
LOCALS_LIMIT_BYTES: Final = 128 * 1024
TERMS_LIMIT: Final = 50
"""The most terms and filters of one tag or output."""
RANGE_LIMIT: Final = 10_000
BITS_LIMIT: Final = 256
"""The most bits of a whole number."""
TAGS: Final = frozenset(
    {
        *("if", "unless", "case", "for", "break", "continue", "assign", "capture", "echo", "render", "cycle"),
        *("comment", "#", "content", "output", "illegal"),
    }
)
"""The tags of Liquid that templates may use, and those that stand for its text and its outputs."""
PLAIN_FILTERS: Final = frozenset(
    {
        *("abs", "at_least", "at_most", "ceil", "divided_by", "floor", "minus", "modulo", "plus", "round", "times"),
        *("append", "capitalize", "downcase", "escape", "escape_once", "lstrip", "newline_to_br", "prepend", "remove"),
        *("rstrip", "slice", "split", "strip", "strip_newlines", "truncate", "truncatewords", "upcase", "url_encode"),
        *("compact", "concat", "first", "last", "map", "reverse", "sort", "sort_natural", "sum", "uniq", "where"),
        *("default", "size"),
    }
)
"""The filters of Liquid that take and make no more than they are given; others are ours."""
_NAME: Final = re.compile(r"[\w.\[\]-]{1,80}")


class TooMuch(LiquidError):
    """The error that a rendering takes more than it may."""

    def __init__(self, what: str) -> None:
        super().__init__(what, token=None)


class Missing(StrictUndefined):
    """A variable that was not given: to use it ends the rendering, but for the filter ``default``."""

    force_liquid_default = True

    def __init__(self, name: str, *, token: Token | None, obj: object = None, hint: str | None = None) -> None:
        super().__init__(name, token=token)
        self.msg = name


class _Context(RenderContext):
    """A context in which every step and every value is paid for."""

    env: BoundedEnvironment

    @property
    def disabled_tags(self) -> list[str]:
        """What may not be used here; to ask is one step."""
        self.env.spend(1)
        return self._disabled

    @disabled_tags.setter
    def disabled_tags(self, tags: list[str]) -> None:
        self._disabled = tags

    def get(self, path: list[object], *, token: Token | None, default: object = ...) -> object:
        """Look a variable up, and pay for what it holds."""
        found = super().get(path, token=token, default=None if default is ... else default)
        if found is None and default is ...:
            found = super().get(path, token=token)
            if type(found) is Missing:  # it answers no other question
                return Missing(_name(path, token), token=token)
        self.env.spend(cost(found))
        return found


class BoundedTemplate(BoundTemplate):
    """A template whose renderings are bounded."""

    context_class = _Context


class BoundedEnvironment(Environment):
    """The tags and filters of templates, and what is left of the budget of the present rendering."""

    template_class = BoundedTemplate
    context_depth_limit: ClassVar[int] = 10
    block_nesting_limit: ClassVar[int] = 20
    loop_iteration_limit: ClassVar[int | None] = BUDGET
    local_namespace_limit: ClassVar[int | None] = LOCALS_LIMIT_BYTES
    output_stream_limit: ClassVar[int | None] = OUTPUT_LIMIT_BYTES

    def __init__(self, parts: Mapping[str, str], filters: Mapping[str, Callable[..., Any]], *, html: bool) -> None:
        super().__init__(loader=DictLoader({}), undefined=Missing, autoescape=html)
        self.left = BUDGET
        self.tags = {name: tag for name, tag in self.tags.items() if name in TAGS}
        own = {name: self._charged(run) for name, run in filters.items()}
        self.filters = {name: self._charged(self.filters[name]) for name in PLAIN_FILTERS} | own
        self._parts = {name: self.compile(source, f"parts.{name}") for name, source in parts.items()}

    def compile(self, source: str, where: str) -> BoundTemplate:
        """Parse *source*; Unrendered says what is wrong with it, and *where*."""
        try:
            made = self.from_string(source, name=where)
            self._bound(made.nodes, _static(made))
        except LiquidError as wrong:
            raise Unrendered(TEMPLATE_FAILED, f"{where}: {_said(wrong)}") from None
        return made

    def get_template(self, name: str, **_: object) -> BoundTemplate:
        """Return a shared part."""
        if name not in self._parts:
            raise LiquidError(f"no part is called {name[:64]}", token=None)
        return self._parts[name]

    def fill(self, template: BoundTemplate, values: Mapping[str, Any]) -> str:
        """Render *template* with *values*; Unrendered names what is missing, or says what is wrong."""
        try:
            return template.render(values)
        except Unrendered:
            raise
        except LiquidError as wrong:
            raise _unrendered(template, wrong) from None
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as surprise:
            why = f"{template.name}: a value of another kind than the template expects ({type(surprise).__name__})"
            raise Unrendered(TEMPLATE_FAILED, why) from None

    def spend(self, steps: int) -> None:
        """Take *steps* out of the budget; TooMuch where it is used up."""
        self.left -= steps
        if self.left < 0:
            raise TooMuch(f"takes more than {BUDGET} steps")

    def _charged(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def charged(*given: Any, **named: Any) -> Any:
            self.spend(1 + sum(map(cost, given)))
            made = run(*given, **named)
            self.spend(cost(made))
            return made

        for name in ("with_context", "with_environment"):
            setattr(charged, name, getattr(run, name, False))
        return charged

    def _bound(self, nodes: Iterable[Node], static: RenderContext) -> None:
        """Bound the ranges and the terms of each node."""
        for node in _nodes(nodes, static):
            terms = 0
            for expression in _each(node.expressions()):
                used = (expression.filters or ()) if isinstance(expression, FilteredExpression) else ()
                terms += 1 + len(used)
                for each in used:
                    if each.name not in self.filters:
                        raise LiquidError(f"no filter is called {each.name[:64]}", token=None)
                if isinstance(expression, RangeLiteral):
                    expression.start, expression.stop = _Bounded(expression.start), _Bounded(expression.stop)
            if terms > TERMS_LIMIT:
                raise TooMuch(f"has more than {TERMS_LIMIT} terms in one place")


class _Bounded(Expression):
    """An end of a range that is not far."""

    __slots__ = ("inner",)

    def __init__(self, inner: Expression) -> None:
        super().__init__(inner.token)
        self.inner = inner

    def evaluate(self, context: RenderContext) -> object:
        value = self.inner.evaluate(context)
        if isinstance(value, int | float) and not -RANGE_LIMIT <= value <= RANGE_LIMIT:
            raise TooMuch(f"has a range that ends beyond {RANGE_LIMIT}")
        return value if isinstance(value, int | float) else 0

    def children(self) -> list[Expression]:
        return [self.inner]


def cost(value: object) -> int:
    """Return what it costs to look at *value*; TooMuch where no value may be so large."""
    if type(value) is Missing:
        return 0
    if isinstance(value, int):
        if value.bit_length() > BITS_LIMIT:
            raise TooMuch("makes a number that is too large")
        return 0
    return len(value) // UNIT if isinstance(value, Sized) else 0


class Asked(Struct, frozen=True):
    """The names that a template writes down of what it asks for."""

    texts: frozenset[str]
    """The keys of the filter ``t``."""
    parts: frozenset[str]


def asked_by(template: BoundTemplate) -> Asked:
    """List what *template* asks for, as far as it is written down."""
    static = _static(template)
    nodes = list(_nodes(template.nodes, static))
    outputs = [each for node in nodes for each in _each(node.expressions()) if isinstance(each, FilteredExpression)]
    keyed = [each for each in outputs if [used.name for used in (each.filters or ())[:1]] == ["t"]]
    return Asked(
        frozenset(each.left.value for each in keyed if isinstance(each.left, StringLiteral)),
        frozenset(
            each.name.value for each in nodes if isinstance(each, RenderNode) and isinstance(each.name, StringLiteral)
        ),
    )


def _nodes(nodes: Iterable[Node], static: RenderContext) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _nodes(node.children(static, include_partials=False), static)


def _static(template: BoundTemplate) -> RenderContext:
    return RenderContext(template)


def _each(expressions: Iterable[Expression]) -> Iterable[Expression]:
    for expression in expressions:
        yield expression
        yield from _each(expression.children())


def _unrendered(template: BoundTemplate, wrong: LiquidError) -> Unrendered:
    if isinstance(wrong, UndefinedError):
        return Unrendered(MISSING_VARIABLE, f"the variable {wrong.message} is missing")
    return Unrendered(TEMPLATE_FAILED, f"{template.name}: {_said(wrong)}")


def _said(wrong: LiquidError) -> str:
    return str(wrong.message or type(wrong).__name__)[:160]


def _name(path: list[object], token: Token | None) -> str:
    """Return a variable's name as the template writes it: what an index in it came to is a value, and not shown."""
    found = None if token is None else _NAME.match(token.source, token.start_index)
    return found[0] if found else str(path[0])[:80]
