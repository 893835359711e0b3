"""The contract of senders: what each must do at its gateway in the lab, ours and those of other packages alike.

Installed with the lab. A package of a sender runs it by one class in its tests, and asks more of its sender with a
bench (docs/plug-ins.md).
"""

from waypost.contract.bench import SenderBench, sender_bench
from waypost.contract.sender import SenderContract

__all__ = ["SenderBench", "SenderContract", "sender_bench"]
