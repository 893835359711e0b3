"""The balance: everything that was accepted is somewhere."""

from waypost.features.feature import Feature

BALANCE = Feature(
    name="balance",
    docs="What came in adds up with what ended and what is open, and somebody is told where it does not.",
    parts="waypost.features.balance.parts:PARTS",
    commands={"balance": "waypost.cli.balance:balance"},
)
