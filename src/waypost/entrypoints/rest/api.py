"""The stages and stores behind the REST API, injected by the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from litestar import Request
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Struct, field

from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform, RegistrationCheck
from waypost.domain.ids import AppId
from waypost.domain.submission import Submission
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.gathering import Gathering
from waypost.entrypoints.limits import EntrypointLimits
from waypost.entrypoints.rest.settings import RestSettings
from waypost.entrypoints.submitting import Result
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.explain import Explain
from waypost.pipeline.feed import Reading
from waypost.pipeline.intake import Caller, Intake
from waypost.ports.archive import Archive
from waypost.ports.audit import Audit
from waypost.ports.bulk import OptOuts
from waypost.ports.callbacks import CallbackRequest, TargetReport
from waypost.ports.clock import Clock
from waypost.ports.devices import Devices
from waypost.ports.erasure import Erasures
from waypost.ports.feed import Marking, Saying
from waypost.ports.keys import Keys
from waypost.ports.outbox import OutboxView
from waypost.ports.views import Views
from waypost.telemetry import Telemetry


class Readiness(Struct, frozen=True):
    """The readiness of all workers together to serve requests; each check is ``ok`` or a reason."""

    ready: bool
    checks: dict[str, str] = {}


Mount = Callable[[Any, ASGIApp], ASGIApp]
"""Builds an application on the Api, and on the API itself past authentication."""


class Api(Struct, frozen=True):
    """The stores, stages and limits behind the routes."""

    intake: Intake
    views: Views
    archive: Archive
    devices: Devices
    callers: Authenticator
    keys: Keys
    bulk: BulkIntake
    opt_outs: OptOuts
    erasures: Erasures
    audit: Audit
    mark: Callable[[Marking], Awaitable[Reading]]
    """Marks notifications as their reader wants them."""
    say: Saying
    """Puts the words of templates into notifications that their users are shown."""
    outbox: OutboxView
    explain: Explain
    clock: Clock
    telemetry: Telemetry
    device_caps: Mapping[AppId, int]
    """Active devices a user may have, by app; 0 is no cap. Its keys are the apps that exist."""
    readiness: Callable[[], Readiness]
    metrics: Callable[[], bytes]
    """All workers' metrics in the Prometheus text format; runs in a thread, it reads files."""
    draining: Callable[[], bool]
    """Tells whether the process is on its way out: then nothing new is taken."""
    limits: EntrypointLimits
    settings: RestSettings = RestSettings()
    also: frozenset[str] = frozenset()
    """The paths of features that are served where ``operating_only`` holds, too."""
    operating_only: bool = False
    """Whether it takes no requests but those of operators: health and metrics."""
    routes: tuple[HTTPRouteHandler, ...] = ()
    """The routes of features."""
    tags: Mapping[str, str] = {}
    """Chapters of the reference that features begin."""
    mounts: Mapping[str, Mount] = {}
    """What builds the application of a feature that answers everything below a path, by that path."""
    grounds: Mapping[str, Any] = {}
    """The ground of each feature's routes, by its name."""
    channels: tuple[Channel, ...] = ()
    """The channels that overrides may name."""
    platforms: tuple[Platform, ...] = ()
    """The platforms of devices."""
    callbacks: Mapping[CredentialId, Callable[[CallbackRequest], Sequence[TargetReport]]] = {}
    """Reads what the provider of each credential posts of what became of messages."""
    canonical: Mapping[Platform, Callable[[str], str]] = {}
    """Brings an address of a platform into its channel's own form."""
    gathering: Gathering[Submission, Result] = field(default_factory=Gathering)
    """The place where single submissions wait for others of the same turn of the event loop."""
    device_checks: Mapping[AppId, Mapping[Platform, RegistrationCheck]] = {}
    """The checks for what the channel of each platform could never send to, in each app."""


API: Final = "waypost.api"
"""The key in a request's scope of what it is asked of."""
DOCUMENT: Final = "waypost.document"
"""The key of what makes its OpenAPI document."""
Call = Request[Caller, Any, State]
"""A request past authentication."""


def ground_of(call: Call, feature: str) -> Any:
    """Return what the routes of *feature* work with."""
    return api_of(call).grounds[feature]


def api_of(call: Call) -> Api:
    """Return what the request is asked of."""
    api: Api = call.scope[API]  # type: ignore[typeddict-item] # a key of ours
    return api
