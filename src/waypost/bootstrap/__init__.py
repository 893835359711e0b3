"""The composition root: the only package that names adapters. Each part is imported by itself: few need all of it."""

import atexit
import gc

# At its end an interpreter looks for garbage once more, and msgspec then may free types in an order that kills the
# process after its work is done (seen with 0.22; github.com/msgspec/msgspec/issues/717). Frozen types stay.
atexit.register(gc.freeze)
