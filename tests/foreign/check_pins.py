"""Says which packages of a list of pins are missing, or of another version than the list says.

Usage: check_pins.py REQUIREMENTS; exit code 1 when any is.
"""
import importlib.metadata
import sys

wrong = 0
for line in open(sys.argv[1], encoding="utf-8"):
    pin = line.split("#")[0].strip()
    if not pin:
        continue
    name, separator, version = pin.partition("==")
    if not separator:
        print(f"{pin}: not pinned to a version")
        wrong += 1
        continue
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found = "nothing"
    if found != version:
        print(f"{name}: pinned to {version}, there is {found}")
        wrong += 1
sys.exit(1 if wrong else 0)
