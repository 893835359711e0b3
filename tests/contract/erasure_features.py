"""How a user comes into what each feature keeps: the test of erasure has them all do so, and looks for what stays.

A new feature adds itself here: a function that has it keep something with the marker in it and names the tables, or the
reason why it never keeps anything of a user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from tempfile import TemporaryDirectory
from typing import Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from tests.contract import bulk_bench
from tests.contract.bench import APP, CALLER, Bench, marking, notification
from tests.contract.sql import SqlUnderTest
from waypost.config import Config
from waypost.domain.bulk import Recipient
from waypost.domain.bulk_submission import BulkMessage
from waypost.domain.campaign import Campaign, CampaignSubmission
from waypost.domain.capping import EVERYTHING, Capped, Claim
from waypost.domain.content import Content, TemplateUse
from waypost.domain.device import EMAIL, PHONE
from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import UserId
from waypost.domain.notification import Notification
from waypost.domain.preferences import Cap, PreferenceChange, TypeChange
from waypost.domain.profile import Profile
from waypost.domain.recovery import AlertType
from waypost.domain.recurrence import Recurrence
from waypost.domain.schedule import Schedule
from waypost.domain.segment import Filter
from waypost.domain.series import Series, Step, joined
from waypost.domain.template import ChannelTexts, TemplateContent
from waypost.domain.time import later
from waypost.domain.tracked import TrackedEvent
from waypost.features.archive import ARCHIVE
from waypost.features.archive.parts import archive_of, files_of
from waypost.features.archive.settings import ArchiveSettings
from waypost.ports.erasure import Erasure
from waypost.ports.feed import Mark, NewEntry
from waypost.ports.recovery import Alert
from waypost.stores.sql.accounts import Account, NewSession
from waypost.stores.sql.contact_proofs import Asked, Contact
from waypost.stores.sql.digests import Merging
from waypost.stores.sql.webhook_queue import WebhookEvent

MARKER: Final = "xq-marker"
"""In everything that is said of the user who is to be forgotten."""
HER: Final = UserId(f"{MARKER}-user")
Put = Callable[[Bench, SqlUnderTest, Notification], Awaitable[set[str]]]
"""Has a feature keep something of a notification to the user, or of the user; the tables that have the marker then."""


async def lists(bench: Bench, _: SqlUnderTest, __: Notification) -> set[str]:
    """A bulk job has her in its list."""
    made = await bulk_bench.created(bench, bulk_bench.job(registry=None))
    assert await bench.bulk.add(made.app, made.id, [Recipient(HER, {"name": f"{MARKER}-name"})])
    return {"bulk_recipient"}


async def is_to_be_forgotten(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """An order names her until it is carried out; then a hash of her is left."""
    await store.erasures_of(bench.worker).ask(Erasure(made.id, APP, HER, UserId("erased-0123"), bench.now))
    return {"erasure"}


async def opts_out(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """She wants no bulk sends."""
    await store.opt_outs.put(APP, HER, bench.now)
    return {"opt_out"}


async def reads(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """She read it, and it is in her feed."""
    await store.feed.add([NewEntry(made.app, made.user_id, made.id, 0, 1, bench.now)])
    await store.feed.mark(replace(marking(made, Mark.READ, bench.now), is_told=True))
    return {"feed_entry", "feed_tag", "feed_stamp", "notification_reads"}


async def verifies(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """One of her contacts is verified, of another she was sent a code."""
    proofs = store.ground_of(bench.worker).store.contact_proofs
    for kind, nonce in ((EMAIL, b"1" * 16), (PHONE, b"2" * 16)):
        contact = Contact(APP, HER, kind, b"a" * 16)
        await proofs.ask(Asked(contact, nonce, bench.now, later(bench.now, 60_000), b"c" * 16, 5))
    await proofs.verify(contact, nonce, bench.now)
    return {"contact_verified", "contact_code"}


async def is_known(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """The app says something of her."""
    said = Profile(attributes={f"{MARKER}-plan": f"{MARKER}-value"})
    await store.ground_of(bench.worker).store.profiles.put(APP, HER, said, bench.now)
    return {"user_profile"}


async def is_drafted(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """A campaign has her in its list."""
    ground = store.ground_of(bench.worker)
    asked = CampaignSubmission(BulkMessage(title="Sale"), upload=True)
    await ground.store.campaigns.save(Campaign(APP, "spring", asked, CALLER, bench.now, bench.now), None)
    assert await ground.store.campaigns.add(
        APP, "spring", [Recipient(HER, {"name": f"{MARKER}-name"})], CALLER, bench.now
    )
    return {"campaign_recipient"}


async def is_chosen(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """A filter of users chooses her, as it does everybody: it names nobody."""
    filter_ = Filter(time_zone=("Europe/Zurich",))
    await store.ground_of(bench.worker).store.segments.put(APP, "nearby", filter_, bench.now)
    return set()


async def is_scheduled(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """She is told something each week."""
    weekly = Schedule(
        app=APP,
        name="weekly",
        caller=CALLER,
        recurrence=Recurrence("2027-06-01T09:00", "FREQ=WEEKLY"),
        zone=None,
        user_id=HER,
        notification=f'{{"user_id": "{HER}", "title": "{MARKER}-title"}}'.encode(),
        created_at=bench.now,
    )
    assert await store.ground_of(bench.worker).store.schedules.add(weekly, bench.now)
    return {"schedule"}


async def wants(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """She wants no promotions, was sent one, and another came by night; the list of who changed names her."""
    change = PreferenceChange(types={"promotion": TypeChange(enabled=False)})
    await store.ground_of(bench.worker).store.preferences.change(APP, HER, change, bench.now, "user")
    capped = Capped({EVERYTHING: Cap(limit=3)}, {}, "", ZoneInfo("UTC"))
    asked = Claim(APP, HER, made.id, capped, frozenset({"push"}), bench.now)
    await store.ground_of(bench.worker).store.frequency.claim([asked])
    words = f"{MARKER}-title", f"{MARKER}-body"
    merging = Merging(APP, HER, "push", later(bench.now, 60_000), made.id, made.id, f"{MARKER}-type", *words, bench.now)
    await store.ground_of(bench.worker).store.digests.merge([merging])
    return {"preference", "user_change", "frequency_count", "digest", "digest_member"}


async def is_member(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """She goes through a series."""
    series = Series(app=APP, name="basket", version=1, caller=CALLER, steps=(Step("one", b"{}"),), created_at=bench.now)
    assert await store.ground_of(bench.worker).store.series.add(series)
    member = joined(series, HER, "UTC", bench.now, {"plan": f"{MARKER}-plan"})
    assert await store.ground_of(bench.worker).store.series.join(member, bench.now)
    return {"series_member"}


async def is_told_by_a_template(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """Her name is a variable: it is in the content of the notification alone."""
    said = TemplateContent(channels={"default": ChannelTexts(title="Hello {{ name }}")})
    templates = store.ground_of(bench.worker).store.templates
    use = TemplateUse("hello", await templates.put(APP, "hello", said, bench.now), {"name": f"{MARKER}-name"})
    await bench.accept(replace(notification(bench.now, user=HER), content=Content(template=use)))
    return set()


async def is_stuck(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """An alert says that nobody moves it: by its id alone."""
    raised = Alert(APP, made.id, AlertType.STUCK_PROCESSING, "stuck", None, "processing", 0, bench.now)
    await store.ground_of(bench.worker).store.recovery.conclude([raised], bench.now)
    return set()


async def reports(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """Her device says that a button was pressed."""
    pressed = DeviceEvent(made.id, 0, EventKind.ACTION, bench.now, f"{MARKER}-button")
    await store.ground_of(bench.worker).store.device_events.add([pressed])
    return {"device_event"}


async def tells(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """A webhook is to be told of it."""
    url, body = f"https://shop.example/{MARKER}", f'{{"message": "{MARKER}"}}'.encode()
    event = WebhookEvent(made.id, made.id, 1, APP, url, bench.now, body)
    await store.ground_of(bench.worker).store.webhook_queue.take([event])
    return {"webhook_queue"}


async def is_counted(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """She did something of the app's own, and what she was sent is counted."""
    counting = store.ground_of(bench.worker).store
    await counting.user_events.track([TrackedEvent(APP, HER, "order_paid", bench.now)])
    await counting.rollup.take(await store.journal.read(0, 1_000))
    return {"user_event", "user_hour"}


