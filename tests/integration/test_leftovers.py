#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads that fail in every way there is, again and again: afterwards no rowset, file, descriptor,
thread or memory of them is left, and what was expired was told so in time."""

import gzip
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import ask, check, equal, raw_answer, raw_head, raw_open, until

PATH = "/api/d/t/_stream_load"
ROUNDS_WARM = 2


def rows(count, first=0):
    return b"".join(b"%d,%s\n" % (first + i, b"z" * 60) for i in range(count))


class Failures:
    """One method a way to fail. Each must leave nothing."""

    def __init__(self, cluster):
        self.c = cluster
        self.number = 0

    def node(self):
        return self.c.participants[self.number % len(self.c.participants)].http

    def headers(self, **more):
        self.number += 1
        return {"label": f"f{self.number}", "column_separator": ",", **more}

    def failed(self, body, headers, word):
        answer = self.c.load("t", body, headers, node=self.node())
        tide.refused_with(answer, word)

    def bad_rows(self):
        self.failed(rows(3000) + b"x,y\n", self.headers(), "DATA_QUALITY")

    def bad_header(self):
        self.failed(b"1,a\n", self.headers(max_filter_ratio="7"), "max_filter_ratio")

    def no_such_table(self):
        answer = ask(self.node(), "PUT", "/api/d/nothing/_stream_load", b"1\n",
                     self.headers()).json()
        equal(answer["Status"], "Fail", answer)

    def broken_gzip(self):
        self.failed(gzip.compress(rows(20000))[:-300], self.headers(compress_type="gz"), "")

    def broken_json(self):
        self.failed(b'[{"k": 1, "v": "a"}, {"k": 2, ', {
            **self.headers(), "format": "json", "strip_outer_array": "true"}, "")

    def sender_goes(self):
        """In the middle of a body that is large enough for rowsets to be staged."""
        with raw_open(self.node()) as sock:
            sock.sendall(raw_head("PUT", PATH, self.headers(**{"Content-Length": 8 << 20})))
            for i in range(3):
                sock.sendall(rows(14000, i * 14000))

    def sender_goes_early(self):
        with raw_open(self.node()) as sock:
            sock.sendall(raw_head("PUT", PATH, self.headers(**{"Content-Length": 100})) + b"1,")

    def body_times_out(self):
        with raw_open(self.node()) as sock:
            sock.sendall(raw_head("PUT", PATH, self.headers(**{"Content-Length": 100, "timeout": 1})))
            answer = raw_answer(sock).json()
            check("TIMEOUT" in answer["Message"], answer)

    def aborted_meanwhile(self):
        headers = self.headers(**{"Content-Length": 100})
        with raw_open(self.node()) as sock:
            sock.sendall(raw_head("PUT", PATH, headers) + b"1,a\n")
            until("it runs", lambda: self.c.state(headers["label"]) == "PREPARE", every=0.01)
            done = ask(self.c.any(), "PUT", "/api/d/_stream_load_2pc", b"", {
                "txn_operation": "abort", "label": headers["label"]}).json()
            equal(done["status"], "Success", done)
            answer = raw_answer(sock).json()
            equal(answer["Status"], "Fail", answer)

    def aborted_after_precommit(self):
        done = self.c.good("t", rows(5000), self.headers(two_phase_commit="true"), node=self.node())
        equal(self.c.end_txn(done["TxnId"], "abort")["status"], "Success", "abort")

    def precommit_expires(self):
        headers = self.headers(two_phase_commit="true")
        done = self.c.good("t", rows(2000), headers, node=self.node())
        until("the precommitted one expires", lambda: self.c.state(headers["label"]) == "ABORTED", 30)
        answer = self.c.end_txn(done["TxnId"], "commit")
        check(answer["status"] != "Success", answer)

    def prepare_expires(self):
        label = self.headers()["label"]
        begun = ask(self.c.any(), "PUT", "/api/d/_stream_load_2pc", b"", {
            "txn_operation": "begin", "label": label, "timeout": "1"}).json()
        equal(begun["status"], "Success", begun)
        until("the begun one expires", lambda: self.c.state(label) == "ABORTED", 30)

    def used_label(self):
        answer = self.c.load("t", rows(10), {**self.headers(), "label": "used"}, node=self.node())
        equal(answer["Status"], "Label Already Exists", answer)

    def all(self):
        return [getattr(self, name) for name, value in sorted(vars(Failures).items())
                if callable(value) and name not in ("__init__", "node", "headers", "failed", "all")]


def store_files(node):
    found = []
    for root, _, names in os.walk(node.data):
        found += [os.path.join(root, name) for name in names if "error_log" not in root]
    return sorted(found)


def figures(c):
    return [(n.descriptors(), n.memory_kib(), store_bytes(n)) for n in c.nodes()]


def store_bytes(node):
    return sum(os.stat(file).st_blocks * 512 for file in store_files(node) if "raft" not in file)


def all_is_collected(c):
    for node in c.participants:
        until(f"{node.name} writes no rowset", lambda n=node: n.metric("tidegate_rowsets_open") == 0)
        until(f"{node.name} has collected what was staged",
              lambda n=node: n.metric("tidegate_staged_transactions") == 0, 60)
        until(f"{node.name} holds no memory for loads",
              lambda n=node: n.metric("tidegate_loads_memory_bytes") == 0)
    until("no transaction is open",
          lambda: c.coordinators[0].metric("tidegate_transactions_open") == 0)


def failed_loads_leave_nothing():
    with tide.Cluster(1, 3, coordinator=["precommit_timeout_s=1", "participant_lease_ms=2000"],
                      participant=["heartbeat_ms=200"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT NOT NULL, v STRING", buckets=3)
        c.good("t", b"1,kept\n", {"column_separator": ",", "label": "used"})
        failures = Failures(c)
        for _ in range(ROUNDS_WARM):
            for fail in failures.all():
                fail()
        all_is_collected(c)
        before = figures(c)
        files = [store_files(n) for n in c.participants]
        for _ in range(tide.count(2, 8, 60)):
            for fail in failures.all():
                fail()
        all_is_collected(c)
        rounds = failures.number
        for node, (fds, kib, disk), names in zip(c.nodes(), before, [None] + files):
            until(f"{node.name} has no more descriptors than before: {fds}",
                  lambda n=node, f=fds: n.descriptors() <= f + 2, 30)
            grown = node.memory_kib() - kib
            check(grown < 24 * 1024 or tide.SHORT, f"{node.name} grew by {grown} KiB")
            if node.role == "participant":
                equal(store_files(node), names, f"files of {node.name}")
                grown = store_bytes(node) - disk
                check(grown < 24 << 20, f"the store of {node.name} grew by {grown} bytes")
        equal(c.read("t"), [["1", "kept"]], "rows")
        print(f"    {rounds} failed loads; memory before and after: " + ", ".join(
            f"{n.name} {b[1]} {n.memory_kib()} KiB" for n, b in zip(c.nodes(), before)))
        # And after a restart there is nothing to find, either.
        for node in c.participants:
            node.end()
        c.tool("start")
        for node in c.participants:
            equal(node.metric("tidegate_staged_transactions"), 0, f"staged at {node.name}")
        equal(c.read("t"), [["1", "kept"]], "rows after a restart")


def a_dead_writer_is_noticed_within_seconds():
    with tide.Cluster(1, 3, coordinator=["participant_lease_ms=2000"],
                      participant=["heartbeat_ms=200"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT NOT NULL, v STRING", buckets=3)
        for i in range(tide.count(1, 3, 20)):
            node = c.participants[i % 3]
            sock = raw_open(node.http)
            sock.sendall(raw_head("PUT", PATH, {"label": f"w{i}", "Content-Length": 8 << 20,
                                                "column_separator": ","}) + rows(14000))
            until("it runs", lambda n=i: c.state(f"w{n}") == "PREPARE")
            node.end()
            begin = time.monotonic()
            until("its transaction is aborted", lambda n=i: c.state(f"w{n}") == "ABORTED", 30)
            took = time.monotonic() - begin
            check(took < (30 if tide.SHORT else 10), f"noticed after {took:.1f} s")
            other = c.participants[(i + 1) % 3]
            c.good("t", b"%d,b\n" % i, {"label": f"w{i}", "column_separator": ","}, node=other.http)
            sock.close()
            c.tool("start")
            with open(os.path.join(c.folder, "cluster.json"), encoding="utf-8") as file:
                node.pid = tide.json.load(file)["participants"][i % 3]["pid"]
            node.wait_serves()
            for at in c.participants:
                until(f"{at.name} has collected it",
                      lambda n=at: n.metric("tidegate_staged_transactions") == 0, 60)
        until("all copies are good", lambda: c.coordinators[0].metric("tidegate_replicas_behind") == 0,
              120)
        equal(len(c.read("t")), tide.count(1, 3, 20), "rows")


if __name__ == "__main__":
    tide.run([failed_loads_leave_nothing, a_dead_writer_is_noticed_within_seconds])
