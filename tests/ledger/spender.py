"""A process that spends: `python spender.py ADDRESS THREADS REQUESTS NAME` prints the amount granted, in units.

With REQUESTS 0 it charges and deposits one after the other, for ever, and prints every receipt once it has it.
"""

from __future__ import annotations

import random
import sys
import threading
from fractions import Fraction

from shoal.ledger import Charge, Deposit, OverdrawnError, open_ledger

UNIT = Fraction(1, 1000)


def spend(address: str, requests: int, name: str, granted: list[int]) -> None:
    ledger = open_ledger(address)
    pick = random.Random(name)
    total = 0
    for number in range(requests):
        units = pick.choice((1, 1, 2, 3))
        try:
            ledger.charge(
                Charge("people", name, f'{{"number":{number}}}', units * UNIT, key=f"{name}-{number}")
            )
        except OverdrawnError:
            continue
        total += units
    granted.append(total)
    ledger.close()


def spend_for_ever(address: str, name: str) -> None:
    ledger = open_ledger(address)
    number = 0
    while True:
        number += 1
        receipt = ledger.charge(Charge("people", name, "{}", UNIT, key=f"{name}-{number}"))
        print("charged", receipt.charge, receipt.head, flush=True)
        receipt = ledger.deposit(Deposit("people", receipt.charge, name, "{}"))
        print("answered", receipt.charge, receipt.head, flush=True)


def main(address: str, threads: int, requests: int, name: str) -> None:
    if not requests:
        spend_for_ever(address, name)
    granted: list[int] = []
    workers = [
        threading.Thread(target=spend, args=(address, requests // threads, f"{name}-{i}", granted))
        for i in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(granted) == threads
    print(sum(granted))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
