"""The views of the store's tables under other names, as the command line prints them."""

from __future__ import annotations

from waypost.config import Config
from waypost.domain.vocabulary import Vocabulary
from waypost.stores.sql.named_views import DeclaredType, statements
from waypost.stores.sql.settings import is_postgres


def views_of(config: Config, vocabulary: str, *, drops: bool) -> list[str]:
    """Write the statements that make, or only drop, the views of *vocabulary* on the store of *config*."""
    types = [
        DeclaredType(app, name, settings.enabled)
        for app, of in config.apps.items()
        for name, settings in of.types.items()
    ]
    return statements(Vocabulary(vocabulary), is_postgres=is_postgres(config.store.url), drops=drops, types=types)
