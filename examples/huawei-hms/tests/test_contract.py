"""What every sender of Waypost must do, at Huawei as the lab plays it."""

from waypost.contract import SenderContract


class TestHuawei(SenderContract):
    """The contract."""

    channel = "huawei"
