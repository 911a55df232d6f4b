"""Compiled loops: by numba, cached on disk and recompiled when sources change, or the same functions uncompiled.

`SHOAL_KERNELS=plain` selects the uncompiled functions, for systems where numba cannot be used. The results are
identical to the last bit; only the time differs.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, overload
from zlib import crc32

from shoal.errors import OptionError, ShoalWarning

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

SWITCH = "SHOAL_KERNELS"
_WAYS = ("compiled", "plain")
# modules with compiled functions, and the modules whose parts are compiled into them
_modules: set[str] = set()


@cache
def plain() -> bool:
    """Whether loops run uncompiled: on request, or because numba cannot be imported or does not work here.

    Raises:
        OptionError: the variable has an unknown value.
    """
    asked = os.environ.get(SWITCH) or "compiled"
    if asked not in _WAYS:
        raise OptionError("unknown-option", option=SWITCH, found=asked, allowed=_WAYS, hint=None)
    if asked == "plain":
        return True
    try:
        works = _compiles()
    except Exception as error:  # libraries, processors and systems fail in many ways
        warnings.warn(ShoalWarning("kernels-plain", reason=_first_line(error)), stacklevel=2)
        return True
    return not works


def _compiles() -> bool:
    """Whether numba compiles a small function correctly; takes milliseconds once it is cached."""
    return bool(_numba_function(_next, {})(1) == 2)


def _next(number: int) -> int:
    return number + 1


@overload
def compiled(function: Kernel, /) -> Kernel: ...


@overload
def compiled(
    *,
    inline: bool = False,
    keep: bool = True,
    uncompiled: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[[Kernel], Kernel]: ...


def compiled(
    function: Callable[..., Any] | None = None,
    /,
    *,
    inline: bool = False,
    keep: bool = True,
    uncompiled: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """A function compiled at its first call, releasing the interpreter's lock.

    Args:
        inline: its code is inlined into its callers.
        keep: cache the compiled code on disk for the next run; helpers are cached with their callers.
        uncompiled: an equivalent, identical to the last bit, where the function itself is not equivalent uncompiled.
        options: passed to numba.
    """

    def made(function: Callable[..., Any]) -> Any:
        _modules.add(function.__module__)
        if plain():
            # helpers are handled by their callers
            return uncompiled or (_silent(function) if keep and not inline else function)
        return _numba_function(function, {**options, **({"forceinline": True} if inline else {})}, keep=keep)

    return made if function is None else made(function)


def compiled_into_callers(module: str) -> None:
    """Declare that parts of a module are compiled into functions of other modules, which are stale when it changes."""
    _modules.add(module)


def _numba_function(function: Callable[..., Any], options: dict[str, Any], *, keep: bool = True) -> Any:
    from numba import njit

    if not keep:
        return njit(nogil=True, **options)(function)
    try:
        found = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError as error:
        # no writable folder
        _not_kept(_first_line(error))
        return njit(nogil=True, **options)(function)
    _stamp(found, function)
    return found


def _stamp(found: Any, function: Callable[..., Any]) -> None:
    """Invalidate the cache when any source compiled into it changes, and tolerate a full disk.

    numba only compares the file of the function itself, but the helpers it calls may be in other files, whose
    changes would go unnoticed. So the stamp that numba compares is replaced by one of all sources.
    """
    kept: Any = getattr(found, "_cache", None)
    file: Any = getattr(kept, "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = stamp(function.__module__)
    if hasattr(kept, "save_overload"):
        save = kept.save_overload

        @wraps(save)
        def saved(*arguments: Any) -> None:
            try:
                save(*arguments)
            except OSError as error:
                _not_kept(_first_line(error))

        kept.save_overload = saved


@cache
def stamp(module: str) -> str:
    """One number for the sources compiled into the functions of a module, and for the constants they use."""
    total = crc32(Path(__file__).read_bytes())
    for name in sources(module):
        total = crc32(Path(str(sys.modules[name].__file__)).read_bytes(), total)
        for constant in sorted(_constants(name)):
            total = crc32(constant.encode(), total)
    return f"{total:08x}"


def sources(module: str) -> tuple[str, ...]:
    """A module, and the modules whose parts are compiled into its functions.

    >>> import shoal.partition._kernels_tree
    >>> [name.rpartition("_")[2] for name in sources("shoal.partition._kernels_tree")]
    ['tree', 'kernels', 'llvm']
    """
    found = [module]
    for name in found:
        found += [one for one in dict.fromkeys(_used(name)) if one not in found]
    return tuple(found)


def _used(module: str) -> Iterator[str]:
    for value in list(vars(sys.modules[module]).values()):
        # LLVM code is in a numba wrapper
        home = getattr(getattr(value, "_defn", value), "__module__", None)
        if home in _modules:
            yield home


def _constants(module: str) -> Iterator[str]:
    """The module-level numbers of a module, wherever they are defined: compiled code embeds their values."""
    for name, value in list(vars(sys.modules[module]).items()):
        if isinstance(value, (bool, int, float)) or type(value).__module__ == "numpy":
            yield f"{name} = {value!r}"


def _silent(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without warnings: compiled arithmetic wraps around and divides by zero silently."""
    import numpy as np

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


@cache
def _not_kept(reason: str) -> None:
    warnings.warn(ShoalWarning("kernels-not-kept", reason=reason), stacklevel=2)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
