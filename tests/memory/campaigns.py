"""Campaigns in memory."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from waypost.domain.bulk import Recipient
from waypost.domain.campaign import Campaign, CampaignState
from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.time import Instant


class MemoryCampaigns:
    """As stores.sql.campaigns.SqlCampaigns, as far as routes need it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AppId, str], Campaign] = {}
        self._lists: dict[tuple[AppId, str], dict[UserId, Recipient]] = {}

    async def get(self, app: AppId, name: str) -> Campaign | None:
        """The campaign of this name."""
        kept = self._kept.get((app, name))
        return None if kept is None else replace(kept, listed=len(self._lists.get((app, name), {})))

    async def page(self, app: AppId, after: str, n: int) -> list[Campaign]:
        """Campaigns by name."""
        return [each for (of, name), each in sorted(self._kept.items()) if of == app and name > after][:n]

    async def save(self, campaign: Campaign, seen: int | None, recipients: Sequence[Recipient] | None = None) -> bool:
        """Store it, if it still is as it was seen."""
        key = campaign.app, str(campaign.name)
        before = self._kept.get(key)
        if (None if before is None else before.revision) != seen:
            return False
        self._kept[key] = campaign
        if recipients is not None:
            self._lists[key] = {each.user_id: each for each in recipients}
        return True

    async def add(self, app: AppId, name: str, recipients: Sequence[Recipient], by: CallerId, at: Instant) -> bool:
        """Add to the list of a draft, which changes it."""
        if (kept := self._kept.get((app, name))) is None or kept.state is not CampaignState.DRAFT or not kept.has_list:
            return False
        self._kept[app, name] = replace(kept, by=by, changed_at=at, revision=kept.revision + 1)
        self._lists.setdefault((app, name), {}).update((each.user_id, each) for each in recipients)
        return True

    async def clear_list(self, app: AppId, name: str, n: int) -> int:
        """A list that is replaced is gone at once."""
        return 0

    async def listed(self, app: AppId, name: str, after: str, n: int) -> list[tuple[Recipient, bool]]:
        """Recipients, none of whom opted out."""
        found = sorted(self._lists.get((app, name), {}).items())
        return [(each, False) for user, each in found if user > after][:n]
