"""Leads a sender through the cases: prepares each, has it send, waits, and judges what arrived."""

import asyncio
import functools
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec

from waypost.lab.check.cases import GATEWAYS, Case
from waypost.lab.check.judgement import Result, SeenRequests, complete, judge
from waypost.lab.check.sender import CaseSender
from waypost.lab.faults import AnswerFault, Do, FaultRule, Match
from waypost.lab.lab import Lab
from waypost.lab.mail_message import bounce_of, message_id_of
from waypost.lab.records import RequestRecord
from waypost.lab.subscriptions import described

BOUNCE = "bounce.eml"


class CourseTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device that a case wants to be reached, as the sender reads it from the file."""

    gateway: str
    name: str
    """The name, unlike any other's: a user or device id for senders that need one."""
    token: str
    """The token; for Web Push, and gateways that came through the entry points, the endpoint."""
    subscription: dict[str, object] | None = None


class Patience(msgspec.Struct, frozen=True):
    """The times to wait, in seconds."""

    for_all_s: float = 60.0
    """Seconds to wait for what must come."""
    for_more_s: float = 2.0
    """Seconds to wait for what must not come, once all has."""


class Course:
    """The cases that one sender goes through at the gateways it serves."""

    def __init__(
        self, lab: Lab, sender: CaseSender, environment: dict[str, str], *, targets_file: Path,
        gateways: Sequence[str] = GATEWAYS, patience: Patience,
    ) -> None:  # fmt: skip
        self._lab, self._sender, self._environment, self._patience = lab, sender, environment, patience
        self._targets_file = targets_file
        self._gateways = list(gateways)

    async def run(self, cases: Sequence[Case]) -> AsyncIterator[Result]:
        """Go through *cases* in order. A gateway at which nothing ever arrives is asked for once."""
        for case in cases:
            for result in await self._run_case(case):
                if case is cases[0] and result.verdict == "not exercised":
                    self._gateways.remove(result.gateway)
                yield result

    async def _run_case(self, case: Case) -> list[Result]:
        gateways = [name for name in case.gateways if name in self._gateways]
        if not gateways:
            return []
        trial = _Trial(self._lab, case, gateways)
        await trial.prepare()
        self._targets_file.write_bytes(msgspec.json.format(msgspec.json.encode(trial.targets), indent=2))
        for number in range(1, case.rounds + 1):
            if case.special == "revoke-access":
                self._lab.oauth.revoke_all()
            await self._round(trial, number)
        results = [judge(case, gateway, trial.seen(gateway)) for gateway in gateways]
        await self._lab.script([])
        return results

    async def _round(self, trial: "_Trial", number: int) -> None:
        """Have the sender send, wait for what is to come, and then for what is not."""
        told = {
            **self._environment,
            "LAB_CASE": trial.case.name,
            "LAB_ROUND": str(number),
            "LAB_TEXT": f"{trial.case.name} {number}",
            "LAB_TARGETS_FILE": str(self._targets_file.resolve()),
        }
        if trial.case.special == "bounce" and number > 1 and (bounce := trial.bounce()) is not None:
            file = self._targets_file.with_name(BOUNCE)
            file.write_bytes(bounce)
            told["LAB_BOUNCE_FILE"] = str(file.resolve())
        await self._sender.send(told)
        try:
            async with asyncio.timeout(self._patience.for_all_s):
                await self._complete(trial, number)
        except TimeoutError:
            return  # the verdict says what is missing
        await asyncio.sleep(self._patience.for_more_s)

    async def _complete(self, trial: "_Trial", number: int) -> None:
        arrived = self._lab.records.arrived = asyncio.Event()
        while not all(complete(trial.case, trial.seen(name), number) for name in trial.gateways):
            await arrived.wait()
            arrived.clear()


