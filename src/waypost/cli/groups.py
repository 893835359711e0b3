"""A group whose commands are imported when they are called for, so that each starts fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group that imports each command only when it is used, by ``module:name``."""

    def __init__(
        self, *args: Any, commands_in: dict[str, str], beside: Callable[[], Mapping[str, str]] = dict, **kwargs: Any
    ) -> None:
        """Create the group; *beside* gives the commands of features."""
        super().__init__(*args, **kwargs)
        self._own = commands_in
        self._beside = beside

    @property
    def _commands_in(self) -> dict[str, str]:
        return {**self._own, **self._beside()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names in the order of the table."""
        return list(self._commands_in)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant, or say which may have been."""
        close = get_close_matches(args[0], self._commands_in, n=1)
        if close and args[0] not in self._commands_in:
            ctx.fail(f"No such command '{args[0]}'; did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        place = self._commands_in.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command
