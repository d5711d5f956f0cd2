#!/usr/bin/env python3
"""Runs the commands that README.md, CONTRIBUTING.md and the other READMEs show.

    scripts/page_commands.py [--list | --readme]

A block of a page that starts with "```sh" holds commands that run as they are in a checkout. They
are run word for word in this checkout, as a newcomer would run them: without the variables of the
project, without the real traces beside it, and with a home directory of their own. The commands of
README.md come first, and the first of them has to print the verdict "complete". A command that
several pages show is run once, and a line that .ci/run contains is left to it. Files that the
commands make are removed at the end; a command must not change a file of the repository.

--list prints the commands with their pages, --readme runs only the commands of README.md's first
block. Exit codes: 0 all commands succeed; 1 one does not.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERDICT = "verdict   complete"
# `cargo install` builds for speed, which takes minutes and shows no more than a quick build.
QUICK_RELEASE = {
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
}


def pages():
    """The pages, README.md first."""
    listed = subprocess.run(
        ["git", "ls-files", "*README.md"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    others = [ROOT / name for name in listed.stdout.splitlines() if name != "README.md"]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *others]


def commands(page):
    """The commands in the blocks of a page, without their comments, one list per block."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [[re.sub(r"(^|\s+)#.*", "", line) for line in block.splitlines()] for block in blocks]
    return [[line for line in block if line] for block in lines]


def collect():
    """All commands with their pages. Those of README.md's first block come first."""
    ci_lines = {line.strip() for line in (ROOT / ".ci/run").read_text().splitlines()}
    found = {}
    for page in pages():
        for command in (line for block in commands(page) for line in block):
            # .ci/run does not run itself.
            if command not in ci_lines and command != ".ci/run":
                found.setdefault(command, page.relative_to(ROOT).as_posix())
    return found


def git(*arguments):
    """The lines that git prints."""
    printed = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return printed.stdout.splitlines()


def untracked():
    """The files that git neither tracks nor ignores."""
    return set(git("ls-files", "--others", "--exclude-standard"))


def environment(home):
    """The variables of a newcomer: none of the project's own."""
    own = {name for name in os.environ if name.startswith(("ETLKIT_", "CARGO_TARGET"))}
    kept = {name: value for name, value in os.environ.items() if name not in own}
    # Installed tools and manual pages go to a directory of their own; cargo's registry does not.
    cargo_home = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    rustup_home = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    binaries = home / "bin"
    kept.update(HOME=str(home), CARGO_HOME=cargo_home, RUSTUP_HOME=rustup_home)
    kept.update(ETLKIT_SHARED=str(home / "shared"))
    kept.update(CARGO_INSTALL_ROOT=str(home), PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}")
    return kept | QUICK_RELEASE


def run(command, variables):
    """Runs a command, prints its output, and returns it. Ends with 1 if the command fails."""
    print(f"$ {command}", flush=True)
    started = time.monotonic()
    output = []
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in process.stdout:
        output.append(line.rstrip("\n"))
        print(line, end="", flush=True)
    code = process.wait()
    print(f"  (exit code {code}, {time.monotonic() - started:.0f} s)", flush=True)
    if code != 0:
        sys.exit(f"page_commands: `{command}` ended with exit code {code}")
    return output


def run_all(found, variables, only_readme):
    main_job, tests = commands(ROOT / "README.md")[0]
    if VERDICT not in run(main_job, variables):
        sys.exit(f"page_commands: `{main_job}` did not print the line `{VERDICT}`")
    run(tests, variables)
    if only_readme:
        return
    for command in found:
        if command not in (main_job, tests):
            run(command, variables)


def main():
    option, *more = sys.argv[1:] or [""]
    if option not in ("", "--list", "--readme") or more:
        sys.exit(__doc__)
    found = collect()
    if option == "--list":
        print("\n".join(f"{page}: {command}" for command, page in found.items()))
        return
    files = untracked()
    changes = git("diff")
    with tempfile.TemporaryDirectory() as home:
        try:
            run_all(found, environment(Path(home)), option == "--readme")
        finally:
            for made in untracked() - files:
                (ROOT / made).unlink()
    if git("diff") != changes:
        sys.exit("page_commands: a command changed files of the repository: see `git diff`")


if __name__ == "__main__":
    main()
