#!/usr/bin/env python3
"""Runs the commands that README.md, CONTRIBUTING.md and the other READMEs show.

    scripts/page_commands.py [--list | --readme | --keep-builds DIR]

A block of a page that starts with "```sh" holds commands that run as they are in a checkout. They
are run word for word in a clone of the last commit, in a temporary directory with an empty target
folder and no real traces beside it, as a newcomer would run them. The commands of README.md come
first, and the first of them has to print the verdict "complete". A command that several pages show
is run once, and a line that .ci/run contains is left to it.

--list prints the commands with their pages, --readme runs only the commands of README.md's first
block, and --keep-builds moves the clone's target folder to DIR at the end with the builds of
dependencies, unless DIR exists: later builds with other features use them. Exit codes: 0 all
commands succeed; 1 one does not.
"""

import json
import os
import re
import shutil
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


def clone(directory):
    checkout = Path(directory) / "etlkit"
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    return checkout


def environment(home):
    """The variables of a newcomer: none of the project's own."""
    own = {name for name in os.environ if name.startswith(("ETLKIT_", "CARGO_TARGET"))}
    kept = {name: value for name, value in os.environ.items() if name not in own}
    # Installed tools and manual pages go to a directory of their own; cargo's registry does not.
    cargo_home = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    rustup_home = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    binaries = home / "bin"
    kept.update(HOME=str(home), CARGO_HOME=cargo_home, RUSTUP_HOME=rustup_home)
    kept.update(CARGO_INSTALL_ROOT=str(home), PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}")
    return kept | QUICK_RELEASE


def run(command, checkout, variables):
    """Runs a command, prints its output, and returns it. Ends with 1 if the command fails."""
    print(f"$ {command}", flush=True)
    started = time.monotonic()
    output = []
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=checkout,
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


def keep_dependencies(checkout, variables):
    """Removes all builds but those of dependencies: a build of our crates contains its place."""
    metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    printed = subprocess.run(
        metadata, cwd=checkout, env=variables, check=True, stdout=subprocess.PIPE, text=True
    )
    packages = [package["name"] for package in json.loads(printed.stdout)["packages"]]
    selected = [word for name in packages for word in ("--package", name)]
    subprocess.run(["cargo", "clean", *selected], cwd=checkout, env=variables, check=True)
    shutil.rmtree(checkout / "target/release", ignore_errors=True)


def main():
    option, *values = sys.argv[1:] or [""]
    if (option, len(values)) not in (("", 0), ("--list", 0), ("--readme", 0), ("--keep-builds", 1)):
        sys.exit(__doc__)
    found = collect()
    if option == "--list":
        print("\n".join(f"{page}: {command}" for command, page in found.items()))
        return
    main_job, tests = commands(ROOT / "README.md")[0]
    with tempfile.TemporaryDirectory() as directory:
        checkout = clone(directory)
        home = Path(directory) / "home"
        home.mkdir()
        variables = environment(home)
        if VERDICT not in run(main_job, checkout, variables):
            sys.exit(f"page_commands: `{main_job}` did not print the line `{VERDICT}`")
        run(tests, checkout, variables)
        if option == "--readme":
            return
        for command in found:
            if command not in (main_job, tests):
                run(command, checkout, variables)
        if values and not Path(values[0]).exists():
            keep_dependencies(checkout, variables)
            shutil.move(checkout / "target", values[0])


if __name__ == "__main__":
    main()
