"""What every check shares: the project's files, and how a violation is reported."""

import argparse
import pathlib
import re
import subprocess
import sys

CPP_SUFFIXES = {".c", ".cpp", ".hpp", ".h", ".cu", ".cuh"}
NOT_SOURCE = {"build", ".deps", ".git"}


class Check:
    """Collects violations of one rule set over one tree."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.violations = []

    def files(self):
        """Relative paths of all files that git tracks or would, sorted; all files without git."""
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, capture_output=True, text=True)
        if listing.returncode == 0 and (self.root / ".git").exists():
            names = [name for name in listing.stdout.split("\0") if name]
            paths = [pathlib.PurePosixPath(name) for name in names]
        else:
            paths = [pathlib.PurePosixPath(path.relative_to(self.root).as_posix())
                     for path in self.root.rglob("*") if path.is_file()]
        return sorted({path for path in paths
                       if path.parts[0] not in NOT_SOURCE and (self.root / path).is_file()})

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def report(self, path, line, message):
        self.violations.append(f"{path}:{line}: {message}")

    def close(self):
        """Prints the violations; the process exit status."""
        name = pathlib.Path(sys.argv[0]).name
        for violation in self.violations:
            print(violation)
        print(f"{name}: {len(self.violations)} violation(s)" if self.violations else f"{name}: ok")
        return 1 if self.violations else 0


def parse_arguments(description):
    """--root: the tree to check, by default the one this script lies in."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2])
    return parser.parse_args()


def is_golden(path):
    """Renderings kept to compare with are output, not source."""
    return "golden" in path.parts


def without_comments_and_strings(text):
    """C++ with comments, string and character literals blanked; line breaks stay in place."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)

    def blank(match):
        token = match.group(0)
        breaks = "\n" * token.count("\n")
        return breaks or " " if token.startswith("/") else '""' + breaks

    return pattern.sub(blank, text)
