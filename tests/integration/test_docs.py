#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of README.md and docs/ (the ```sh blocks, in order) on a cluster of its own, and
the demo: what they say must be true."""

import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile

BIN = os.environ.get("TIDEGATE_BIN", "build/bin")
SOURCE = os.environ.get("TIDEGATE_SOURCE", ".")
# Answers that say no where a document shows just that.
EXPECTED_REFUSALS = ["_cancel?label=wednesday"]
failures = []


def blocks(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return "\n".join(re.findall(r"^```sh\n(.*?)^```$", file.read(), re.M | re.S))


def free_offset():
    for offset in random.sample(range(100, 23000, 100), 200):
        try:
            for port in (8030, 8031, 8032, 8040, 8041, 8042, 8060, 9010, 9020):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port + offset))
            return offset
        except OSError:
            continue
    sys.exit("no free ports")


def moved(script, folder, offset):
    """The same commands, in a temporary folder and on ports that are free."""
    script = script.replace("/tmp/", folder + "/").replace("build/bin/", BIN + "/")
    script = re.sub(r"\b(80[34]\d)\b", lambda m: str(int(m[1]) + offset), script)
    script = re.sub(r" --port-offset \d+", "", script)
    script = re.sub(r"(cluster start --dir \S+)", r"\1 --port-offset %d" % offset, script)
    # The tool's other commands know no port but the usual one.
    script = re.sub(r"(?m)^(\S*/tidegate (?!cluster)\w+)", r"\1 --url 127.0.0.1:%d" % (8030 + offset),
                    script)
    return re.sub(r"(?m)^(\s*)curl ", r"\1curl -sS --fail-with-body -w '\\n' ", script)


def run(name, script, folder):
    """Joins the lines of one command, runs command by command, looks at each answer."""
    commands = re.sub(r"\\\n", "", script)
    lines = [line for line in commands.split("\n") if line.strip()]
    variables = ""
    killed = False
    for line in lines:
        killed = "cluster kill" in line or (killed and "cluster start" not in line)
        expected = 1 if killed and "cluster status" in line else 0  # a node does not answer
        if re.search(r"# .*\brefused$", line):
            expected = 1
        done = subprocess.run(["bash", "-c", variables + line], cwd=folder, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if re.match(r"\w+=", line):
            variables += line + "\n"
        refused = re.search(r'"Status": "Fail"|"status": "(?!Success)|"code":[1-9]', done.stdout)
        if any(word in line for word in EXPECTED_REFUSALS):
            refused = not refused
        if done.returncode != expected or refused:
            failures.append("%s: %s\n%s" % (name, line, done.stdout))
    return len(lines)


def main():
    folder = tempfile.mkdtemp(prefix="tidegate-docs-")
    count = 0
    try:
        readme = moved(blocks("README.md"), folder, free_offset())
        api = blocks("docs/http-api.md")
        offset = int(re.search(r"--port-offset (\d+)", readme)[1])
        first, stop = readme.rsplit("\n%s/tidegate cluster stop" % BIN, 1)
        count += run("README.md", first, folder)
        count += run("docs/http-api.md", moved(api, folder, offset), folder)
        count += run("README.md", "%s/tidegate cluster stop%s" % (BIN, stop), folder)
        operations = moved(blocks("docs/operations.md"), folder, free_offset())
        count += run("docs/operations.md", operations, folder)
        if all(os.path.exists(p) for p in ("/usr/share/unicode/UnicodeData.txt",
                                           "/usr/share/iso-codes/json/iso_3166-2.json")):
            demo = subprocess.run([os.path.join(SOURCE, "scripts/demo")], text=True, timeout=150,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            count += 1
            if demo.returncode != 0:
                failures.append("scripts/demo\n" + demo.stdout[-3000:])
    finally:
        for name in ("tide", "tide2"):
            subprocess.run([BIN + "/tidegate", "cluster", "stop", "--dir", folder + "/" + name],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    for failure in failures:
        print("FAILED", failure)
    print("%d commands, %d failed" % (count, len(failures)))
    return 1 if failures or count < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
