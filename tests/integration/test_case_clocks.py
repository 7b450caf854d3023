#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump by seconds, an hour and a day, on leaders and participants (O32): order, what a
time names, and timeouts stay as they are, and somebody is told.
tests/clock/wall_shim.c gives each process a wall clock of its own."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import check, equal, raw_answer, raw_head, raw_open, until

HOUR = 3600
DAY = 24 * HOUR
SHIM = os.path.join(tide.BIN, "tests", "libtidegate_wall_shim.so")


class Clocks:
    """Every node of a cluster under a wall clock of its own."""

    def __init__(self, cluster):
        self.cluster = cluster
        if not os.path.exists(SHIM):
            tide.skip(f"{SHIM} is not built, as where sanitizers want to be loaded first")
        for node in cluster.nodes():
            self.set(node, 0)
        for node in cluster.nodes():
            node.end(tide.signal.SIGTERM)
            self.start(node)

    def path(self, node):
        return os.path.join(self.cluster.top, "clock-" + node.name)

    def set(self, node, seconds):
        """Its clock differs from the machine's by so much from now on."""
        with open(self.path(node) + ".new", "w", encoding="ascii") as file:
            file.write(f"{seconds:+d}\n")
        os.replace(self.path(node) + ".new", self.path(node))

    def start(self, node):
        node.start(env={"LD_PRELOAD": SHIM, "TIDEGATE_WALL_FILE": self.path(node)})


class Story:
    """Loads one after another, and what every time up to now must name."""

    def __init__(self, cluster):
        self.c = cluster
        self.rows = 0

    def load(self, patience=30):
        """One more row; waits while there is no leader, and stays exact by its label."""
        label = f"s{self.rows}"
        body = b"%d\n" % self.rows
        until(f"load {label}", lambda: self.c.load("t", body, {"label": label})["Status"] in
              ("Success", "Label Already Exists"), patience)
        self.rows += 1

    def timeline(self):
        """(version, completion time) of every load, oldest first."""
        return sorted((i["version"], i["completed_us"]) for i in instants(self.c, "t"))

    def check(self):
        line = self.timeline()
        equal([v for v, _ in line], list(range(1, self.rows + 1)), "versions")
        times = [t for _, t in line]
        check(all(a < b for a, b in zip(times, times[1:])), f"times do not grow: {times}")
        for version, at in line:
            expected = sorted([str(i)] for i in range(version))
            for node in self.c.participants:
                equal(self.c.read("t", f"&as_of={at}", node=node.http), expected,
                      f"as of {at}, asked at {node.name}")
            equal(self.c.read("t", f"&as_of={at - 1}"), sorted([str(i)] for i in range(version - 1)),
                  f"just before {at}")
        return times


def instants(c, table):
    """All completed instants of a table, page by page."""
    found = []
    to = ""
    while True:
        page = tide.ask(c.any(), "GET", f"/api/d/{table}/_timeline?state=COMPLETED&limit=1000{to}"
                        ).json()["data"]["instants"]
        found += [i for i in page if i["action"] == "deltacommit"]
        if len(page) < 1000:
            return found
        to = f"&to={page[-1]['completed_us'] - 1}"


