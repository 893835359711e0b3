"""Template choice: which template, in which version, says what is submitted; fixed when it is accepted."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId
from waypost.domain.submission import Submission
from waypost.domain.template import use_of
from waypost.ports.templates import Said, Templates


class StoredTemplates(Struct, frozen=True):
    """The choice among the templates of a store (fulfils ports.templates.TemplateChoice)."""

    templates: Templates

    async def chosen(self, app: AppId, submissions: Sequence[Submission]) -> list[Said]:
        """See TemplateChoice."""
        asked = {(each.template.name, each.template.version) for each in submissions if each.template is not None}
        if not asked:
            return [None] * len(submissions)
        versions = await self.templates.chosen(app, asked)

        def said(submission: Submission) -> Said:
            named = submission.template
            if named is None:
                return None
            try:
                return use_of(submission, versions.get((named.name, named.version)))
            except InvalidRequest as invalid:
                return invalid

        return [said(each) for each in submissions]
