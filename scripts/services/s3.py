"""An S3-compatible store, of S3Proxy's Maven artefacts: its buckets are folders, its signatures are checked."""

import http.client
from http import HTTPStatus
from typing import Final

from scripts.services.jars import FILES, QUICK_START, class_path
from scripts.services.service import HOST, Node, Service

KEY_ID: Final = "waypost-tests"
SECRET: Final = "the secret of no account"  # noqa: S105 - of a server that lives as long as a test run


class S3(Service):
    """One server; whoever has its folder makes a bucket by making a folder."""

    kind = "S3"

    @classmethod
    def fetch(cls) -> None:
        """See Service."""
        class_path("s3")

    def ports_wanted(self) -> int:
        """See Service."""
        return 1

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        (self.node(1).folder / "buckets" / name).mkdir(parents=True)

    def configure(self, node: Node) -> None:
        """See Service."""
        buckets = node.folder / "buckets"
        buckets.mkdir(exist_ok=True)
        settings = {
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.endpoint": self.url,
            "s3proxy.identity": KEY_ID,
            "s3proxy.credential": SECRET,
            "s3proxy.ignore-unknown-headers": "true",  # the checksum of a deletion of several
            "jclouds.provider": "filesystem-nio2",
            "jclouds.identity": "local",
            "jclouds.credential": "local",
            "jclouds.filesystem.basedir": buckets,
        }
        (node.folder / "s3proxy.conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def command(self, node: Node) -> list[str]:
        """See Service."""
        logging = f"-Dlogback.configurationFile={FILES}/s3/logback.xml"
        program = ["org.gaul.s3proxy.Main", "--properties", str(node.folder / "s3proxy.conf")]
        return ["java", "-Xmx256m", *QUICK_START, logging, "-cp", class_path("s3"), *program]

    def ready(self, node: Node) -> bool:
        """It answers, and refuses who does not sign."""
        connection = http.client.HTTPConnection(HOST, self.ports[node.number - 1], timeout=2)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == HTTPStatus.FORBIDDEN
        finally:
            connection.close()

    @property
    def url(self) -> str:
        """See Service."""
        return f"http://{HOST}:{self.ports[0]}"
