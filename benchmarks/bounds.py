"""What the tests hold the speed to: ratios of CPU times that were taken in one run, so that no machine is too slow.

A change that makes one of them larger than its bound by right says why and moves the bound. Each was about two thirds
of it when it was set (2026-11-22, two busy cores). FLOOR is the part of a bound under which nothing was measured.
"""

from __future__ import annotations

from typing import Final

KERNEL: Final = 7.0
"""CPU of a request in ``waypost.http2`` as Python, in those of h2load (C) on the same server.

It was 4.5, at a measured 3.0; beside other tests on a machine of half the speed 4.56 were seen."""
DELIVERY: Final = 34.0
"""CPU of a delivery in Waypost, REST to receipts, in turns of `calibration_us`.

It was 40; columns brought 37 and 40 turns to 23 and 33, in two pairs beside nine runnable processes."""
FLOOR: Final = 0.1
