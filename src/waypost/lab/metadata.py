"""The metadata server of a Google machine: access tokens without a key file, over plain HTTP."""

from collections.abc import Callable

import msgspec

from waypost.lab.exchange import GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.oauth import SCOPES, OAuthGateway

_FLAVOR = ("metadata-flavor", "Google")
_ACCOUNT = "/computeMetadata/v1/instance/service-accounts/default/"


class MetadataGateway:
    """The gateway metadata.google.internal; clients find it by `GCE_METADATA_HOST`."""

    name = "metadata"

    def __init__(self, oauth: OAuthGateway, *, project_id: str, email: str) -> None:
        self._oauth = oauth
        self._texts: dict[str, Callable[[], str]] = {
            "/": lambda: "computeMetadata/\n",
            "/computeMetadata/v1/project/project-id": lambda: project_id,
            _ACCOUNT + "email": lambda: email,
            _ACCOUNT + "scopes": lambda: "\n".join(sorted(SCOPES)),
        }

    def token_of(self, request: Request) -> str:
        """Return no token: nothing here is for a device."""
        return ""

    def judge(self, request: Request) -> Verdict:
        """Answer a request in Google's flavour; any other could be from a browser that was led here."""
        path = request.path.partition("?")[0]
        if request.method != "GET":
            return self._refused(Refusal(405, "Method Not Allowed"), request)
        if path != "/" and request.headers.get("metadata-flavor") != "Google":
            return self._refused(Refusal(403, "Missing Metadata-Flavor:Google header."), request)
        if path == _ACCOUNT + "token":
            headers = (("content-type", "application/json"), _FLAVOR)
            return Verdict(answer=GatewayAnswer(200, headers, msgspec.json.encode(self._oauth.issue())), accepted=True)
        if path not in self._texts:
            return self._refused(Refusal(404, "Not Found"), request)
        headers = (("content-type", "application/text"), _FLAVOR)
        return Verdict(answer=GatewayAnswer(200, headers, self._texts[path]().encode()), accepted=True, keep=False)

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse in HTML, as Google's front ends do."""
        headers = (("content-type", "text/html; charset=UTF-8"), _FLAVOR)
        return GatewayAnswer(
            refusal.status, headers, f"<title>Error {refusal.status}</title>{refusal.reason}\n".encode()
        )

    def _refused(self, refusal: Refusal, request: Request) -> Verdict:
        return Verdict(answer=self.refuse(refusal, request), reason=refusal.reason)
