"""The archive: what is older than retention keeps goes into files, and is found again."""

from waypost.features.archive.settings import ArchiveSettings
from waypost.features.feature import Feature

ARCHIVE = Feature(
    name="archive",
    docs="Finished notifications that retention would delete go into Parquet files, and are found there.",
    parts="waypost.features.archive.parts:PARTS",
    settings=ArchiveSettings,
    commands={"archive": "waypost.cli.archive:archive"},
)