class _Trial:
    """A case at the gateways concerned: its targets, its faults, and what is seen of it."""

    def __init__(self, lab: Lab, case: Case, gateways: Sequence[str]) -> None:
        self.case, self.gateways = case, gateways
        self._lab = lab
        self._trap = ""
        self.targets: list[CourseTarget] = []
        self._tokens: dict[str, list[str]] = {}
        self._rules: list[FaultRule] = []

    async def prepare(self) -> None:
        """Forget the case before; make the devices, and put the faults in force."""
        self._lab.records.reset()
        makers: dict[str, Callable[[], tuple[str, CourseTarget]]] = {
            "apns": self._phone, "fcm": self._android, "webpush": self._browser,
            **{name: functools.partial(self._further, name) for name in self._lab.further},
        }  # fmt: skip
        for gateway in self.gateways:
            made = [makers[gateway]() for _ in range(self.case.targets)]
            self._tokens[gateway] = [token for token, _ in made]
            self.targets += [target for _, target in made]
        first = {gateway: tokens[0] for gateway, tokens in self._tokens.items()}
        self._rules = self.case.rules(first)
        if self.case.special == "trap":
            self._rules.append(self._lure(first["webpush"]))
        await self._lab.script(self._rules)
        if self.case.special == "disconnect":
            self._lab.disconnect()

    def seen(self, gateway: str) -> SeenRequests:
        """Gather what has come to a gateway so far."""
        requests: defaultdict[str, list[RequestRecord]] = defaultdict(list)
        for record in self._lab.records.since(-1):
            if record.token in (*self._tokens[gateway], self._trap) and record.gateway == gateway:
                requests[record.token].append(record)
        mine = [
            count
            for rule, count in zip(self._rules, self._lab.faults.met(), strict=False)
            if rule.where == gateway or rule.where not in self.case.gateways
        ]
        violations = self._lab.records.counts[gateway].violations
        first = requests.get(self._tokens[gateway][0], []) if self.case.want.one_message_id else []
        return SeenRequests(
            self._tokens[gateway], requests, violations, len(mine), sum(mine), self._trap, self._message_ids(first)
        )

    def bounce(self) -> bytes | None:
        """Write the bounce of what the first mailbox took; None where it took nothing."""
        (token, *_), records = self._tokens["email"], self._lab.records
        taken = (records.content(each.seq) for each in records.since(-1) if each.token == token and each.accepted)
        content = next(taken, None)
        return None if content is None else bounce_of(content.body, token)

    def _message_ids(self, requests: Sequence[RequestRecord]) -> list[str]:
        contents = (self._lab.records.content(each.seq) for each in requests)
        return [found for content in contents if content and (found := message_id_of(content.body))]

    def _lure(self, token: str) -> FaultRule:
        """Redirect the first target's requests to a subscription that nobody knows."""
        trap = self._lab.webpush.subscribe(service="rfc", vapid_key=None)
        self._trap = trap.id
        fault = AnswerFault(307, headers={"location": self._lab.webpush.endpoint(trap)})
        return FaultRule(do=Do(answer=fault), where="webpush", match=Match(token=token))

    def _name(self) -> str:
        return f"{self.case.name}-{secrets.token_hex(4)}"

    def _phone(self) -> tuple[str, CourseTarget]:
        own = self._lab.settings.environment
        other = "sandbox" if own == "production" else "production"
        environment = other if self.case.special == "other-environment" else own
        (token,) = self._lab.tokens.make("ios", 1, topic=None, environment=environment)
        return token, CourseTarget("apns", self._name(), token)

    def _android(self) -> tuple[str, CourseTarget]:
        (token,) = self._lab.tokens.make("android", 1, topic=None, environment=None)
        return token, CourseTarget("fcm", self._name(), token)

    def _browser(self) -> tuple[str, CourseTarget]:
        subscription = self._lab.webpush.subscribe(service="rfc", vapid_key=None)
        endpoint = self._lab.webpush.endpoint(subscription)
        return subscription.id, CourseTarget("webpush", self._name(), endpoint, described(subscription, endpoint))

    def _further(self, gateway: str) -> tuple[str, CourseTarget]:
        made = self._lab.further[gateway].make({})
        return made.token, CourseTarget(gateway, self._name(), str(made.shown["endpoint"]), made.shown)
