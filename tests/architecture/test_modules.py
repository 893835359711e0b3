"""No module cycles, and the inner layers use nothing but what they are allowed."""

import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.trees import ROOT

IO_MODULES = {
    "http",
    "multiprocessing",
    "select",
    "selectors",
    "signal",
    "smtplib",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
}
ALLOWED = {
    "waypost.domain": {"dateutil", "msgspec"},
    "waypost.telemetry": set[str](),
    "waypost.ports": {"msgspec"},
    "waypost.pipeline": {"msgspec"},
    "waypost.http2": set[str](),
}
MAY_DO_IO = {"waypost.http2"}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Each module of Waypost with the modules it imports."""
    graph = grimp.build_graph("waypost", include_external_packages=True, cache_dir=None)
    return {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
        if module.partition(".")[0] == "waypost"
    }


def first_cycle(imports: dict[str, set[str]]) -> list[str]:
    """Give the modules of one import cycle, or nothing."""
    inner = {module: {other for other in imported if other in imports} for module, imported in imports.items()}
    try:
        TopologicalSorter(inner).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def foreign_imports(imports: dict[str, set[str]], layer: str) -> set[tuple[str, str]]:
    """Give what *layer* imports from outside Waypost and is not allowed to."""
    standard = sys.stdlib_module_names if layer in MAY_DO_IO else sys.stdlib_module_names - IO_MODULES
    allowed = {"waypost", *standard, *ALLOWED[layer]}
    return {
        (module, other)
        for module, imported in imports.items()
        if module == layer or module.startswith(f"{layer}.")
        for other in imported
        if other.partition(".")[0] not in allowed
    }


def test_no_module_imports_itself_through_others(imports: dict[str, set[str]]) -> None:
    """Packages count as modules: one that imports a child that imports the package is a cycle too."""
    assert first_cycle(imports) == []


def test_a_cycle_through_a_package_is_seen() -> None:
    """The search finds what sibling contracts do not: a package and its own child."""
    assert first_cycle({"a": {"a.b"}, "a.b": {"a", "os"}}) != []


@pytest.mark.parametrize("layer", ALLOWED)
def test_an_inner_layer_uses_only_what_it_is_allowed(imports: dict[str, set[str]], layer: str) -> None:
    """Any new library in an inner layer is a decision, not an accident."""
    assert foreign_imports(imports, layer) == set()


def test_a_library_in_the_domain_is_seen() -> None:
    """An unknown library and an I/O module of the standard library are both found."""
    planted = {"waypost.domain.planted": {"requests", "socket", "msgspec", "enum"}}
    assert {other for _, other in foreign_imports(planted, "waypost.domain")} == {"requests", "socket"}


def test_every_library_that_is_imported_is_declared(imports: dict[str, set[str]]) -> None:
    """What comes along with another library today may be gone from it tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lab = tomllib.loads((ROOT / "packaging" / "lab" / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *lab["dependencies"],
        *(wish for extra in project["optional-dependencies"].values() for wish in extra),
    ]
    declared = {canonicalize_name(Requirement(wish).name) for wish in wanted}
    used = {other.partition(".")[0] for imported in imports.values() for other in imported}
    brought_by = packages_distributions()
    undeclared = {
        library
        for library in used - sys.stdlib_module_names - {"waypost"}
        if not declared & {canonicalize_name(name) for name in brought_by.get(library, [library])}
    }
    assert undeclared == set()


def test_an_adapter_is_a_folder() -> None:
    """A technology has its own folder, so that its settings stand beside it."""
    adapters = ROOT / "src" / "waypost" / "adapters"
    assert [path.name for path in adapters.glob("*.py") if path.name != "__init__.py"] == []


def test_senders_know_messages_and_addresses_and_no_notification(imports: dict[str, set[str]]) -> None:
    """Every plug-in that ships, and what they share: what is sent could come from anything else, too."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["waypost.senders"]
    packages = {plugin.rpartition(".plugin:")[0] for plugin in named.values()} | {"waypost.channels.push"}
    of_senders = {name for name in imports if name.rpartition(".")[0] in packages}
    assert len(of_senders) > len(packages)
    knowing = {name for name in of_senders if "waypost.domain.notification" in imports[name]}
    assert not knowing, f"take what you need from domain.message, domain.content or domain.address: {knowing}"
