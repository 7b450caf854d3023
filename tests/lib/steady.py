# SPDX-License-Identifier: Apache-2.0
"""Loads that go on while a test does something to the cluster, and what became of each of them.

    with steady.Loads(c, "t") as loads:
        ...
    loads.check()

Every load has one row, its own number. An answer that was lost is asked for by the load's label."""

import http.client
import random
import threading
import time

import tide
from tide import check, equal, until

GONE = (OSError, http.client.HTTPException, tide.Failed)


class Loads:
    """nodes(): the addresses that are asked, as they are at that moment."""

    def __init__(self, cluster, table, threads=2, nodes=None, two_phase=False, patience=60, pause=0.0,
                 first=0):
        self.cluster = cluster
        self.table = table
        self.nodes = nodes or (lambda: [n.http for n in cluster.coordinators if n.alive()])
        self.two_phase = two_phase
        self.patience = patience
        self.pause = pause
        self.lock = threading.Lock()
        self.next = first
        self.done = {}      # number: when it was answered Success
        self.refused = {}   # number: the answer
        self.unknown = []   # numbers
        self.slowest = 0.0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.stop()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(timeout=300)
            check(not thread.is_alive(), "a load does not end")

    def run(self):
        while not self.over.is_set():
            with self.lock:
                number = self.next
                self.next += 1
            begun = time.monotonic()
            try:
                answer = self.one(number)
            except GONE:
                answer = None
            now = time.monotonic()
            with self.lock:
                self.slowest = max(self.slowest, now - begun)
                if answer is None:
                    self.unknown.append(number)
                elif answer.get("Status", answer.get("status")) == "Success":
                    self.done[number] = now
                else:
                    self.refused[number] = answer
            time.sleep(self.pause if answer is not None else 0.1)

    def node(self):
        return random.choice(self.nodes() or [self.cluster.coordinators[0].http])

    def label(self, number):
        return f"{self.table}-{number}"

    def one(self, number):
        headers = {"label": self.label(number)}
        if self.two_phase:
            headers["two_phase_commit"] = "true"
        answer = self.cluster.load(self.table, f"{number}\n".encode(), headers, node=self.node(),
                                   timeout=self.patience)
        if self.two_phase and answer["Status"] == "Success":
            return self.cluster.end_txn(answer["TxnId"], "commit", node=self.node(),
                                        timeout=self.patience)
        return answer

    def count(self):
        with self.lock:
            return len(self.done)

    def go_on(self, more=10, seconds=60, what="loads go on"):
        """Waits until that many more loads have succeeded."""
        wanted = self.count() + more
        until(what, lambda: self.count() >= wanted, seconds)

    def longest_gap(self):
        times = sorted(self.done.values())
        return max((b - a for a, b in zip(times, times[1:])), default=0.0)

    def final_state(self, number):
        def look():
            try:
                state = self.cluster.state(self.label(number), node=self.node())
            except GONE:
                return None
            return state if state in ("VISIBLE", "ABORTED", "UNKNOWN", "PRECOMMITTED") else None
        return until(f"the outcome of {self.label(number)}", look)

    def check(self, allow_refused=False):
        """What was answered is there once, what was refused is not, what is unknown is one of both."""
        if not allow_refused:
            equal(list(self.refused.values())[:3], [], "refused loads")
        states = {number: self.final_state(number) for number in self.unknown}
        found = [int(row[0]) for row in self.cluster.read(self.table)]
        equal(len(found), len(set(found)), "rows that are there twice")
        found = set(found)
        equal(sorted(set(self.done) - found)[:5], [], "answered, but not there")
        equal(sorted(set(self.refused) & found)[:5], [], "refused, but there")
        for number, state in states.items():
            equal(number in found, state == "VISIBLE", f"{self.label(number)} is {state}: is there")
        equal(sorted(found - set(self.done) - set(states))[:5], [], "there, but never answered")
        return len(found)
