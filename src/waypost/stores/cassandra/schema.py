"""The tables, as numbered steps that a cluster has taken or not.

    device       a partition for each user of an app: its devices by platform and id, deactivated ones too. ``version``
                 is the partition's: it changes by compare-and-set of it, whole, and in no other way.
    token_owner  a partition for each token: the user who may have it, and the claim by which they came to it
    feed         a partition for each user of an app: a copy of the user's feed, newest first. ``stamp`` is the
                 partition's, and says how new the copy is; it changes by compare-and-set, with what it tells of
    schema_step  the steps taken

``used_at`` alone is written without that: with the use's own time as the cell's, so that the latest one stays.
"""

from __future__ import annotations

from typing import Final

from waypost.domain.errors import StorageBroken
from waypost.stores.cassandra.session import CassandraCluster, Session
from waypost.stores.cassandra.settings import CassandraSettings

STEPS: Final = (
    (
        """CREATE TABLE IF NOT EXISTS {keyspace}.device (
            app text, user_id text, version bigint STATIC,
            platform text, device_id text, provider_token text, claim blob, p256dh blob, auth blob,
            app_version text, os_version text, locale text, token_use text, active boolean, deactivated_at bigint,
            registered_at bigint, last_seen_at bigint, token_updated_at bigint, used_at bigint,
            PRIMARY KEY ((app, user_id), platform, device_id)
        ) WITH speculative_retry = 'MIN(99p,20ms)'""",
        """CREATE TABLE IF NOT EXISTS {keyspace}.token_owner (
            app text, token_hash blob, user_id text, claim blob, PRIMARY KEY ((app, token_hash))
        )""",
    ),
    (
        """CREATE TABLE IF NOT EXISTS {keyspace}.feed (
            app text, user_id text, stamp bigint STATIC, place bigint, entry blob, PRIMARY KEY ((app, user_id), place)
        ) WITH CLUSTERING ORDER BY (place DESC) AND speculative_retry = 'MIN(99p,20ms)'""",
    ),
)
"""The statements of each step, in order; a step that was released is never changed."""
REVISION: Final = len(STEPS)

_KEYSPACE = (
    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', '{dc}': {n}}}"
)
_STEP_TABLE = "CREATE TABLE IF NOT EXISTS {keyspace}.schema_step (step int PRIMARY KEY)"
_HAS_STEP_TABLE = (
    "SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND table_name = 'schema_step'"
)
_TAKEN = "SELECT step FROM {keyspace}.schema_step"
_TAKE = "INSERT INTO {keyspace}.schema_step (step) VALUES ({step})"
_DATA_CENTER = "SELECT data_center FROM system.local"


async def revision_of(session: Session, keyspace: str) -> int:
    """Read the last step that the keyspace has taken; 0 where there is none."""
    if not await session.execute(_HAS_STEP_TABLE.format(keyspace=keyspace)):
        return 0
    return max((step for (step,) in await session.execute(_TAKEN.format(keyspace=keyspace))), default=0)


async def migrate(settings: CassandraSettings) -> tuple[int, int]:
    """Take the steps (``take_steps``) over connections of its own."""
    session = await CassandraCluster(settings).connect()
    try:
        return await take_steps(session, settings)
    finally:
        await session.close()


async def take_steps(session: Session, settings: CassandraSettings) -> tuple[int, int]:
    """Take the steps that are missing; the revision before and after. Safe to repeat wherever it broke off.

    StorageBroken where the schema is a newer one. One process at a time: two that create the same table at once may
    leave the nodes with two of it.
    """
    before = await revision_of(session, settings.keyspace)
    if before > REVISION:
        raise StorageBroken(f"the tables in Cassandra have revision {before}, this version knows {REVISION}")
    if before < REVISION:
        await _take(session, settings, before)
    return before, REVISION


async def _take(session: Session, settings: CassandraSettings, before: int) -> None:
    keyspace = settings.keyspace
    if before == 0:
        dc = settings.data_center or (await session.execute(_DATA_CENTER))[0][0]
        await session.execute(_KEYSPACE.format(keyspace=keyspace, dc=dc, n=settings.replication_factor))
        await session.execute(_STEP_TABLE.format(keyspace=keyspace))
    for step, statements in enumerate(STEPS[before:], start=before + 1):
        for cql in statements:
            await session.execute(cql.format(keyspace=keyspace))
        await session.execute(_TAKE.format(keyspace=keyspace, step=step))
