#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Disks that fail under a participant: after EIO from a write or a sync the process ends with a clear
word instead of going on (LMDB itself would), and has everything acknowledged after a restart; ENOSPC
from one is only a full disk. Wants root and strace, which injects the failures."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import check, equal, until

FATAL = 70


class Injected:
    """Calls of a process that fail from now on, as long as this lasts."""

    def __init__(self, node, calls, error, path=None):
        self.node = node
        words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}",
                 "-e", f"inject={calls}:error={error}", "-p", str(node.pid)]
        if path:
            words[1:1] = ["-P", path]
        self.words = words

    def __enter__(self):
        self.strace = subprocess.Popen(self.words, stderr=subprocess.PIPE)
        tasks = f"/proc/{self.node.pid}/task"

        def traced():
            if self.strace.poll() is not None:
                tide.skip(f"strace cannot attach: {self.strace.stderr.read().decode()}")
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/status", encoding="ascii") as status:
                    if "TracerPid:\t0\n" in status.read():
                        return False
            return True
        until("strace holds all threads", traced)

    def __exit__(self, *_):
        self.strace.terminate()
        self.strace.wait(timeout=30)
        self.strace.stderr.close()


def data_files(node):
    return [os.path.join(node.data, name, "data.mdb") for name in
            ("meta", "blocks-64k", "blocks-256k")]


def body_of(i, lines=1):
    return "".join(f"{i * 100000 + n},{os.urandom(40).hex()}\n" for n in range(lines)).encode()


def load_some(c, first, loads, lines, node):
    """Loads through another node than the failing one; every acknowledged row counts."""
    rows = 0
    for i in range(first, first + loads):
        c.good("t", body_of(i, lines), {"column_separator": ",", "label": f"l{i}"}, node=node.http)
        rows += lines
    return rows


def a_failed_sync_or_write_ends_the_process():
    with tide.Cluster(1, 3, coordinator=["participant_lease_ms=2000"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT, v STRING", buckets=2)
        node, other = c.participants[0], c.participants[1]
        c.tool("stop", node.name)
        node.start()
        rows = load_some(c, 0, 5, 1, other)
        done = 5
        for calls, path, lines in (("fdatasync", 0, 1), ("pwrite64,pwritev,writev", 0, 1),
                                   ("fdatasync", 2, 8000)):
            with Injected(node, calls, "EIO", data_files(node)[path]):
                # The others go on; this one must not.
                rows += load_some(c, done, 2, lines, other)
                done += 2
                status = node.wait_gone(60)
            equal(status, FATAL, f"exit status after EIO of {calls}: {node.log_tail()}")
            word = [line for line in node.log().splitlines() if "store fatal" in line][-1]
            check("during=commit" in word and "Input/output error" in word, word)
            rows += load_some(c, done, 2, lines, other)
            done += 2
            node.start()
            until("it is repaired", lambda: c.coordinators[0].metric("tidegate_replicas_behind") == 0,
                  120)
            for at in c.participants:
                equal(len(c.read("t", "&columns=k", node=at.http)), rows, f"rows at {at.name}")
        check(node.log().count("store fatal") == 3, "it ended for another reason once")


def enospc_from_a_write_is_a_full_disk_and_passes():
    with tide.Cluster(1, 1) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT, v STRING", buckets=1)
        node = c.participants[0]
        rows = load_some(c, 0, 3, 1, node)
        for path, lines in ((0, 1), (2, 8000)):
            file = data_files(node)[path]
            with Injected(node, "pwrite64,pwritev,writev", "ENOSPC", file):
                answer = c.load("t", body_of(90, lines), {"column_separator": ",", "label": "full"})
                tide.refused_with(answer, "disk full: no space left on participant 1")
                equal(len(c.read("t", "&columns=k")), rows, "rows meanwhile")
            # By itself, and under the same label.
            until("loads work again", lambda b=body_of(path, lines): c.load(
                "t", b, {"column_separator": ",", "label": f"again-{lines}"})["Status"] in
                ("Success", "Label Already Exists"))
            rows += lines
            equal(len(c.read("t", "&columns=k")), rows, "rows afterwards")
        check(node.alive(), "it died of a full disk")
        node.end()
        c.tool("start")
        equal(len(c.read("t", "&columns=k")), rows, "rows after kill -9")


if __name__ == "__main__":
    tide.need_tools("strace")
    tide.run([a_failed_sync_or_write_ends_the_process,
              enospc_from_a_write_is_a_full_disk_and_passes])
