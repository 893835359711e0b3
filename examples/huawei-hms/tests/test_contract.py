"""The contract of all senders of Waypost, held at Huawei as the lab plays it."""

from waypost.contract import SenderContract


class TestHuawei(SenderContract):
    """The contract."""

    channel = "huawei"
