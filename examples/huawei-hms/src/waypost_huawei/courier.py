"""Sends to devices through Huawei Push Kit: one request for each message."""

from __future__ import annotations

from waypost.channels.push.provider import Provider, request_timeout_ms
from waypost.channels.push.secrets import read_line
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome
from waypost.http2 import Result
from waypost.ports.clock import Clock
from waypost.ports.plugin import Means
from waypost.ports.sender import Capabilities, Rendered
from waypost.runtime.courier_sender import CourierSender

from waypost_huawei.access import AccessTokens, Problem
from waypost_huawei.errors import asks_for_a_token, outcome_of
from waypost_huawei.payload import LIMIT_BYTES, body_of, message_of
from waypost_huawei.settings import CHANNEL, HuaweiSettings


def sender(credential: CredentialId, settings: HuaweiSettings, means: Means) -> CourierSender:
    """Make the sender of one section of the settings."""
    capabilities = Capabilities(CHANNEL, request_timeout_ms(settings.timeout_s), settings.connections * 2, LIMIT_BYTES)
    courier = HuaweiCourier(credential.section, settings, means.clock)
    return CourierSender(credential, courier, capabilities, telemetry=means.telemetry)


class HuaweiCourier:
    """A ``Courier`` to the devices of one app."""

    def __init__(self, section: str, settings: HuaweiSettings, clock: Clock) -> None:
        self._section, self._settings, self._clock = section, settings, clock
        self._path = f"/v1/{settings.app_id}/messages:send"
        self._provider: Provider
        self._token_provider: Provider
        self._access: AccessTokens

    async def start(self) -> None:
        """Read the secret; ConfigurationError names the setting that is wrong. Connections come with deliveries."""
        settings = self._settings
        secret = read_line(f"{self._section}.app_secret_file", settings.app_secret_file)
        self._provider = self._opened(settings.endpoint, settings.connections)
        self._token_provider = self._opened(settings.token_endpoint, 1)
        self._access = AccessTokens(self._token_provider, settings.app_id, secret)

    async def deliver(self, delivery: Delivery) -> Outcome:
        """Deliver one message; where the access token is refused, once more with a new one."""
        token, until = delivery.device.token, self._provider.patience()
        body = body_of(self._message(delivery), token)
        for attempt in (1, 2):
            access_token = await self._access.current(until)
            if isinstance(access_token, Problem):
                return access_token
            fields = (("authorization", f"Bearer {access_token}"), ("content-type", "application/json"))
            result: Result = await self._provider.post(self._path, fields, body, until)
            if attempt == 2 or not asks_for_a_token(result):
                break
            self._access.forget(access_token)
        return outcome_of(result, token, self._clock.now())

    def render(self, delivery: Delivery) -> Rendered:
        """Show what would be posted, without the token; Huawei counts the message."""
        message = self._message(delivery)
        shown = body_of(message, "…")
        size = len(body_of(message, "")) - len(body_of({}, ""))
        return Rendered({"content-type": "application/json"}, shown, size, LIMIT_BYTES)

    async def stop(self) -> None:
        """Close the connections."""
        await self._provider.close()
        await self._token_provider.close()

    def _opened(self, url: str, connections: int) -> Provider:
        settings = self._settings
        return Provider(
            self._section, url, ca_file=settings.ca_file, connections=connections, timeout_s=settings.timeout_s
        )

    def _message(self, delivery: Delivery) -> dict[str, object]:
        return message_of(delivery.message, delivery.id, self._clock.now())
