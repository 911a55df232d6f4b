"""How large this machine is: nothing comes in, a few words leave, for the head of a page of figures."""

from __future__ import annotations

import os

from shoal.workers import available_cores


def machine_words() -> str:
    """Cores and memory, which say how fast a machine is without saying whose it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{available_cores()} cores, {memory:.0f} GiB of memory"
