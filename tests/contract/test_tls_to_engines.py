"""TLS to every engine: a server that proves who it is is spoken to, one of another authority is refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from scripts.services.cassandra import Cassandra
from scripts.services.kafka import Kafka
from scripts.services.postgres import AS_OWNER, Postgres
from scripts.services.redis import Redis
from scripts.services.service import HOST, Node
from tests.certificates import Authority
from tests.contract.registries import wake_ups_closed
from tests.contract.sql import SqlUnderTest
from tests.engines import run_sql
from tests.journeys.harness import until
from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.stores.cassandra import check as cassandra_check
from waypost.stores.cassandra.session import CassandraCluster
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.kafka.settings import KafkaSettings, LibrdkafkaProperty
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.stores.sql.postgres import check as postgres_check
from waypost.telemetry.sink import Silent

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]


class Trust:
    """What a server shows, who signed that, and somebody else."""

    def __init__(self, folder: Path) -> None:
        own = Authority(folder, "own")
        self.certificate, self.key = own.issue("server")
        self.ca = own.file
        self.other_ca = Authority(folder, "other").file


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    """Certificates for 127.0.0.1."""
    return Trust(tmp_path)


@contextmanager
def served(service: Redis | Kafka | Cassandra) -> Iterator[None]:
    """A server of this test's own."""
    try:
        service.up()
        yield
    finally:
        service.down()


@pytest.fixture
def postgres_url_tls(postgres_alone: Postgres, trust: Trust) -> Iterator[str]:
    """A server that shows its certificate, and takes nobody without TLS from libpq's side."""
    folder = postgres_alone.nodes[0].folder / "data"
    for file in (trust.certificate, trust.key):
        held = Path(shutil.copy(file, folder))
        held.chmod(0o600)
        if AS_OWNER:
            shutil.chown(held, "postgres", "postgres")
    named = {"ssl_cert_file": trust.certificate.name, "ssl_key_file": trust.key.name, "ssl": "on"}
    run_sql(postgres_alone.url, *(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in named.items()))
    run_sql(postgres_alone.url, "SELECT pg_reload_conf()")
    yield f"{postgres_alone.url}?sslmode=verify-full&sslrootcert="
    run_sql(postgres_alone.url, *(f"ALTER SYSTEM RESET {name}" for name in named), "SELECT pg_reload_conf()")


async def test_postgresql(postgres_url_tls: str, trust: Trust) -> None:
    """By libpq's own words in the URL; check-config says its reason."""
    trusted = f"{postgres_url_tls}{trust.ca}"

    async def takes_tls() -> bool:
        try:
            return postgres_check.look(trusted).keeps_sessions
        except Unavailable:
            return False

    await until(takes_tls, "a server that read its certificate")
    store = SqlUnderTest(trusted)
    await store.open()
    asked = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'waypost'"
    assert await store._opened.database.read(lambda connection: connection.execute(asked).fetchone()) == (True,)
    await store.close()
    with pytest.raises(Unavailable, match="certificate verify failed"):
        postgres_check.look(f"{postgres_url_tls}{trust.other_ca}")


class TlsRedis(Redis):
    """One with a second port, for TLS alone."""

    trust: Trust

    def ports_wanted(self) -> int:
        """See Service."""
        return 2

    def settings(self, node: Node) -> list[str]:
        """See Redis."""
        shown = [f"tls-cert-file {self.trust.certificate}", f"tls-key-file {self.trust.key}", "tls-auth-clients no"]
        return [*super().settings(node), f"tls-port {self.ports[1]}", *shown]


async def test_redis(tmp_path: Path, trust: Trust) -> None:
    service = TlsRedis(tmp_path / "redis")
    service.trust = trust
    with served(service):
        url = f"rediss://{HOST}:{service.ports[1]}/0"
        wire = SinglePrimary(RedisSettings(url=url, ca_file=str(trust.ca), timeout_s=10), Silent())
        await wire.start()
        assert await wire.execute([("PING",)]) == [b"PONG"]
        await wire.stop()
        other = SinglePrimary(RedisSettings(url=url, ca_file=str(trust.other_ca), timeout_s=10), Silent())
        await other.start()
        with pytest.raises(Unavailable, match="certificate"):
            await other.execute([("PING",)])
        await other.stop()


class TlsCassandra(Cassandra):
    """One that speaks TLS alone to clients."""

    trust: Trust

    def configure(self, node: Node) -> None:
        """See Service."""
        super().configure(node)
        kept = node.folder / "keystore.p12"
        certificate = load_pem_x509_certificate(self.trust.certificate.read_bytes())
        key = load_pem_private_key(self.trust.key.read_bytes(), None)
        secret = BestAvailableEncryption(b"waypost")
        kept.write_bytes(pkcs12.serialize_key_and_certificates(b"node", key, certificate, None, secret))  # type: ignore[arg-type]  # an EC key, as Authority makes them
        with (node.folder / "cassandra.yaml").open("a") as settings:
            settings.write(
                "client_encryption_options: {enabled: true, optional: true, require_client_auth: false,"
                f" keystore: {kept}, keystore_password: waypost, store_type: PKCS12}}\n"
            )


@pytest.mark.long
async def test_cassandra(tmp_path: Path, trust: Trust) -> None:
    service = TlsCassandra(tmp_path / "cassandra")
    service.trust = trust
    with served(service), wake_ups_closed():
        settings = CassandraSettings(hosts=(HOST,), port=service.ports[0], tls=True, ca_file=str(trust.ca))
        session = await CassandraCluster(settings).connect()
        clients = await session.execute("SELECT ssl_enabled FROM system_views.clients")
        assert (True,) in clients
        await session.close()
        other = CassandraSettings(hosts=(HOST,), port=service.ports[0], tls=True, ca_file=str(trust.other_ca))
        with pytest.raises(Unavailable, match=r"(?i)ssl"):
            await cassandra_check.look(other)


async def test_cassandra_by_tls_needs_authorities() -> None:
    with pytest.raises(ConfigurationError, match="ca_file"):
        CassandraCluster(CassandraSettings(hosts=(HOST,), tls=True))


class TlsKafka(Kafka):
    """One with a second port, for TLS alone."""

    trust: Trust

    def ports_wanted(self) -> int:
        """See Service."""
        return 3

    def configure(self, node: Node) -> None:
        """See Service; of a property said twice the last counts."""
        super().configure(node)
        plain, by_tls = f"PLAINTEXT://{HOST}:{self.port(node)}", f"SSL://{HOST}:{self.ports[2]}"
        with (node.folder / "server.properties").open("a") as settings:
            settings.write(
                f"listeners={plain},{by_tls},CONTROLLER://{self.controller(node)}\n"
                f"advertised.listeners={plain},{by_tls}\n"
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL\n"
                f"ssl.keystore.type=PEM\nssl.keystore.location={self.trust.certificate}\n"
            )


@pytest.mark.long
async def test_kafka(tmp_path: Path, trust: Trust) -> None:
    """By librdkafka's own properties."""
    service = TlsKafka(tmp_path / "kafka")
    service.trust = trust
    with served(service):
        said = KafkaSettings(bootstrap=f"{HOST}:{service.ports[2]}", trial=True)

        def brokers(ca: Path) -> int:
            options = {"security.protocol": "ssl", "ssl.ca.location": str(ca)}
            named = {LibrdkafkaProperty(name): value for name, value in options.items()}
            admin = AdminClient(msgspec.structs.replace(said, options=named).client())
            return len(admin.list_topics(timeout=10).brokers)

        assert brokers(trust.ca) == 1
        with pytest.raises(KafkaException):
            brokers(trust.other_ca)
