"""What the tests hold the speed to: ratios of CPU times that were taken in one run, so that no machine is too slow.

Each is what was measured on a machine that had nothing else to do. A change that makes one larger by right says why and
moves it; one that makes it smaller moves it, too. FLOOR is the part of it under which nothing was measured.
"""

from __future__ import annotations

from typing import Final

KERNEL: Final = 3.4
"""CPU of a request in ``waypost.http2`` as Python, in those of h2load (C) on the same server."""
DELIVERY: Final = 28.5
"""CPU of a delivery in Waypost, REST to receipts, in turns of `waypost.bench.machine.calibration_us`."""
WITHIN: Final = 1.2
FLOOR: Final = 0.1


def bound(measured: float, others: float) -> float:
    """The most that is let pass, where others had that share of the machine meanwhile.

    They drive what is measured out of the caches, and cut its batches smaller, while the least time of the loop stays
    as it is: 1.7 times were seen beside others that had three quarters of two cores, 2.5 times beside two thirds on a
    host that was busy itself.
    """
    return measured * WITHIN * (1 + 2 * others)
