"""Rows of LEAF values or FAN boxes in, distances or bounds of all lanes at once out, as vector instructions.

Compilers vectorise such short loops badly (measured: a fourth of the speed), so the vectors are spelled out; LLVM
maps them to whatever width the processor has. No operation is reordered or fused: every lane has the bits of the
plain loop. Each function returns a mask with one bit per lane that is worth a look.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

LEAF = 32
FAN = 16
# Bounds through radii are not bitwise: widened by far more than the rounding errors of d terms.
SLACK = 1e-10

cgutils: Any = _cgutils
_DOUBLE = ir.DoubleType()


def _splat(builder: Any, scalar: Any, lanes: int) -> Any:
    vector = ir.VectorType(_DOUBLE, lanes)
    index = ir.IntType(32)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, lanes), [0] * lanes)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), zeros)


def _constant(value: float, lanes: int) -> Any:
    return ir.Constant(ir.VectorType(_DOUBLE, lanes), [value] * lanes)


def _row(builder: Any, data: Any, offset: Any, lanes: int) -> Any:
    pointer = builder.gep(data, [offset])
    return builder.load(builder.bitcast(pointer, ir.VectorType(_DOUBLE, lanes).as_pointer()), align=8)


def _store(builder: Any, vector: Any, data: Any, lanes: int) -> None:
    builder.store(vector, builder.bitcast(data, ir.VectorType(_DOUBLE, lanes).as_pointer()), align=8)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _mask(builder: Any, relation: str, a: Any, b: Any, lanes: int) -> Any:
    bits = builder.bitcast(builder.fcmp_ordered(relation, a, b), ir.IntType(lanes))
    return builder.zext(bits, ir.IntType(64))


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _distances(relation: str) -> Any:
    @intrinsic
    def distances(typing_context, block, point, limit, out):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            block, point, limit, out = _arrays(context, builder, signature, arguments)
            d = cgutils.unpack_tuple(builder, point.shape)[0]
            total = cgutils.alloca_once_value(builder, _constant(0.0, LEAF))
            with cgutils.for_range(builder, d) as loop:
                offset = builder.mul(loop.index, ir.Constant(loop.index.type, LEAF))
                centre = _splat(builder, builder.load(builder.gep(point.data, [loop.index])), LEAF)
                difference = builder.fsub(_row(builder, block.data, offset, LEAF), centre)
                square = builder.fmul(difference, difference)
                builder.store(builder.fadd(builder.load(total), square), total)
            result = builder.load(total)
            _store(builder, result, out.data, LEAF)
            return _mask(builder, relation, result, _splat(builder, limit, LEAF), LEAF)

        return types.int64(block, point, types.float64, out), generate

    return distances


# (block (d, LEAF), point (d,), limit, out (LEAF,)) -> lanes whose squared distance is <= or >= the limit
distances_within = _distances("<=")
distances_beyond = _distances(">=")


@intrinsic
def _near_bounds(typing_context, low, high, point, limit, out):  # type: ignore[no-untyped-def]
    """(low (d, FAN), high, point (d,), limit, out (FAN,)) -> boxes whose least squared distance is <= limit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        low, high, point, limit, out = _arrays(context, builder, signature, arguments)
        d = cgutils.unpack_tuple(builder, point.shape)[0]
        total = cgutils.alloca_once_value(builder, _constant(0.0, FAN))
        with cgutils.for_range(builder, d) as loop:
            offset = builder.mul(loop.index, ir.Constant(loop.index.type, FAN))
            centre = _splat(builder, builder.load(builder.gep(point.data, [loop.index])), FAN)
            below = builder.fsub(_row(builder, low.data, offset, FAN), centre)
            above = builder.fsub(centre, _row(builder, high.data, offset, FAN))
            gap = _larger(builder, _larger(builder, below, above), _constant(0.0, FAN))
            builder.store(builder.fadd(builder.load(total), builder.fmul(gap, gap)), total)
        result = builder.load(total)
        _store(builder, result, out.data, FAN)
        return _mask(builder, "<=", result, _splat(builder, limit, FAN), FAN)

    return types.int64(low, high, point, types.float64, out), generate


@intrinsic
def _far_bounds(typing_context, low, high, reach, point, reference, limit, out):  # type: ignore[no-untyped-def]
    """Boxes, their largest radii, a point, a limit -> boxes whose largest squared distance may be >= limit.

    The bound is the smaller of the far corner (bitwise valid) and, with x and p taken from the reference point,
    |x|^2 + |p|^2 - 2 x.p, where |x| is at most the reach and x.p at least its minimum over the box and -|x||p|.
    Empty boxes have the bound 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        low, high, reach, point, reference, limit, out = _arrays(context, builder, signature, arguments)
        d = cgutils.unpack_tuple(builder, point.shape)[0]
        corner = cgutils.alloca_once_value(builder, _constant(0.0, FAN))
        along = cgutils.alloca_once_value(builder, _constant(0.0, FAN))
        square = cgutils.alloca_once_value(builder, ir.Constant(_DOUBLE, 0.0))
        with cgutils.for_range(builder, d) as loop:
            offset = builder.mul(loop.index, ir.Constant(loop.index.type, FAN))
            p = builder.load(builder.gep(point.data, [loop.index]))
            origin = builder.load(builder.gep(reference.data, [loop.index]))
            a, b = _row(builder, low.data, offset, FAN), _row(builder, high.data, offset, FAN)
            centre = _splat(builder, p, FAN)
            side = _larger(builder, builder.fsub(centre, a), builder.fsub(b, centre))
            side = _larger(builder, side, _constant(0.0, FAN))
            builder.store(builder.fadd(builder.load(corner), builder.fmul(side, side)), corner)
            v = builder.fsub(p, origin)
            builder.store(builder.fadd(builder.load(square), builder.fmul(v, v)), square)
            near = builder.select(builder.fcmp_ordered(">", v, ir.Constant(_DOUBLE, 0.0)), a, b)
            product = builder.fmul(builder.fsub(_splat(builder, origin, FAN), near), _splat(builder, v, FAN))
            builder.store(builder.fadd(builder.load(along), product), along)
        norm = builder.load(square)
        root = builder.module.declare_intrinsic("llvm.sqrt", [_DOUBLE])
        length = _splat(builder, builder.call(root, [norm]), FAN)
        norm = _splat(builder, norm, FAN)
        r = _row(builder, reach.data, ir.Constant(ir.IntType(64), 0), FAN)
        opposite = _smaller(builder, builder.load(along), builder.fmul(r, length))
        sum_ = builder.fadd(r, length)
        ball = builder.fadd(builder.fmul(r, r), norm)
        ball = builder.fadd(ball, builder.fmul(_constant(2.0, FAN), opposite))
        ball = builder.fadd(ball, builder.fmul(_constant(SLACK, FAN), builder.fmul(sum_, sum_)))
        result = _smaller(builder, ball, builder.load(corner))
        _store(builder, result, out.data, FAN)
        return _mask(builder, ">=", result, _splat(builder, limit, FAN), FAN)

    return types.int64(low, high, reach, point, reference, types.float64, out), generate


@intrinsic
def _lowest_bit(typing_context, mask):  # type: ignore[no-untyped-def]
    """Number of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


# To a type checker an intrinsic has the arguments of its generator; these names hide that.
near_bounds: Any = _near_bounds
far_bounds: Any = _far_bounds
lowest_bit: Any = _lowest_bit
