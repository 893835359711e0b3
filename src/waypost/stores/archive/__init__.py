"""The files of the archive: Parquet, in a folder or in a bucket of an S3-compatible store."""
