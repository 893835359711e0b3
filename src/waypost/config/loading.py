"""Reading the configuration: one YAML file, environment variables over it, secrets from either or from files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from waypost.adapters.jwt.settings import misfit
from waypost.config.building import Builder, FromEnvironment, did_you_mean, join
from waypost.config.service_folders import run_dir_of_systemd
from waypost.config.settings import DEFAULT_STORE_URL, MAX_WORKERS, Config, Handoff, Stack
from waypost.config.simplens import FILE, FILE_VARIABLE, PROFILE, put_beneath
from waypost.domain.credential import channel_of
from waypost.domain.errors import ConfigurationError
from waypost.domain.profile import zone_faults
from waypost.ports.plugin import SenderPlugin
from waypost.stores.sql.settings import is_postgres

try:
    from yaml import CSafeLoader as _SafeLoader  # six times as fast: with 500 apps 0.3 s less in each process
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # of the same methods

PREFIX = "WAYPOST_"
_APP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = frozenset({"cli", "dashboard", "source", "user", "waypost"})
"""The beginnings of callers' names that are ours: `dashboard:ann` on record is somebody at the dashboard."""
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_KEY = re.compile(r"(?:^|[._-])(?:password|passphrase|secret)$", re.IGNORECASE)
_SECRET_IN_URL = re.compile(r"//[^/?#@\s]*:([^/?#@\s]+)@|[?&]password=([^&\s]*)")
_SETTINGS = frozenset(each.encode_name for each in msgspec.structs.fields(Config)) - {"features"}


def load(
    path: Path | None,
    environ: Mapping[str, str],
    plugins: Sequence[SenderPlugin],
    sections: Mapping[str, type[msgspec.Struct]] = MappingProxyType({}),
) -> Config:
    """Read the file at *path* (none: the environment alone) and what *environ* overrides.

    An app may have a section for each of *plugins*, the whole one for each of *sections*, by name. Relative files are
    looked for in the file's folder. A ConfigurationError names the path of the wrong key, and never repeats a value,
    since it may be a secret.
    """
    folder = (path.parent if path is not None else Path()).absolute()
    tree = read_tree(path) if path is not None else {}
    tree = _resolve(tree, "", environ, folder)
    if isinstance(tree.get("store"), str):
        tree["store"] = {"url": tree["store"]}
    for name, value in overrides(environ, sections).items():
        _override(tree, name, value)
    _refuse_former(tree)
    if tree.get("profile") == PROFILE:
        put_beneath(tree, environ, _providers(folder, environ), [plugin.channel for plugin in plugins])
    if isinstance(tree.get("store"), dict):
        tree["store"].setdefault("url", DEFAULT_STORE_URL)
        if (of_systemd := run_dir_of_systemd(environ)) is not None:
            tree["store"].setdefault("run_dir", of_systemd)
    config: Config = Builder(folder, plugins, sections).build(Config, tree, "")
    _check_apps(config)
    _check_issuers(config)
    _check_engines(config)
    _check_critical_worker(config)
    _check_sources(config)
    _check_rates(config, plugins)
    _check_zones(config)
    for role in config.roles:
        if (why := config.why_not(role)) is not None:
            raise ConfigurationError("roles", why)
    run_dir = str(folder / Path(config.store.run_dir).expanduser())
    store = msgspec.structs.replace(config.store, url=_anchored(config.store.url, folder), run_dir=run_dir)
    return msgspec.structs.replace(config, store=store)


def _refuse_former(tree: Mapping[str, Any]) -> None:
    """Explain what replaces a setting that is gone: a broker carried work, where one now publishes it."""
    if tree.get("stack") == "relayed":
        raise ConfigurationError(
            "stack",
            "`relayed` is no more: leave it out, on PostgreSQL any worker delivers for anybody; topics that"
            " others read are `outbox.to: redis` or `kafka`",
        )
    if "broker" in tree:
        raise ConfigurationError(
            "broker", "is no more: write `outbox: {to: redis}` or `{to: kafka}`; nothing waits for it"
        )


def overrides(environ: Mapping[str, str], sections: Collection[str] = ()) -> dict[str, str]:
    """Pick the variables that set something: ``WAYPOST_`` and the name of a setting, deeper ones after ``__``.

    Others of that prefix mean something else: the client's (``WAYPOST_URL``), or what a container platform adds.
    """
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(PREFIX) and name.removeprefix(PREFIX).split("__")[0].lower() in {*_SETTINGS, *sections}
    }


