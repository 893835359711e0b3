"""Redis with sentinels and as a cluster: a new primary takes over, slots come back with their data."""

from __future__ import annotations

import pytest
from redis import Redis
from redis.cluster import RedisCluster as ClusterClient
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException, RedisError
from redis.sentinel import MasterNotFoundError, Sentinel

from scripts.services.redis import RedisCluster, RedisSentinel
from tests.journeys.harness import until
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]
KEYS = 300


@pytest.mark.survives(
    "the primary killed, sentinels choose another", on="a client of Redis", so="what waited for both replicas is there"
)
async def test_a_replica_takes_over_from_a_killed_primary(redis_sentinel: RedisSentinel, survived: Survived) -> None:
    """A write that waited for both replicas is there afterwards; the old primary comes back as a replica."""
    addresses = [("127.0.0.1", port) for port in redis_sentinel.ports[redis_sentinel.size :]]
    sentinels = Sentinel(addresses, socket_timeout=2)  # type: ignore[no-untyped-call]  # redis-py's
    client: Redis = sentinels.master_for(redis_sentinel.NAME, socket_timeout=2)  # type: ignore[no-untyped-call]  # as above
    for number in range(KEYS):
        client.set(f"key-{number}", number)
    assert client.wait(2, 0) == 2
    killed = redis_sentinel.primary()
    killed.kill()

    async def is_taken_over() -> bool:
        try:
            return bool(client.set("after", "the failover"))
        except (RedisError, MasterNotFoundError):
            return False

    await until(is_taken_over, "a new primary", deadline_s=60)
    assert redis_sentinel.primary() is not killed
    found = sum(client.exists(f"key-{number}") for number in range(KEYS))
    assert found == KEYS
    redis_sentinel.start(killed.number)

    async def is_replica() -> bool:
        return "role:slave" in redis_sentinel.ask(killed, "INFO replication")

    await until(is_replica, "the old primary as a replica", deadline_s=60)
    client.close()
    survived(lost=KEYS - found, written=KEYS)


@pytest.mark.survives(
    "a primary of a cluster killed, and back", on="a client of Redis", so="its slots come back with their data"
)
async def test_a_killed_primary_of_a_cluster_comes_back_with_its_slots(
    redis_cluster: RedisCluster, survived: Survived
) -> None:
    """Without replicas its slots are away meanwhile, and answers say so; what was appended to its file is there."""
    client = ClusterClient(host="127.0.0.1", port=redis_cluster.port(redis_cluster.node(1)), socket_timeout=2)
    for number in range(KEYS):
        client.set(f"key-{number}", number)
    redis_cluster.kill(2)

    async def is_away() -> bool:
        try:
            return bool(client.cluster_info()["cluster_state"] != "ok")
        except (RedisError, RedisClusterException):
            return True

    await until(is_away, "the cluster says that slots are away", deadline_s=60)
    redis_cluster.up()

    async def is_back() -> int:
        try:
            return sum(client.exists(f"key-{number}") for number in range(KEYS))
        except (RedisError, RedisClusterException, RedisConnectionError):
            return 0

    found = await until(is_back, "every slot", deadline_s=60)
    assert found == KEYS
    client.close()
    survived(lost=KEYS - found, written=KEYS)
