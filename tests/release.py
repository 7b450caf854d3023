#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for failpoints and planted faults in built programs.

    tests/release.py BIN             fails if there are any
    tests/release.py BIN --faulty    fails if a program has no failpoint: this check is no use then
"""

import os
import re
import sys

PROGRAMS = ("tidegate", "tidegate-coordinator", "tidegate-participant")
MARKS = (b"failpoint_hit", b"TIDEGATE_FAILPOINTS", b"TIDEGATE PLANTED FAULT")


def names():
    """All names of failpoints in the sources."""
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = set()
    for room in ("common", "coordinator", "participant", "client"):
        for folder, _, files in os.walk(os.path.join(top, room)):
            for file in files:
                if file.endswith(".c"):
                    with open(os.path.join(folder, file), encoding="utf-8") as source:
                        for call in re.findall(r"FAILPOINT(?:_ERROR)?\(([^;]*);", source.read()):
                            found.update(re.findall(r'"([a-z]+\.[a-z_]+)"', call))
    return found


def main():
    binaries, faulty = sys.argv[1], "--faulty" in sys.argv[2:]
    known = names()
    wrong = []
    found = set()
    for program in PROGRAMS:
        with open(os.path.join(binaries, program), "rb") as file:
            content = file.read()
        here = [mark for mark in MARKS if mark in content]
        here += [name.encode() for name in known if name.encode() in content]
        found.update(here)
        if here and not faulty:
            wrong.append(f"{program} has {b', '.join(sorted(here)).decode()}")
    if faulty:
        wrong += [f"no program has {name}" for name in sorted(known) if name.encode() not in found]
    print("\n".join(wrong) or f"{len(known)} failpoints are "
          + ("in the programs" if faulty else "not in the programs"))
    print(f"{0 if wrong else 1} passed, {1 if wrong else 0} failed")
    return 1 if wrong or not known else 0


if __name__ == "__main__":
    sys.exit(main())
