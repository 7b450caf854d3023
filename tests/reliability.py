#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks that every test that docs/reliability.md names exists: files below tests/, the functions
named behind each of them, and failpoints."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def failpoints():
    table = read("tests/failpoints/failpoints.py")
    return set(re.findall(r'^    "([a-z]+\.[a-z_]+)":', table, re.M))


def main():
    text = read("docs/reliability.md").split("## Figures")[0]
    wrong = []
    count = 0
    known = failpoints()
    for line in text.split("\n"):
        content = None
        for span in re.findall(r"`([^`]+)`", line) if line.startswith("|") else ():
            if re.fullmatch(r"[\w/]+\.(c|py)", span) and "/" in span:
                path = f"tests/{span}"
                content = read(path) if os.path.exists(os.path.join(TOP, path)) else ""
                wrong += [] if content else [f"no file {path}"]
            elif re.fullmatch(r"[a-z]+\.[a-z_]+", span):
                wrong += [] if span in known else [f"no failpoint {span}"]
            elif re.fullmatch(r"[a-z]\w+_\w+", span) and content is not None:
                found = re.search(rf"\b{span}\b", content)
                wrong += [] if found else [f"no {span} in the file before it: {line[:60]}"]
            else:
                continue
            count += 1
    missing = known - set(re.findall(r"`([a-z]+\.[a-z_]+)`", text))
    wrong += [f"failpoint {name} is not in the document" for name in sorted(missing)]
    cases = set(re.findall(r"^\| (O\d\d) ", text, re.M))
    if len(cases) != 36:
        wrong.append(f"{len(cases)} cases instead of 36")
    print("\n".join(wrong + [f"{count - len(wrong)} passed, {len(wrong)} failed"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
