"""The repository is the same wherever it is cloned and whichever mirror served its packages."""

import re

import pytest

# Written so that no pattern matches its own text.
ELSEWHERE = {
    "a package registry's host": re.compile(
        r"\b(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|deb\.debian\.org"
        r"|conda\.anaconda\.org|jfrog\.io|(?:nexus|artifactory|mirror|proxy)\.[\w-]+\.[a-z]{2,})\b"
    ),
    "an index address": re.compile(r"--(?:extra-)?index-url[ =]|--find-links[ =]|\bfind-links ="),
    "a path of someone's machine": re.compile(
        r"(?<![\w.}$-])(?:/(?:home|Users)/[a-z][\w.-]*/|/(?:root|work|tmp)/[\w.])|[A-Z]:\\Users"
    ),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_no_file_names(what, root, tracked):
    found = []
    for path in tracked:
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if ELSEWHERE[what].search(line):
                found.append(f"{path.relative_to(root)}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a package registry's host", "url = https://files.python" + "hosted.org/x"),
        ("a package registry's host", "nexus" + ".example.com"),
        ("an index address", "--index" + "-url x"),
        ("a path of someone's machine", 'cd "/home' + '/ann/src"'),
        ("a path of someone's machine", "/wo" + "rk/tree"),
    ],
)
def test_the_patterns_see_what_they_are_for(what, line):
    assert ELSEWHERE[what].search(line)
