#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster grows and shrinks under loads of all kinds: tablets move to new participants and away
from those that leave, nothing is lost, no load is broken, and never is a copy given up before its
successor is good (rules 3 and 17 of docs/transactions.md)."""

import http.client
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import ask, check, equal, raw_answer, raw_head, raw_open, until

BROKEN = (OSError, http.client.HTTPException, tide.Failed, KeyError)
BUCKETS = 8
WAIT_S = 90


# ---- what the cluster says of itself ----

def nodes(c):
    """The participants as the leader sees them, by id, and what it says of tablets."""
    for node in c.coordinators:
        if not node.alive():
            continue
        try:
            data = ask(node.http, "GET", "/api/nodes", timeout=10).json()
            if data["code"] == 0:
                return {n["id"]: n for n in data["data"]["nodes"]}, data["data"]
        except BROKEN:
            pass
    return None, None


def order(c, verb, node, refused=False):
    answer = ask(c.any(), "POST", f"/api/nodes/{node}/{verb}").json()
    check((answer["code"] != 0) == refused, verb, node, answer)
    return answer["data"]


def settled(c, want):
    """Nothing moves, all copies are good, and want(nodes) holds."""
    def look():
        found, all_ = nodes(c)
        return (found is not None and all_["tablets_moving"] == 0 and all_["tablets_low"] == 0 and
                all_["replicas_behind"] == 0 and want(found))
    try:
        until("the tablets are where they should be", look, WAIT_S)
    except tide.Failed as error:
        raise tide.Failed(f"{error}: {nodes(c)[1]}") from error


def even(found, among):
    """Each of `among` has its share of all copies, give or take one, and the others nothing."""
    counts = [found[i]["tablets"] if i in found else -1 for i in among]
    others = [n["tablets"] for i, n in found.items() if i not in among]
    return max(counts) - min(counts) <= 1 and min(counts) > 0 and not any(others)


def held(node):
    """Tablets of which a participant has versions."""
    return ask(node.http, "GET", "/api/_tablets").text().count('"tablet":')


def data_is_gone(c):
    """What a participant holds on its disk is what the placement says, nothing more."""
    def look():
        found, _ = nodes(c)
        return found is not None and all(
            held(p) == found[i]["tablets"] for i, p in by_id(c).items()
            if i in found and p.alive())
    until("moved tablets are gone from the disks", look, WAIT_S)


def by_id(c):
    return {int(p.name.rsplit("-", 1)[1]): p for p in c.participants}


# ---- loads while all this goes on ----

class Work:
    """Loaders that repeat a load under its label until they know how it ended. Counts what was
    acknowledged; and a watcher that looks at the copies all the time."""

    def __init__(self, c, faults=False):
        self.c = c
        self.faults = faults  # nodes are killed: loads may fail, copies may be behind
        self.stop = threading.Event()
        self.rows = {"t": set(), "u": set()}
        self.lost = []  # what should not have happened
        self.begun = set()  # transactions that a loader left behind when it met a fault
        self.samples = 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.loop, args=(i, work), daemon=True)
                        for i, work in enumerate((self.plain, self.two_phase, self.explicit))]
        self.threads.append(threading.Thread(target=self.watch, daemon=True))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout=120)
            if thread.is_alive():
                self.lost.append("a loader hangs")
        for label in self.begun:
            if self.state(label) in ("PREPARE", "PRECOMMITTED"):
                ask(self.c.any(), "PUT", "/api/d/_stream_load_2pc", b"",
                    {"txn_operation": "abort", "label": label})

    def loop(self, number, work):
        turn = 0
        while not self.stop.is_set():
            turn += 1
            try:
                work(number, turn)
            except BROKEN as error:
                if not self.faults:
                    self.lost.append(f"{work.__name__} {turn}: {error}")
                time.sleep(0.1)
            time.sleep(0.01)

    def keep(self, table, keys):
        with self.lock:
            self.rows[table].update(keys)

    @staticmethod
    def body(keys):
        return b"".join(b"%d,%s\n" % (key, b"x" * 40) for key in keys)

    def put(self, table, keys, headers):
        return ask(self.c.any(), "PUT", f"/api/d/{table}/_stream_load", self.body(keys),
                   {"column_separator": ",", "Expect": "100-continue", **headers}, 60).json()

    def state(self, label):
        def known():
            try:
                return self.c.state(label)
            except BROKEN:
                return None
        return until(f"the state of {label}", known, WAIT_S, 0.2)

    def plain(self, number, turn):
        label, keys = f"p{turn}", range(number * 10**7 + turn * 20, number * 10**7 + turn * 20 + 20)
        for _ in range(200):
            try:
                answer = self.put("t", keys, {"label": label})
            except BROKEN:
                answer = {"Status": "no answer"}
            if answer["Status"] in ("Success", "Publish Timeout"):
                self.keep("t", keys)
                return
            if answer["Status"] == "Label Already Exists" and self.state(label) in (
                    "VISIBLE", "COMMITTED"):
                self.keep("t", keys)
                return
            if answer["Status"] == "Fail" and not self.faults:
                self.lost.append(f"{label}: {answer}")
            time.sleep(0.2)
        self.lost.append(f"{label} never ended")

    def finish(self, label, txn, operation):
        for _ in range(200):
            try:
                answer = self.c.end_txn(txn, operation)
                if answer["status"] == "Success" or "already" in answer["msg"]:
                    return self.state(label) in ("VISIBLE", "COMMITTED")
                if not self.faults:
                    self.lost.append(f"{operation} of {label}: {answer}")
                if "not found" in answer["msg"] or "aborted" in answer["msg"]:
                    return False
            except BROKEN:
                pass
            time.sleep(0.2)
        self.lost.append(f"{label} is never finished")
        return False

    def two_phase(self, number, turn):
        label, keys = f"q{turn}", range(number * 10**7 + turn * 20, number * 10**7 + turn * 20 + 20)
        self.begun.add(label)
        answer = self.put("u", keys, {"label": label, "two_phase_commit": "true"})
        if answer["Status"] != "Success":
            if not self.faults:
                self.lost.append(f"{label}: {answer}")
            return
        time.sleep(0.3)
        if self.finish(label, answer["TxnId"], "commit"):
            self.keep("u", keys)
            self.begun.discard(label)
        elif not self.faults:
            self.lost.append(f"{label} was precommitted and could not be committed")

    def explicit(self, number, turn):
        label, base = f"e{turn}", number * 10**7 + turn * 40
        self.begun.add(label)
        begun = ask(self.c.any(), "PUT", "/api/d/_stream_load_2pc", b"",
                    {"txn_operation": "begin", "label": label}).json()
        if begun["status"] != "Success":
            return
        parts = [("t", range(base, base + 20)), ("u", range(base + 20, base + 40))]
        for table, keys in parts:
            answer = self.put(table, keys, {"txn_id": str(begun["txn_id"]),
                                            "two_phase_commit": "true"})
            if answer["Status"] != "Success":
                if not self.faults:
                    self.lost.append(f"{label}: {answer}")
                self.finish(label, begun["txn_id"], "abort")
                return
            time.sleep(0.2)
        if self.finish(label, begun["txn_id"], "commit"):
            for table, keys in parts:
                self.keep(table, keys)
            self.begun.discard(label)
        elif not self.faults:
            self.lost.append(f"{label} could not be committed")

    def watch(self):
        """A tablet may lack a copy that missed a write, never one that a move took away."""
        while not self.stop.is_set():
            found, all_ = nodes(self.c)
            if found is not None:
                self.samples += 1
                missed = sum(n["behind"] - n["joining"] for n in found.values())
                if all_["tablets_low"] > 0 and missed == 0 and not self.faults:
                    self.lost.append(f"too few good copies: {all_}")
            time.sleep(0.03)

    def check(self, least=3):
        check(not self.lost, *self.lost[:5])
        check(self.samples > 10, "the copies were looked at", self.samples, "times")
        for table, keys in self.rows.items():
            check(len(keys) >= least, f"only {len(keys)} rows were loaded into {table}")
            for node in [p for p in self.c.participants if p.alive()]:
                read = {int(row[0]) for row in until_read(self.c, table, node)}
                missing = keys - read
                check(not missing, f"{len(missing)} acknowledged rows of {table} are missing at "
                      f"{node.name}, one of them {min(missing, default=None)}")


def until_read(c, table, node):
    def read():
        try:
            return [c.read(table, node=node.http)]
        except BROKEN:
            return None
    return until(f"{node.name} reads {table}", read, 30)[0]


def cluster(participants=3, participant=(), coordinator=()):
    c = tide.Cluster(3, participants,
                     coordinator=["participant_lease_ms=1500", *coordinator],
                     participant=["heartbeat_ms=100", *participant])
    c.sql("CREATE DATABASE d")
    for name in ("t", "u"):
        c.table(name, "k INT, v VARCHAR(64)", "UNIQUE", BUCKETS)
    return c


def fill(c, rows=20000):
    """Enough that a clone of it takes a while where clones are slow."""
    for name in ("t", "u"):
        c.good(name, b"".join(b"%d,%040d\n" % (k, k * 7919) for k in range(-rows, 0)),
               {"column_separator": ","})


# ---- the cases ----

def tablets_move_to_new_participants_and_off_one_that_leaves_under_load():
    with cluster() as c:
        with Work(c) as work:
            time.sleep(1)
            c.grow()
            c.grow()
            settled(c, lambda found: even(found, (1, 2, 3, 4, 5)))
            order(c, "decommission", 2)
            settled(c, lambda found: found[2]["state"] == "decommissioned" and
                    even(found, (1, 3, 4, 5)))
            backends = ask(c.any(), "GET", "/api/backends?is_alive=true").json()["data"]["backends"]
            gone = by_id(c)[2].http.rsplit(":", 1)[1]
            check(all(str(b["http_port"]) != gone for b in backends), backends)
            data_is_gone(c)
            equal(held(by_id(c)[2]), 0, "tablets of a decommissioned participant")
            until("its last load ends", lambda: nodes(c)[0][2]["live_loads"] == 0, 30)
            by_id(c)[2].end(signal.SIGTERM)
            order(c, "drop", 2)
            check(2 not in nodes(c)[0], "it is still there")
            time.sleep(0.5)
        settled(c, lambda found: even(found, (1, 3, 4, 5)))
        work.check()


def orders_that_would_lose_copies_are_refused():
    with cluster() as c:
        c.good("t", b"1,a\n", {"column_separator": ","})
        check("replication_num 3" in order(c, "decommission", 1, refused=True))
        check("is alive" in order(c, "drop", 1, refused=True))
        check("no participant 9" in order(c, "drop", 9, refused=True))
        check("not decommission" in order(c, "paint", 1, refused=True))
        c.sql("DROP TABLE u", "d")
        c.table("one", "k INT", buckets=3, replicas=1)
        c.good("one", b"".join(b"%d\n" % k for k in range(50)))
        by_id(c)[3].end()
        until("it counts as dead", lambda: not nodes(c)[0][3]["alive"], 30)
        check("without a good replica" in order(c, "drop", 3, refused=True))
        c.sql("DROP TABLE one", "d")
        order(c, "drop", 3)
        time.sleep(1)
        equal(nodes(c)[1]["tablets_low"], BUCKETS, "tablets that lack a copy")
        c.good("t", b"2,b\n", {"column_separator": ","})
        # Its directory is not taken back.
        by_id(c)[3].start(wait=False)
        equal(by_id(c)[3].wait_gone(60), 3, "exit status of a dropped participant")
        c.grow()
        settled(c, lambda found: found[4]["tablets"] == BUCKETS)
        equal(c.read("t"), [["1", "a"], ["2", "b"]], "rows")


def uploads_and_transactions_begun_before_a_move_end_well():
    with cluster() as c:
        fill(c, 2000)
        sock = raw_open(by_id(c)[1].http)
        first, rest = b"1,before\n" * 1000, b"2,after\n" * 1000
        sock.sendall(raw_head("PUT", "/api/d/t/_stream_load",
                              {"label": "slow", "column_separator": ",",
                               "Content-Length": len(first) + len(rest)}) + first)
        precommitted = c.load("u", b"7,kept\n", {"column_separator": ",", "label": "kept",
                                                 "two_phase_commit": "true"})
        equal(precommitted["Status"], "Success", "precommit")
        until("the upload is known", lambda: c.state("slow") == "PREPARE", 30)
        c.grow()
        order(c, "decommission", 3)
        # New copies are made; the old ones stay for the two: all that the upload may still write
        # to, and the one that got the precommitted row.
        until("the move waits for a transaction",
              lambda: nodes(c)[0][3]["waits_for_txn"] is not None and
              nodes(c)[0][4]["joining"] == 0 and nodes(c)[0][4]["tablets"] == 2 * BUCKETS and
              nodes(c)[0][3]["tablets"] == BUCKETS + 1, WAIT_S)
        time.sleep(1)
        equal(nodes(c)[0][3]["tablets"], BUCKETS + 1, "tablets that wait")
        sock.sendall(rest)
        answer = raw_answer(sock).json()
        equal(answer["Status"], "Success", answer["Message"])
        equal(c.end_txn(precommitted["TxnId"], "commit")["status"], "Success", "commit")
        settled(c, lambda found: found[3]["state"] == "decommissioned")
        data_is_gone(c)
        by_id(c)[3].end()
        rows = {row[0]: row[1] for row in c.read("t") + c.read("u") if int(row[0]) > 0}
        equal(rows, {"1": "before", "2": "after", "7": "kept"}, "rows")


def nodes_die_in_the_middle_of_moves():
    with cluster(participant=["clone_bytes_per_s=100k"]) as c:
        fill(c)
        with Work(c, faults=True) as work:
            c.grow()
            until("a move is under way", lambda: nodes(c)[1]["tablets_moving"] > 0, WAIT_S)
            for victim in (by_id(c)[4], c.leader(), by_id(c)[2], c.leader(), by_id(c)[4]):
                until("a move is under way, or all is done",
                      lambda: (nodes(c)[1] or {"tablets_moving": 0})["tablets_moving"] > 0 or
                      (nodes(c)[0] or {}).get(4, {"tablets": 0})["tablets"] >= 11, WAIT_S)
                time.sleep(0.3)
                victim.end()
                time.sleep(2)
                victim.start()
            for node in c.participants:
                node.set_option("clone_bytes_per_s", "64m")
            for node in c.participants:
                node.end(signal.SIGTERM)
                node.start()
                until("it is alive", lambda: nodes(c)[0] is not None, 30)
        settled(c, lambda found: even(found, (1, 2, 3, 4)))
        work.check()
        data_is_gone(c)


def a_dead_participant_is_replaced_after_a_while():
    with cluster(4, coordinator=["replace_dead_after_s=3"]) as c:
        with Work(c, faults=True) as work:
            time.sleep(1)
            by_id(c)[2].end()
            settled(c, lambda found: not found[2]["alive"] and found[2]["tablets"] == 0)
        order(c, "drop", 2)
        settled(c, lambda found: even(found, (1, 3, 4)))
        work.check()


if __name__ == "__main__":
    tide.run([orders_that_would_lose_copies_are_refused,
              uploads_and_transactions_begun_before_a_move_end_well,
              tablets_move_to_new_participants_and_off_one_that_leaves_under_load,
              nodes_die_in_the_middle_of_moves,
              a_dead_participant_is_replaced_after_a_while])
