"""Contacts: a user's telephone, mailbox and URL, and the codes by which people prove that one is theirs."""

from waypost.features.contacts.settings import ContactSecret
from waypost.features.feature import Feature

CONTACTS = Feature(
    name="contacts",
    docs="A user's telephone number, mailbox and URL are put; where the app wants it, a code proves whose they are.",
    parts="waypost.features.contacts.parts:PARTS",
    settings=ContactSecret,
)