async def subscribes(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """She hears a topic."""
    topics = store.ground_of(bench.worker).store.topics
    await topics.put(APP, "news", "", is_open=True, at=bench.now)
    await topics.change(APP, "news", [HER], [], bench.now)
    return {"topic_member"}


async def is_archived(bench: Bench, store: SqlUnderTest, made: Notification) -> set[str]:
    """She is in a file of the archive, whose rows say no name: ``test_archive`` looks into the files."""
    settings = ArchiveSettings(to=store.folders.enter_context(TemporaryDirectory()))
    store.config = Config(apps={}, features={"archive": settings})
    ground = store.ground_of(bench.worker, ARCHIVE)
    detail = await bench.detail(made)
    assert await files_of(ground).write(APP, [[detail]])
    assert await archive_of(ground).detail(APP, made.id)
    return set()


async def is_measured(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """Its size says nothing of anybody."""
    await store.ground_of(bench.worker).store.store_sizes.note(bench.now)
    return set()


async def watches(bench: Bench, store: SqlUnderTest, _: Notification) -> set[str]:
    """People at the dashboard are no users of an app: nothing of hers is in their accounts."""
    accounts = store.ground_of(bench.worker).store.accounts
    await accounts.put(Account("operator", "viewer", "a hash", None, bench.now))
    await accounts.begin(NewSession(b"t" * 32, "operator", bench.now, later(bench.now, 1)))
    return set()


PUTS: Final[Mapping[str, Put | str]] = {
    "users": is_known,
    "templates": is_told_by_a_template,
    "bulk": lists,
    "opt_outs": opts_out,
    "erasure": is_to_be_forgotten,
    "archive": is_archived,
    "audit": "an order is recorded with the id that it was about; a user has none of these",
    "keys": "a key is of a program",
    "feed": reads,
    "contacts": verifies,
    "receipts": reports,
    "callbacks": "what a provider reports becomes part of the receipt",
    "webhooks": tells,
    "device_counts": "it counts, and keeps nothing",
    "balance": "it counts, and names nobody",
    "recovery": is_stuck,
    "campaigns": is_drafted,
    "schedules": is_scheduled,
    "preferences": wants,
    "analytics": is_counted,
    "series": is_member,
    "topics": subscribes,
    "segments": is_chosen,
    "growth": is_measured,
    "dashboard": watches,
}
