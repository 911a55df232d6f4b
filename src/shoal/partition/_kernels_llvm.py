"""Compiled distances, bounds and extremes of all vector lanes at once; specified in `_kernels_vector`.

Compilers vectorise such short loops badly (measured: a fourth of the speed), so the vectors are written explicitly;
LLVM maps them to the vector width of the processor. No operation is reordered or fused: every lane has the bits of the
plain loop. Functions take whole arrays and a block number, because array views cost reference counting.
Rows of a block: one per attribute, then one more for the distance to a reference point.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

from shoal.kernels import compiled_into_callers
from shoal.partition._kernels_vector import FAN, LEAF, SLACK

compiled_into_callers(__name__)

cgutils: Any = _cgutils
_DOUBLE = ir.DoubleType()
_WORD = ir.IntType(64)
_INDEX = ir.IntType(32)


def _vector(lanes: int) -> Any:
    return ir.VectorType(_DOUBLE, lanes)


def _splat(builder: Any, scalar: Any, lanes: int) -> Any:
    kind = ir.VectorType(scalar.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, scalar, ir.Constant(_INDEX, 0))
    zeros = ir.Constant(ir.VectorType(_INDEX, lanes), [0] * lanes)
    return builder.shuffle_vector(single, undefined, zeros)


def _constant(value: float, lanes: int) -> Any:
    return ir.Constant(_vector(lanes), [value] * lanes)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _fold(builder: Any, vector: Any, lanes: int, pick: Any) -> Any:
    """The largest or smallest lane, by halving."""
    while lanes > 1:
        lanes //= 2
        mask = ir.VectorType(_INDEX, lanes)
        low = builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(lanes))))
        high = builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(lanes, 2 * lanes))))
        vector = pick(builder, low, high)
    return builder.extract_element(vector, ir.Constant(_INDEX, 0))


def _mask(builder: Any, relation: str, a: Any, b: Any, lanes: int) -> Any:
    bits = builder.bitcast(builder.fcmp_ordered(relation, a, b), ir.IntType(lanes))
    return builder.zext(bits, _WORD)


class _Arguments:
    """The arguments of an intrinsic: arrays by their data pointer, scalars as they are."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.builder = builder
        self.values = []
        self.shapes = []
        for kind, value in zip(signature.args, values, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                self.values.append(array.data)
                self.shapes.append(cgutils.unpack_tuple(builder, array.shape))
            else:
                self.values.append(value)
                self.shapes.append([])

    def rows(self, array: int) -> Any:
        """Rows per block of a three-dimensional array."""
        return self.shapes[array][1]

    def row(self, array: int, number: Any, lanes: int) -> Any:
        """The row with this number, counted over all blocks."""
        offset = self.builder.mul(number, ir.Constant(_WORD, lanes))
        pointer = self.builder.gep(self.values[array], [offset])
        return self.builder.load(self.builder.bitcast(pointer, _vector(lanes).as_pointer()), align=8)

    def scalar(self, array: int, number: Any) -> Any:
        return self.builder.load(self.builder.gep(self.values[array], [number]))

    def store(self, array: int, vector: Any, lanes: int) -> None:
        pointer = self.builder.bitcast(self.values[array], _vector(lanes).as_pointer())
        self.builder.store(vector, pointer, align=8)


def _distances(relation: str) -> Any:
    @intrinsic
    def distances(typing_context, values, leaf, point, limit, out):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = _Arguments(context, builder, signature, arguments)
            base = builder.mul(given.values[1], given.rows(0))
            total = cgutils.alloca_once_value(builder, _constant(0.0, LEAF))
            with cgutils.for_range(builder, given.shapes[2][0]) as loop:
                centre = _splat(builder, given.scalar(2, loop.index), LEAF)
                difference = builder.fsub(given.row(0, builder.add(base, loop.index), LEAF), centre)
                square = builder.fmul(difference, difference)
                builder.store(builder.fadd(builder.load(total), square), total)
            result = builder.load(total)
            given.store(4, result, LEAF)
            return _mask(builder, relation, result, _splat(builder, given.values[3], LEAF), LEAF)

        return types.int64(values, types.int64, point, types.float64, out), generate

    return distances


distances_within: Any = _distances("<=")
distances_beyond: Any = _distances(">=")


def _clipped(builder: Any, value: Any, low: Any, high: Any) -> Any:
    return _smaller(builder, _larger(builder, value, low), high)


def _quotient(builder: Any, a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0."""
    zero = _constant(0.0, FAN)
    return builder.select(builder.fcmp_ordered(">", b, zero), builder.fdiv(a, b), zero)


def _length(builder: Any, given: _Arguments, point: int, reference: int) -> Any:
    """Distance of the point to the reference."""
    square = cgutils.alloca_once_value(builder, ir.Constant(_DOUBLE, 0.0))
    with cgutils.for_range(builder, given.shapes[point][0]) as loop:
        v = builder.fsub(given.scalar(point, loop.index), given.scalar(reference, loop.index))
        builder.store(builder.fadd(builder.load(square), builder.fmul(v, v)), square)
    root = builder.module.declare_intrinsic("llvm.sqrt", [_DOUBLE])
    return _splat(builder, builder.call(root, [builder.load(square)]), FAN)


@intrinsic
def _near_bounds(typing_context, low, high, group, point, reference, limit, out):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = _Arguments(context, builder, signature, arguments)
        base = builder.mul(given.values[2], given.rows(0))
        d = given.shapes[3][0]
        zero, one = _constant(0.0, FAN), _constant(1.0, FAN)
        length = _length(builder, given, 3, 4)
        reach = _larger(builder, given.row(1, builder.add(base, d), FAN), zero)
        shrink = _smaller(builder, _quotient(builder, reach, length), one)
        weight = _larger(builder, builder.fsub(_quotient(builder, length, reach), one), zero)
        total = cgutils.alloca_once_value(builder, zero)
        inside = cgutils.alloca_once_value(builder, zero)
        with cgutils.for_range(builder, d) as loop:
            row = builder.add(base, loop.index)
            p, origin = given.scalar(3, loop.index), given.scalar(4, loop.index)
            centre = _splat(builder, p, FAN)
            a, b = given.row(0, row, FAN), given.row(1, row, FAN)
            gap = _larger(builder, builder.fsub(a, centre), builder.fsub(centre, b))
            gap = _larger(builder, gap, zero)
            builder.store(builder.fadd(builder.load(total), builder.fmul(gap, gap)), total)
            v, start = _splat(builder, builder.fsub(p, origin), FAN), _splat(builder, origin, FAN)
            x = _clipped(builder, builder.fmul(v, shrink), builder.fsub(a, start), builder.fsub(b, start))
            away = builder.fsub(x, v)
            cost = builder.fadd(builder.fmul(away, away), builder.fmul(weight, builder.fmul(x, x)))
            builder.store(builder.fadd(builder.load(inside), cost), inside)
        both = builder.fadd(reach, length)
        ball = builder.fsub(builder.load(inside), builder.fmul(weight, builder.fmul(reach, reach)))
        ball = builder.fsub(ball, builder.fmul(_constant(SLACK, FAN), builder.fmul(both, both)))
        result = _larger(builder, ball, builder.load(total))
        given.store(6, result, FAN)
        return _mask(builder, "<=", result, _splat(builder, given.values[5], FAN), FAN)

    return types.int64(low, high, types.int64, point, reference, types.float64, out), generate


@intrinsic
def _far_bounds(typing_context, low, high, group, point, reference, limit, out):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = _Arguments(context, builder, signature, arguments)
        base = builder.mul(given.values[2], given.rows(0))
        d = given.shapes[3][0]
        zero, half = _constant(0.0, FAN), _constant(0.5, FAN)
        length = _length(builder, given, 3, 4)
        reach = _larger(builder, given.row(1, builder.add(base, d), FAN), zero)
        stretch, weight = _quotient(builder, reach, length), _quotient(builder, length, reach)
        corner = cgutils.alloca_once_value(builder, zero)
        along = cgutils.alloca_once_value(builder, zero)
        inside = cgutils.alloca_once_value(builder, zero)
        with cgutils.for_range(builder, d) as loop:
            row = builder.add(base, loop.index)
            p, origin = given.scalar(3, loop.index), given.scalar(4, loop.index)
            a, b = given.row(0, row, FAN), given.row(1, row, FAN)
            centre, start = _splat(builder, p, FAN), _splat(builder, origin, FAN)
            side = _larger(builder, builder.fsub(centre, a), builder.fsub(b, centre))
            side = _larger(builder, side, zero)
            builder.store(builder.fadd(builder.load(corner), builder.fmul(side, side)), corner)
            # From here on relative to the reference, and with the point mirrored in it.
            v = builder.fsub(origin, p)
            mirrored = _splat(builder, v, FAN)
            a, b = builder.fsub(a, start), builder.fsub(b, start)
            best = builder.select(builder.fcmp_ordered("<", v, ir.Constant(_DOUBLE, 0.0)), a, b)
            builder.store(builder.fadd(builder.load(along), builder.fmul(best, mirrored)), along)
            x = _clipped(builder, builder.fmul(mirrored, stretch), a, b)
            gain = builder.fsub(mirrored, builder.fmul(half, builder.fmul(weight, x)))
            builder.store(builder.fadd(builder.load(inside), builder.fmul(x, gain)), inside)
        square = builder.fmul(reach, reach)
        bent = builder.fadd(builder.load(inside), builder.fmul(half, builder.fmul(weight, square)))
        opposite = _smaller(builder, bent, builder.load(along))
        both = builder.fadd(reach, length)
        ball = builder.fadd(square, builder.fmul(length, length))
        ball = builder.fadd(ball, builder.fmul(_constant(2.0, FAN), opposite))
        ball = builder.fadd(ball, builder.fmul(_constant(SLACK, FAN), builder.fmul(both, both)))
        result = _smaller(builder, ball, builder.load(corner))
        given.store(6, result, FAN)
        return _mask(builder, ">=", result, _splat(builder, given.values[5], FAN), FAN)

    return types.int64(low, high, types.int64, point, reference, types.float64, out), generate


def _fit(lanes: int) -> Any:
    @intrinsic
    def fit(typing_context, inner_low, inner_high, block, live, low, high, group, slot):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = _Arguments(context, builder, signature, arguments)
            rows = given.rows(0)
            source, target = (builder.mul(given.values[block], rows) for block in (2, 6))
            numbers = ir.Constant(ir.VectorType(_WORD, lanes), list(range(lanes)))
            alive = builder.icmp_signed("<", numbers, _splat(builder, given.values[3], lanes))
            changed = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(1), 0))
            with cgutils.for_range(builder, rows) as loop:
                row = builder.add(source, loop.index)
                place = builder.mul(builder.add(target, loop.index), ir.Constant(_WORD, FAN))
                place = builder.add(place, given.values[7])
                for side, empty, pick in ((0, float("inf"), _smaller), (1, float("-inf"), _larger)):
                    lane = builder.select(alive, given.row(side, row, lanes), _constant(empty, lanes))
                    new = _fold(builder, lane, lanes, pick)
                    pointer = builder.gep(given.values[4 + side], [place])
                    differs = builder.fcmp_unordered("!=", new, builder.load(pointer))
                    builder.store(builder.or_(builder.load(changed), differs), changed)
                    builder.store(new, pointer)
            return builder.load(changed)

        integer = types.int64
        arguments = (inner_low, inner_high, integer, integer, low, high, integer, integer)
        return types.boolean(*arguments), generate

    return fit


@intrinsic
def _lowest_bit(typing_context, mask):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@intrinsic
def _borrowed(typing_context, arrays):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = arguments[0]
        for number, kind in enumerate(signature.args[0]):
            array = context.make_array(kind)(context, builder, builder.extract_value(arguments[0], number))
            array.meminfo = ir.Constant(array.meminfo.type, None)
            result = builder.insert_value(result, array._getvalue(), number)
        return result

    return arrays(arrays), generate


near_bounds: Any = _near_bounds
far_bounds: Any = _far_bounds
fit_leaf: Any = _fit(LEAF)
fit_group: Any = _fit(FAN)
borrowed: Any = _borrowed
lowest_bit: Any = _lowest_bit