def read_tree(path: Path) -> dict[str, Any]:
    """Read a file of settings, YAML or JSON; ConfigurationError says what is wrong with it, and quotes nothing."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.load(text, _StrictLoader)  # noqa: S506 - a SafeLoader that also refuses repeated keys
    except OSError as unreadable:
        raise ConfigurationError("", f"cannot read {path}: {unreadable.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError("", f"{path} is not UTF-8") from None
    except yaml.MarkedYAMLError as broken:  # its own text quotes the file, where secrets are
        line = f", line {broken.problem_mark.line + 1}" if broken.problem_mark else ""
        raise ConfigurationError("", f"{path}{line}: {broken.problem}") from None
    except yaml.reader.ReaderError:
        raise ConfigurationError("", f"{path}: there is a character that YAML does not allow") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigurationError("", f"{path}: expected a mapping of keys")
    return tree


def _providers(folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Read the providers' file of simplens; return nothing where there is none and no variable names one."""
    named = environ.get(FILE_VARIABLE)
    file = folder / Path(named or FILE).expanduser()
    return read_tree(file) if named or file.exists() else {}


class _StrictLoader(_SafeLoader):
    """A loader of plain YAML data that refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag != "tag:yaml.org,2002:merge":
                key = self.construct_object(key_node, deep=True)
                if not isinstance(key, str):
                    raise yaml.constructor.ConstructorError(None, None, "a key is text", key_node.start_mark)
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key!r} twice", key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


def _resolve(value: Any, path: str, environ: Mapping[str, str], folder: Path) -> Any:
    """Replace what ``${NAME}`` and ``file:`` refer to, everywhere below *value*."""
    match value:
        case dict():
            return {key: _resolve(inner, join(path, key), environ, folder) for key, inner in value.items()}
        case list():
            return [_resolve(inner, f"{path}[{n}]", environ, folder) for n, inner in enumerate(value)]
        case str():
            return resolve_text(value, path, environ, folder)
        case _:
            return value


def resolve_text(text: str, path: str, environ: Mapping[str, str], folder: Path) -> str:
    """Replace what *text* refers to; ConfigurationError names *path* where it is missing, or a secret stands there."""

    def named(reference: re.Match[str]) -> str:
        if reference[1] not in environ:
            raise ConfigurationError(path, f"the environment variable {reference[1]} is not set")
        return environ[reference[1]]

    if _is_literal_secret(text, path):
        raise ConfigurationError(path, "is or holds a secret: write ${NAME} or file:PATH in its place, not the secret")
    text = _REFERENCE.sub(named, text)
    if not text.startswith("file:"):
        return text
    file = folder / Path(text.removeprefix("file:")).expanduser()
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(path, f"cannot read the file it refers to: {file}") from None


def _is_literal_secret(text: str, path: str) -> bool:
    """Tell whether a secret stands in the file itself: under a key that says so, or as the password of a URL."""
    if not text or text.startswith("file:"):
        return False
    passwords = [first or second for first, second in _SECRET_IN_URL.findall(text)]
    if _SECRET_KEY.search(path):
        passwords.append(text)
    return any(_REFERENCE.search(password) is None for password in passwords)


def _override(tree: dict[str, Any], variable: str, value: str) -> None:
    """Set in *tree* what an environment variable says; an empty one sets nothing."""
    if not value:
        return
    *outer, last = ["store", "url"] if variable == f"{PREFIX}STORE" else variable.removeprefix(PREFIX).split("__")
    for n, name in enumerate(outer):
        key = _key_like(name, tree)
        if tree.get(key) is None:
            tree[key] = {}
        if not isinstance(tree[key], dict):
            raise ConfigurationError(".".join(outer[: n + 1]).lower(), f"{variable} sets a part of what is one value")
        tree = tree[key]
    tree[_key_like(last, tree)] = _parsed(variable, value)


def _key_like(name: str, known: Mapping[str, Any]) -> str:
    """Find the key that a variable's part means: case, ``-`` and ``.`` cannot be told from a variable's name."""
    plain = name.lower()
    return next((key for key in known if re.sub("[.-]", "_", key.lower()) == plain), plain)


def _parsed(variable: str, value: str) -> Any:
    """Parse a variable: a list or mapping as YAML on one line; anything else is text until its type is known."""
    if value[0] + value[-1] not in ("[]", "{}"):
        return FromEnvironment(value)
    try:
        return yaml.load(value, _StrictLoader)  # noqa: S506 - as above
    except yaml.YAMLError:
        raise ConfigurationError("", f"{variable} is neither one value nor a list or mapping as YAML has it") from None


def _check_engines(config: Config) -> None:
    """Check that the stack can do what is asked for, and that the engines it needs are configured."""
    if config.redis is None and (config.cache or config.dedup):
        raise ConfigurationError("redis", "is required where `cache` or `dedup` is redis")
    if config.redis is None and config.limits.counted_in == "redis":
        raise ConfigurationError("redis", "is required where `limits.counted_in` is redis")
    on_postgres = config.stack is Stack.EMBEDDED and is_postgres(config.store.url)
    if config.outbox.to is not None and not on_postgres:
        raise ConfigurationError(
            "outbox.to", "is of PostgreSQL alone, without `stack: log`: the outbox is a table of it"
        )
    if config.outbox.to is not None and getattr(config, config.outbox.to) is None:
        raise ConfigurationError(config.outbox.to, "is required where `outbox.to` names it")
    if config.dedup and config.stack is not Stack.LOG:
        raise ConfigurationError("dedup", "the store claims keys in its own transaction, but where `stack` is log")
    if config.handoff is Handoff.QUEUE and not on_postgres:
        raise ConfigurationError(
            "handoff", "`queue` is of PostgreSQL alone, without `stack: log`: claims are kept there"
        )
    if "cassandra" in (config.devices, config.feeds) and config.cassandra is None:
        raise ConfigurationError("cassandra", "is required where `devices` or `feeds` is cassandra")
    if config.feeds == "cassandra" and config.cassandra is not None and not config.cassandra.reads_its_writes:
        raise ConfigurationError(
            "cassandra.write_consistency", "is a quorum, or `ALL`, where `feeds` is cassandra: copies are read by it"
        )


def _check_critical_worker(config: Config) -> None:
    if config.critical_worker and config.stack is Stack.LOG:
        raise ConfigurationError("critical_worker", "the brokers decide who has which lane where `stack` is log")
    if config.critical_worker and config.workers == MAX_WORKERS:
        raise ConfigurationError("workers", f"at most {MAX_WORKERS - 1} beside a critical worker")


def _check_sources(config: Config) -> None:
    for name, source in config.sources.items():
        path = join("sources", name)
        if (source.redis is None) == (source.kafka is None):
            raise ConfigurationError(path, "is either `redis` or `kafka`")
        if source.app not in config.apps:
            raise ConfigurationError(join(path, "app"), f"no such app; known here: {', '.join(config.apps)}")
        of_redis = source.redis is not None and source.redis.dead_letters == source.redis.stream
        of_kafka = source.kafka is not None and source.kafka.dead_letters == source.kafka.topic
        if of_redis or of_kafka:
            raise ConfigurationError(path, "`dead_letters` is what is read: they would be refused again and again")


def _check_apps(config: Config) -> None:
    if not config.apps:
        raise ConfigurationError("apps", "name at least one app")
    for app, chosen in config.apps.items():
        if not _APP_ID.fullmatch(app):
            raise ConfigurationError(join("apps", app), "an id has 1 to 64 of A-Z a-z 0-9 . _ - and no sign first")
        for name, days in (("expires_on", chosen.expires_on), ("rehearsed_on", chosen.rehearsed_on)):
            for channel in days.keys() - chosen.senders.keys():
                raise ConfigurationError(f"apps.{app}.{name}.{channel}", "the app has no such section")


def _check_issuers(config: Config) -> None:
    taken = set()
    for app, chosen in config.apps.items():
        for name, issuer in chosen.issuers.items():
            path = join(join(join("apps", app), "issuers"), name)
            if not _APP_ID.fullmatch(name):
                raise ConfigurationError(path, "a name has 1 to 64 of A-Z a-z 0-9 . _ - and no sign first")
            if name in _RESERVED:
                names = ", ".join(sorted(_RESERVED))
                raise ConfigurationError(path, f"choose another name: {names} begin the names of other callers")
            if (wrong := misfit(issuer)) is not None:
                raise ConfigurationError(join(path, wrong[0]), wrong[1])
            if (issuer.issuer, issuer.audience) in taken:
                raise ConfigurationError(join(path, "audience"), "another issuer has both this and `issuer` alike")
            taken.add((issuer.issuer, issuer.audience))


def _check_rates(config: Config, plugins: Sequence[SenderPlugin]) -> None:
    for app, chosen in config.apps.items():
        for channel, rate in chosen.rates.items():
            path = join(join(join("apps", app), "rates"), channel)
            plugin = next((each for each in plugins if each.channel == channel_of(channel)), None)
            if plugin is None:
                raise ConfigurationError(
                    path, f"no such channel{did_you_mean(channel, [str(each.channel) for each in plugins])}"
                )
            if plugin.rate is None and (rate.capacity is None) != (rate.refill_per_s is None):
                raise ConfigurationError(path, "takes `capacity` and `refill_per_s` together: the plug-in has no limit")


def _check_zones(config: Config) -> None:
    for app, chosen in config.apps.items():
        for fault in zone_faults(chosen.time_zone):
            raise ConfigurationError(join(join("apps", app), fault.path), fault.why)


def _anchored(url: str, folder: Path) -> str:
    """Put a relative SQLite file into *folder*, so that it is the same store wherever a process was started."""
    scheme, separator, file = url.partition(":///")
    if not scheme.startswith("sqlite") or not separator or file.startswith("/"):
        return url
    return f"{scheme}:///{folder / file}"
