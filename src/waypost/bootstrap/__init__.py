"""The composition root: the only package that names adapters."""

from waypost.bootstrap.admin import migrate_store, open_admin_store, store_engine
from waypost.bootstrap.channels import apns_channels, fcm_topics
from waypost.bootstrap.registry import installed, load
from waypost.bootstrap.senders import http2_kernel, try_credentials
from waypost.bootstrap.serving import serve

__all__ = [
    "apns_channels",
    "fcm_topics",
    "http2_kernel",
    "installed",
    "load",
    "migrate_store",
    "open_admin_store",
    "serve",
    "store_engine",
    "try_credentials",
]
