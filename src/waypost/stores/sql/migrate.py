"""The migration of a database to today's schema."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool

from waypost.domain.errors import StorageBroken
from waypost.stores.sql import migrations
from waypost.stores.sql.connection import connect_to_look, dbapi
from waypost.stores.sql.migrations import BEFORE_RELEASE, MOVED, NOTED_IN, is_known

_SCRIPTS = Path(__file__).with_name("migrations")


def _history() -> tuple[Config, ScriptDirectory, str]:
    """Load the revisions of this version, and the last of them."""
    config = Config()
    config.set_main_option("script_location", _escaped(_SCRIPTS))
    config.set_main_option("version_locations", _escaped(migrations.VERSIONS))
    config.set_main_option("path_separator", "newline")
    scripts = ScriptDirectory.from_config(config)
    head = scripts.get_current_head()
    assert head is not None, "the package ships at least one revision"
    return config, scripts, head


def sqlite_engine(database: Path) -> Engine:
    """Build an engine for migrations and ordinary queries on the one SQLite library."""
    return create_engine(URL.create("sqlite", database=str(database)), module=dbapi, poolclass=NullPool)


def engine_to_look(database: Path) -> Engine:
    """Build an engine that changes no file."""
    return create_engine("sqlite://", creator=partial(connect_to_look, database), module=dbapi, poolclass=NullPool)


def migrate(engine: Engine) -> tuple[str | None, str]:
    """Run the missing revisions and name the revisions before and after; the caller sees to it that nobody else does.

    StorageBroken where the database is of a newer version than this one lives with, or of before the first release.
    """
    config, scripts, head = _history()
    with engine.connect() as connection:
        found = _found(connection, scripts, head)
        if found is not None and is_known(found):
            return found, found
        connection.rollback()  # ends the read: an index is made concurrently outside of transactions alone
        config.attributes["connection"] = connection
        command.upgrade(config, head)
        connection.commit()
    return found, head


def check_revision(engine: Engine) -> None:
    """Refuse what ``migrate`` would refuse, and change nothing."""
    _, scripts, head = _history()
    with engine.connect() as connection:
        _found(connection, scripts, head)


def _found(connection: Connection, scripts: ScriptDirectory, head: str) -> str | None:
    """Read the revision of the database; StorageBroken where none of this version's leads on from it."""
    found = MigrationContext.configure(connection, opts={"version_table": NOTED_IN}).get_current_revision()
    if found is None:
        _refuse_older_numbers(connection)
    elif found == MOVED:
        raise StorageBroken("its content was moved to PostgreSQL by `waypost move`: serve that database")
    elif not is_known(found) and found not in {script.revision for script in scripts.walk_revisions()}:
        raise StorageBroken(f"the database has revision {found}, this version knows up to {head}: upgrade Waypost")
    return found


def _refuse_older_numbers(connection: Connection) -> None:
    if set(inspect(connection).get_table_names()) >= {BEFORE_RELEASE, "notification"}:
        (found,) = connection.execute(text(f"SELECT version_num FROM {BEFORE_RELEASE}")).scalars()  # noqa: S608 - ours
        raise StorageBroken(
            f"the database has revision {found} of a version before 0.1.0, from which no upgrade leads here:"
            " use an empty database, or go on with that version"
        )


def _escaped(folder: Path) -> str:
    """Write the folder as Alembic's settings have it."""
    return str(folder).replace("%", "%%")