def jumps_change_neither_order_nor_timeouts():
    with tide.Cluster(3, 2, coordinator=["participant_lease_ms=3000"]) as c:
        clocks = Clocks(c)
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT", replicas=2)
        c.table("p", "k INT", replicas=2)
        story = Story(c)
        story.load()
        # Lives that are under way through all of it: a precommitted transaction, and an upload.
        held = c.good("p", b"1\n", {"two_phase_commit": "true", "timeout": "600"})["TxnId"]
        upload = raw_open(c.participants[0].http, 300)
        upload.sendall(raw_head("PUT", "/api/d/p/_stream_load", {
            "Content-Length": 4, "label": "slow", "timeout": "900"}) + b"2\n")
        before = registrations(c)
        # The case itself: the leader's clock goes back, then another one leads with a later clock.
        leader = c.leader()
        clocks.set(leader, -HOUR)
        story.load()
        heard(leader, "behind")
        others = [n for n in c.coordinators if n is not leader]
        for node in others:
            clocks.set(node, 10)
        leader.end()
        story.load()
        story.check()
        clocks.set(leader, 0)
        clocks.start(leader)
        for node in others:
            clocks.set(node, 0)
        story.load()
        # Whoever leads, and whoever stores, back and forth.
        for seconds in tide.count([HOUR, -DAY], [HOUR, -HOUR, DAY, -DAY], [HOUR, -HOUR, DAY, -DAY] * 4):
            leader = c.leader()
            clocks.set(leader, seconds)
            story.load()
            story.load()
            clocks.set(leader, 0)
            story.load()
            for node in c.participants:
                clocks.set(node, seconds)
            story.load()
            times_out_in_time(c)
            for node in c.participants:
                clocks.set(node, 0)
            story.load()
        for node in c.nodes():
            clocks.set(node, -HOUR)
        story.load()
        story.check()
        # Nothing was aborted, fenced or registered anew because of a clock.
        equal(registrations(c), before, "registrations of participants")
        upload.sendall(b"3\n")
        answer = raw_answer(upload).json()
        equal(answer["Status"], "Success", answer)
        upload.close()
        equal(c.end_txn(held, "commit")["status"], "Success", "commit of what was held")
        until("all of it is visible", lambda: len(c.read("p")) == 3)
        check(any("clock jumped" in n.log() for n in c.coordinators), "no coordinator told of a jump")
        check(all("clock jumped" in n.log() for n in c.participants), "a participant kept silent")
        check(sum(n.metric("tidegate_clock_jumps_total") for n in c.nodes()) > 0, "no jump counted")
        # Everything again, after a restart of all under right clocks.
        for node in c.nodes():
            clocks.set(node, 0)
            node.end()
        for node in c.nodes():
            node.start(wait=False)
        for node in c.nodes():
            node.wait_serves()
        story.load()
        story.check()


def heard(node, what):
    until(f"{node.name} tells that its clock is {what}",
          lambda: "clock jumped" in node.log() or not node.alive(), 10)


def registrations(c):
    return sum(n.log().count("membership joined") for n in c.participants)


def times_out_in_time(c):
    """A stalled load with a timeout of three seconds fails after three seconds."""
    begin = time.monotonic()
    with raw_open(c.participants[0].http) as sock:
        sock.sendall(raw_head("PUT", "/api/d/p/_stream_load", {"Content-Length": 10, "timeout": "3"})
                     + b"1\n")
        answer = raw_answer(sock).json()
    took = time.monotonic() - begin
    equal(answer["Status"], "Fail", answer)
    check("TIMEOUT" in answer["Message"], answer)
    check(2.5 < took < (30 if tide.SHORT else 12), f"it took {took:.1f} s")


def every_load_has_an_instant_of_its_own():
    loads = tide.count(100, 1000, 5000)
    with tide.Cluster(1, 1) as c:
        c.sql("CREATE DATABASE d")
        for table in ("a", "b"):
            c.table(table, "k INT")
        failures = []
        threads_count = 16

        def work(number):
            connection = tide.http.client.HTTPConnection(*tide.split(c.participants[0].http))
            for i in range(number, loads, threads_count):
                connection.request("PUT", f"/api/d/{'ab'[i % 2]}/_stream_load", b"%d\n" % i,
                                   {"Authorization": tide.AUTH})
                answer = connection.getresponse().read()
                if b'"Status": "Success"' not in answer:
                    failures.append(answer)
            connection.close()
        begin = time.monotonic()
        threads = [threading.Thread(target=work, args=(n,)) for n in range(threads_count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - begin
        check(not failures, len(failures), failures[:1])
        times = []
        for table in ("a", "b"):
            times += [i["completed_us"] for i in instants(c, table)]
        equal(len(times), loads, "instants")
        equal(len(set(times)), len(times), "distinct instants")
        print(f"    {loads} loads in {took:.2f} s, all instants distinct")


if __name__ == "__main__":
    tide.run([jumps_change_neither_order_nor_timeouts, every_load_has_an_instant_of_its_own])
