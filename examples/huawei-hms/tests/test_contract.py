"""What every sender of Waypost must do, at Huawei as the lab plays it."""

from typing import ClassVar

from waypost.contract import SenderContract


class TestHuawei(SenderContract):
    """The contract; two seconds are time enough for a lab on the same machine."""

    channel = "huawei"
    settings: ClassVar = {"timeout_s": 2}
