"""Arithmetic, and nothing else: no names, no calls."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from decimal import Decimal, DecimalException

from agents.analysis.quantities import plain
from mesh.errors import Malformed

LONGEST = 200
_LARGEST = Decimal(10) ** 15
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def calculate(expression: str) -> str:
    """`3 * 112 = 336`. Raises `Malformed` for anything but numbers, + - * / and brackets."""
    if len(expression) > LONGEST:
        raise Malformed("That calculation is too long.")
    bare = expression.replace("×", "*").replace("÷", "/").replace("−", "-").replace(",", "").strip()
    try:
        value = _value(ast.parse(bare, mode="eval").body)
    except (SyntaxError, ValueError, DecimalException, RecursionError, MemoryError) as error:
        raise Malformed(f"{expression!r} can't be calculated: only numbers, + - * / and brackets.") from error
    return f"{bare} = {plain(value)}"


def _value(node: ast.expr) -> Decimal:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            value = Decimal(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            value = _OPERATORS[type(op)](_value(left), _value(right))
        case _:
            raise ValueError("no arithmetic")
    if abs(value) > _LARGEST:
        raise ValueError("too large")
    return value
