"""The place of a store: which engine its URL names, and the folder beside it."""

from __future__ import annotations

from pathlib import Path

from waypost.stores.sql.connection import check_folder, database_path, made_folder, refuse_root, run_directory
from waypost.stores.sql.settings import SqlSettings, is_postgres

RUN_DIR = "store.run_dir"
"""The setting that says where it is on PostgreSQL."""


def check_location(settings: SqlSettings) -> None:
    """Refuse a store for which ``run_dir_of_store`` or the file itself could not be made; nothing is written."""
    if is_postgres(settings.url):
        check_folder(Path(settings.run_dir).expanduser().resolve(), RUN_DIR)
        return
    database = database_path(settings.url)
    refuse_root(database)
    check_folder(database.parent / f"{database.name}.run")
    check_folder(database.parent)


def run_dir_of_store(settings: SqlSettings) -> Path:
    """Return the folder that the processes of one machine share beside the store; made if it is not there.

    ConfigurationError where it cannot be.
    """
    if is_postgres(settings.url):
        return made_folder(Path(settings.run_dir).expanduser().resolve(), RUN_DIR)
    return run_directory(database_path(settings.url))
