"""Many users at once: what each line of a list says of one, and the pages in which they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import ATTRIBUTES_LIMIT, ProfileChange, zone_faults
from waypost.domain.submission import Identity, Locale
from waypost.entrypoints.wording import fault_of
from waypost.features.users.views import ChangedAttributes, TimeZone
from waypost.ports.clock import Clock
from waypost.ports.profiles import Profiles

PAGE: Final = 1_000
"""Users that are written together."""
FAULTS_TOLD: Final = 100
"""The most faulty lines that the answer names; all are counted."""
LIST_SEPARATOR: Final = "|"


class ImportedUser(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a list: what changes of a user's profile; null removes."""

    user_id: Identity
    locale: Locale | UnsetType | None = UNSET
    time_zone: TimeZone | UnsetType | None = UNSET
    attributes: ChangedAttributes = {}


class FaultyLine(Struct, frozen=True):
    """A line that was left out, and why."""

    line: Annotated[int, Meta(description="Its number, from 1.")]
    why: str


class Imported(Struct, frozen=True):
    """The result of a list: users changed, lines left out, and the first of those."""

    users: Annotated[int, Meta(description="How many lines changed a user.")]
    faulty: Annotated[int, Meta(description="How many lines were left out.")]
    faults: tuple[FaultyLine, ...]


_user: Final = msgspec.json.Decoder(ImportedUser)


def read_line(line: str) -> ImportedUser:
    """Read a line of NDJSON; InvalidRequest says what is wrong with it."""
    try:
        return _user.decode(line)
    except msgspec.ValidationError as misfit:
        raise InvalidRequest((fault_of(misfit, ImportedUser),)) from None


async def import_users(lines: AsyncIterator[tuple[int, Any]], app: AppId, profiles: Profiles, clock: Clock) -> Imported:
    """Write the users of *lines*, a page at a time; what is wrong with one line stops no other."""
    tally = _Tally()
    page: list[tuple[int, UserId, ProfileChange]] = []
    async for n, fields in lines:
        read = _change_in(fields)
        if isinstance(read, str):
            tally.leave_out(n, read)
            continue
        page.append((n, *read))
        if len(page) == PAGE:
            await _write(page, app, profiles, clock, tally)
            page = []
    await _write(page, app, profiles, clock, tally)
    return Imported(tally.users, tally.faulty, tuple(tally.faults))


class _Tally:
    def __init__(self) -> None:
        self.users = 0
        self.faulty = 0
        self.faults: list[FaultyLine] = []

    def leave_out(self, line: int, why: str) -> None:
        self.faulty += 1
        if len(self.faults) < FAULTS_TOLD:
            self.faults.append(FaultyLine(line, why))


async def _write(
    page: list[tuple[int, UserId, ProfileChange]], app: AppId, profiles: Profiles, clock: Clock, tally: _Tally
) -> None:
    refused = await profiles.change_many(app, [(user, change) for _, user, change in page], clock.now())
    for place in refused:
        tally.leave_out(page[place][0], f"attributes: the user would have more than {ATTRIBUTES_LIMIT}")
    tally.users += len(page) - len(refused)


def _change_in(fields: Any) -> tuple[UserId, ProfileChange] | str:
    """Read what a line says of a user; or say what is wrong with it."""
    try:
        said = fields if isinstance(fields, ImportedUser) else _of_cells(fields)
    except InvalidRequest as misfit:
        return str(misfit)
    named = {name: value for name in ("locale", "time_zone") if (value := getattr(said, name)) is not UNSET}
    for fault in zone_faults(named.get("time_zone")):
        return f"{fault.path}: {fault.why}"
    return UserId(said.user_id), ProfileChange(named=frozenset(named), attributes=said.attributes, **named)


def _of_cells(cells: Mapping[str, str] | InvalidRequest) -> ImportedUser:
    """Build a line from the cells of CSV, by the names of their columns; an empty one says nothing."""
    if isinstance(cells, InvalidRequest):
        raise InvalidRequest(tuple(Fault("", fault.why) for fault in cells.faults))
    said: dict[str, Any] = {name: cells[name] for name in ("user_id", "locale", "time_zone") if cells.get(name)}
    own = [(column, cell) for column, cell in cells.items() if cell and column not in said]
    said["attributes"] = dict(_attribute_in(column, cell) for column, cell in own)
    try:
        return msgspec.convert(said, ImportedUser)
    except msgspec.ValidationError as misfit:
        raise InvalidRequest((fault_of(misfit, ImportedUser),)) from None


def _attribute_in(column: str, cell: str) -> tuple[str, Any]:
    """Read an attribute: ``age:number``, ``vip:boolean``, ``likes:list``, or a text."""
    name, _, kind = column.partition(":")
    match kind:
        case "":
            return name, cell
        case "number":
            return name, _number_in(name, cell)
        case "boolean" if cell.lower() in ("true", "false"):
            return name, cell.lower() == "true"
        case "list":
            return name, cell.split(LIST_SEPARATOR)
        case "boolean":
            raise InvalidRequest((Fault(f"attributes.{name}", "must be true or false"),))
        case _:
            raise InvalidRequest((Fault(f"attributes.{name}", "a column is a number, a boolean, a list or a text"),))


def _number_in(name: str, cell: str) -> int | float:
    try:
        read: int | float = msgspec.json.decode(cell.strip(), type=int | float)
    except msgspec.MsgspecError:
        raise InvalidRequest((Fault(f"attributes.{name}", "must be a number"),)) from None
    return read
