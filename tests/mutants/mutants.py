#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds each planted fault of table.txt and runs the test that must find it.

    tests/mutants/mutants.py [--build DIR] [--only 3,12] [CMAKE-ARGUMENT...]

A fault is caught if its test passes without it and fails with it. Only the files with the fault are
compiled again. Ends with 1 if a fault is missed, or a test fails also without its fault.
"""

import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TEST_SECONDS = 300  # a fault may make its test wait for what never comes


class Fault:
    def __init__(self, line):
        fields = [field.strip() for field in line.split("|")]
        self.number, self.program, self.test, self.what = int(fields[0]), *fields[1:]


def faults(only):
    with open(os.path.join(HERE, "table.txt"), encoding="utf-8") as table:
        lines = [line for line in table if line.strip() and not line.startswith("#")]
    found = [Fault(line) for line in lines]
    return [fault for fault in found if not only or fault.number in only]


def configure(build, number, arguments):
    command = ["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DFAILPOINTS=ON",
               f"-DMUTANT={number}", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def ninja(build, targets, jobs):
    made = subprocess.run(["ninja", "-C", build, f"-j{jobs}", *targets], capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        sys.exit(f"the build fails:\n{made.stdout[-4000:]}")


def run(build, program):
    """The names of tests that passed and of those that failed, or during which the program ended."""
    command = [os.path.join(build, "bin", "tests", program)]
    environment = dict(os.environ, TIDEGATE_BIN=os.path.join(build, "bin"), TIDEGATE_SOURCE=SOURCE)
    try:
        done = subprocess.run(command, capture_output=True, timeout=TEST_SECONDS, check=False,
                              env=environment)
        out = done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        out = (late.stdout or b"") + (late.stderr or b"")
    text = out.decode("utf-8", "replace")
    begun = re.findall(r"^\[ RUN +\] (\w+)", text, re.M)
    passed = set(re.findall(r"^\[ +OK +\] (\w+)", text, re.M))
    skipped = set(re.findall(r"^\[ +SKIPPED +\] (\w+)", text, re.M))
    failed = {name for name in begun if name not in passed | skipped}
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(SOURCE, "build-mutants"))
    parser.add_argument("--only", default="", help="numbers of faults, with commas")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS", "2")))
    options, arguments = parser.parse_known_args()
    chosen = faults({int(number) for number in options.only.split(",") if number})
    begun = time.monotonic()
    configure(options.build, 0, arguments)
    ninja(options.build, sorted({fault.program for fault in chosen}), options.jobs)
    sound = {program: run(options.build, program) for program in {f.program for f in chosen}}
    print(f"built and tested without a fault: {time.monotonic() - begun:.0f} s", flush=True)
    missed = 0
    for fault in chosen:
        start = time.monotonic()
        configure(options.build, fault.number, arguments)
        ninja(options.build, [fault.program], options.jobs)
        _, failed = run(options.build, fault.program)
        verdict = "caught"
        if fault.test not in sound[fault.program][0]:
            verdict = "BAD TEST"
        elif fault.test not in failed:
            verdict = "MISSED"
        missed += verdict != "caught"
        print(f"{fault.number:3} {verdict:8} {time.monotonic() - start:5.1f} s  "
              f"{fault.program}:{fault.test}\n"
              f"                      {fault.what}", flush=True)
        if verdict != "caught":
            print(f"                      failed instead: {sorted(failed) or 'nothing'}")
    configure(options.build, 0, arguments)
    print(f"{len(chosen) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
