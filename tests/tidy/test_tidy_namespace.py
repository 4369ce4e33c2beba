import ast
import configparser


def test_nobody_closes_the_namespace(root):
    """An `__init__.py` in any `snavio` folder would hide every other member from the import system."""
    assert [*root.glob("*/*/src/snavio/__init__.py"), *root.glob("*/src/snavio/__init__.py")] == []


def test_a_member_is_one_typed_portion_of_the_namespace(member):
    portions = [path.name for path in (member.folder / "src" / "snavio").iterdir() if path.is_dir()]
    assert portions == [member.short]
    assert (member.folder / "src" / "snavio" / member.short / "py.typed").is_file()
    assert member.pyproject["project"]["name"] == member.distribution
    assert member.pyproject["tool"]["uv"]["build-backend"]["module-name"] == member.package


def test_init_files_hold_a_docstring_and_no_code(member):
    for path in member.sources:
        if path.name == "__init__.py":
            tree = ast.parse(path.read_text())
            assert ast.get_docstring(tree), f"{path} has no docstring"
            assert len(tree.body) == 1, f"{path} has code"


def test_every_member_is_in_the_workspace(workspace, members):
    expected = {member.distribution for member in members}
    assert set(workspace["project"]["dependencies"]) == expected
    assert set(workspace["tool"]["uv"]["sources"]) == expected


def test_every_member_is_under_the_import_contracts(root, members):
    """A member missing from `root_packages` is one whose imports nobody checks."""
    linter = configparser.ConfigParser()
    linter.read(root / ".importlinter")
    packages = {member.package for member in members}
    assert set(linter["importlinter"]["root_packages"].split()) == packages

    libraries = {member.package for member in members if member.folder.parent.name != "services"}
    services = packages - libraries
    apart = linter["importlinter:contract:services-are-processes"]
    assert set(apart["source_modules"].split()) == libraries
    assert set(apart["forbidden_modules"].split()) == services
    assert services <= set(linter["importlinter:contract:layers"]["layers"].replace("|", " ").split())
    emulator = linter["importlinter:contract:one-emulator"]
    assert set(emulator["source_modules"].split()) == packages - {"snavio.embedded"}
