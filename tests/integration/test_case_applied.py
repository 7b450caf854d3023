#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is on a disk and what it is valid for are written together (O27): a participant is killed at
its n-th write or sync of the metadata, a coordinator at its n-th of the log, for many n; after each
restart it has what undisturbed peers have. Wants root and strace, which kills at the n-th call."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import ask, check, equal, until

LAST = 200


def kill_points():
    """The first ones densely, where a start and the first loads are; then every few up to 200."""
    dense = tide.count(3, 8, 20)
    step = tide.count(66, 16, 1)
    return list(range(1, dense)) + list(range(dense, LAST + 1, step))


class Loader:
    """Loads row after row through nodes that live; exact by its labels."""

    def __init__(self, cluster, nodes):
        self.cluster = cluster
        self.nodes = nodes
        self.rows = 0
        self.failed = []
        self.stop = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop:
            node = self.nodes[self.rows % len(self.nodes)]
            try:
                answer = self.cluster.load("t", b"%d\n" % self.rows, {
                    "label": f"l{self.rows}", "timeout": "20"}, node=node.http, timeout=60)
            except (OSError, tide.http.client.HTTPException):
                continue
            if answer["Status"] == "Success" or answer.get("ExistingJobStatus") == "FINISHED":
                self.rows += 1
            elif answer["Status"] == "Fail":
                self.failed.append(answer["Message"])
                if len(self.failed) > 20:
                    return

    def end(self):
        self.stop = True
        self.thread.join()
        check(len(self.failed) <= 20, "loads fail:", self.failed[:3])
        return self.rows


def under_strace(node, n, calls, paths):
    """Starts it so that it dies at the n-th of these calls on these files; False if it died before it
    served."""
    words = ["strace", "-f", "-qq", "-o", "/dev/null"]
    for path in paths:
        words += ["-P", path]
    node.start(prefix=(*words, "-e", f"trace={calls}", "-e",
                       f"inject={calls}:signal=SIGKILL:when={n}"), wait=False)


def o27_a_participant_killed_at_its_nth_write_has_what_the_others_have():
    with tide.Cluster(1, 3, coordinator=["participant_lease_ms=1500"],
                      participant=["heartbeat_ms=200"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT", buckets=2)
        node = c.participants[0]
        c.tool("stop", node.name)
        loader = Loader(c, c.participants[1:])
        died = 0
        for n in kill_points():
            under_strace(node, n, "pwrite64,pwritev,writev,fdatasync",
                         [os.path.join(node.data, "meta", "data.mdb")])
            try:
                until("it dies", lambda: not node.alive(), 20)
                died += 1
            except tide.Failed:
                node.end()
            if n % 40 == 0 or n == kill_points()[-1]:
                same_tablets(c, node)
        check(died > len(kill_points()) / 2, f"it died {died} times only")
        same_tablets(c, node)
        rows = loader.end()
        until("all copies are good",
              lambda: c.coordinators[0].metric("tidegate_replicas_behind") == 0, 120)
        for at in c.participants:
            equal(len(c.read("t", node=at.http)), rows, f"rows at {at.name}")
        print(f"    killed {died} times, {rows} loads")


def same_tablets(c, node):
    """With loads going on: at some moment all three have the same versions, rowsets and digests."""
    if not node.alive():
        node.start()

    def same():
        return len({tuple(sorted(ask(n.http, "GET", "/api/_tablets").text().splitlines()))
                    for n in c.participants}) == 1
    until("all hold the same tablets", same, 120)


def o27_a_coordinator_killed_at_its_nth_write_has_the_same_state():
    with tide.Cluster(3, 1, coordinator=["snapshot_bytes=64k"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT", buckets=2)
        loader = Loader(c, c.participants)
        died = 0
        points = kill_points()
        for i, n in enumerate(points):
            node = c.coordinators[i % 3]
            if node.alive():
                node.end()
            # libuv's and raft's own writes; the log's own go through the kernel's AIO.
            under_strace(node, n, "io_submit,io_uring_enter,pwrite64,pwritev2,writev,fdatasync,fsync,"
                         "rename,ftruncate", [])
            try:
                until("it dies", lambda x=node: not x.alive(), 10)
                died += 1
            except tide.Failed:
                node.end()
            node.start()
            if i % 8 == 7:
                same_state(c)
        rows = loader.end()
        same_state(c)
        equal(len(c.read("t")), rows, "rows")
        check(died > len(points) / 2, f"it died {died} times only")
        print(f"    killed {died} times, {rows} loads")


def state_of(node):
    answer = ask(node.http, "GET", STATE_PATH, timeout=10).json()
    answer = answer.get("data", answer)
    return answer["applied_index"], answer["state_hash"]


def same_state(c):
    def same():
        try:
            return len({state_of(n) for n in c.coordinators}) == 1
        except (OSError, tide.http.client.HTTPException, tide.Failed):
            return False
    until("equal states at an equal index", same, 120, every=0.01)


STATE_PATH = "/api/state"

if __name__ == "__main__":
    tide.need_tools("strace")
    tide.run([o27_a_participant_killed_at_its_nth_write_has_what_the_others_have,
              o27_a_coordinator_killed_at_its_nth_write_has_the_same_state])
