import ast

FORBIDDEN_NAMES = {
    "util",
    "utils",
    "helper",
    "helpers",
    "manager",
    "managers",
    "common",
    "misc",
    "base",
    "core",
}
MAX_LINES = 400
# A suite that is run on several implementations stays in one piece.
MAX_TEST_LINES = 550
# Path to the reason why it is one idea all the same.
LONG_FOR_A_REASON: dict[str, str] = {}


def python_files(tracked):
    return [path for path in tracked if path.suffix == ".py"]


def test_a_module_is_one_idea_long(root, tracked):
    long = {
        str(path.relative_to(root)): lines
        for path in python_files(tracked)
        if (lines := path.read_text().count("\n"))
        > (MAX_TEST_LINES if "tests" in path.relative_to(root).parts else MAX_LINES)
    }
    assert long.keys() - LONG_FOR_A_REASON.keys() == set(), long
    assert LONG_FOR_A_REASON.keys() - long.keys() == set(), "no longer long: remove from the list"


def test_a_module_is_named_for_what_it_holds(root, tracked):
    nameless = {
        str(path.relative_to(root))
        for path in python_files(tracked)
        for part in (*path.relative_to(root).parts[:-1], path.stem)
        if part.lower() in FORBIDDEN_NAMES or part.lower().endswith(("_utils", "_helpers"))
    }
    assert nameless == set()


def test_test_files_have_names_of_their_own(root, tracked):
    """`--import-mode=importlib` allows twins, but a report that names one of two is no use."""
    seen = {}
    for path in python_files(tracked):
        if path.name.startswith("test_"):
            seen.setdefault(path.name, []).append(str(path.relative_to(root)))
    assert {name: paths for name, paths in seen.items() if len(paths) > 1} == {}


def test_the_domain_never_asks_for_the_time_or_for_chance(members):
    """import-linter forbids `time` and `random`; `datetime.now()` and `uuid4()` come by other doors."""
    asking = {"now", "utcnow", "today", "uuid1", "uuid4", "urandom", "getrandbits"}
    calls = [
        f"{path.name}:{node.lineno} {name}()"
        for member in members
        if member.short == "domain"
        for path in member.sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (name := getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in asking
    ]
    assert calls == []


def test_only_the_embedded_platform_names_the_emulator(members):
    """It is imported by name, where import-linter does not look."""
    naming = [
        str(path)
        for member in members
        if member.short != "embedded"
        for path in member.sources
        if "ministack" in path.read_text()
    ]
    assert naming == []
