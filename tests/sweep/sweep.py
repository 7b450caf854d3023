#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets a program's n-th allocation, write, sync, truncation or opening of a file fail, or kills it
there, for many n, and looks whether it ends cleanly or goes on, and whether all that was
acknowledged is there after a restart.

  tests/sweep/sweep.py --bin build/bin --target participant --points 30 --seed 1
  tests/sweep/sweep.py --target coordinator --kinds alloc --points all

A first, undisturbed life of the program tells its call sites. A point is a site (or the n-th call of
a kind) and a way to fail: once, for ever after, with EIO or ENOSPC, by SIGKILL before the call or in
the middle of a write."""

import argparse
import collections
import errno
import os
import random
import shutil
import sys
import tempfile
import time

from clients import DB, Book, Client, Load, check_all, check_scan, make_table, patient_scan
from clients import statement
from cluster import SIGNALS, Cluster, Hang, wait_for, wire
from control import COUNT, FAIL, KILL, KINDS, TORN, Control, fixed_addresses

START_S = 30
HEAL_S = 60
ANSWER_S = 20  # no request may take longer
TABLE_POINTS = 12
CLEAN = {0, 1, 70, 71}  # stopped; could not start; the disk failed; no memory


class Point(collections.namedtuple("Point", "action kind site n forever error")):
    def words(self):
        what = {FAIL: "fails", KILL: "killed", TORN: "killed half-way"}[self.action]
        if self.action == FAIL and self.kind != "alloc":
            what += " " + errno.errorcode[self.error]
        where = f"site {self.site:016x}" if self.site else "any site"
        return f"{self.kind} {self.n} at {where} {what}{' for ever' if self.forever else ''}"

    def group(self):
        what = {FAIL: "once", KILL: "kill", TORN: "torn"}[self.action]
        return self.kind, "ever" if self.forever else what


class Sweep:
    def __init__(self, options, directory):
        self.options = options
        self.random = random.Random(options.seed)
        self.cluster = Cluster(
            options.bin,
            directory,
            options.coordinators,
            3,
            [
                "coordinator:participant_lease_ms=1000",
                "coordinator:snapshot_bytes=1m",
                "coordinator:disk_reserve_bytes=1m",
                "participant:disk_reserve_bytes=1m",
                "participant:heartbeat_ms=200",
            ],
        )
        self.target = {
            "coordinator": self.cluster.coordinators,
            "participant": self.cluster.participants,
        }[options.target][0]
        self.others = [node for node in self.cluster.nodes if node is not self.target]
        self.control = Control(os.path.join(directory, "shim"), os.path.abspath(options.shim))
        self.book = None
        self.client = None
        self.lives = 0
        self.table = collections.Counter()
        self.bad = 0

    # ---- one life ----

    def fresh_table(self):
        if self.book is not None:
            for name in (self.book.table, self.book.table + "one"):
                statement(self.cluster.coordinators, f"DROP TABLE IF EXISTS {name}")
        self.book = Book(f"t{self.lives}")
        self.client = Client(self.cluster, self.book, self.lives)
        make_table(self.cluster, self.book.table, 3)
        make_table(self.cluster, self.book.table + "one", 2, 1)

    def step(self, faults, name, do):
        """One thing a client does. It may fail, but is answered, or the connection ends."""
        begin = time.monotonic()
        try:
            do()
        except (wire.Broken, Hang, RuntimeError, KeyError, TypeError, ValueError):
            pass
        took = time.monotonic() - begin
        if took > ANSWER_S and self.target.runs():
            faults.append(f"{name} took {took:.0f} s")

    def operate(self, load, operation, node):
        for _ in range(3):
            try:
                if self.client.operate(load, operation, node):
                    return
            except wire.Broken:
                time.sleep(0.05)

    def two_phase(self, operation, node):
        load = self.book.new()
        if self.client.upload(load, True, node, timeout=8)[0] == "Success":
            self.operate(load, operation, node)

    def live(self, sticky):
        """What its clients do with a program; sentences about what should not be."""
        cluster, client, book = self.cluster, self.client, self.book
        home = self.target if self.target.role == "participant" else cluster.participants[0]
        away = cluster.participants[1]
        faults = []

        def load(node, **how):
            client.upload(book.new(), node=node, timeout=8, **how)

        def ddl():
            name = f"x{self.lives}"
            statement(cluster.coordinators[:1], f"CREATE DATABASE IF NOT EXISTS d{name}", "", 5)
            statement(cluster.coordinators[:1], "SHOW TABLES", seconds=5)
            statement(cluster.coordinators[:1], f"DROP DATABASE IF EXISTS d{name}", "", 5)

        def other_table(node):
            one = Client(cluster, Book(book.table + "one"), 1)
            one.upload(Load(1, f"{book.table}-one-{random.random()}"), node=node, timeout=8)

        def get(node, path):
            wire.get_following(node.http, path, ANSWER_S)

        table = f"/api/{DB}/{book.table}"
        steps = [
            ("ddl", ddl),
            ("load", lambda: load(home)),
            ("json", lambda: load(home, as_json=True)),
            ("load elsewhere", lambda: load(away)),
            ("commit", lambda: self.two_phase("commit", home)),
            ("abort", lambda: self.two_phase("abort", home)),
            ("commit elsewhere", lambda: self.two_phase("commit", away)),
            ("one copy", lambda: other_table(home)),
            ("scan", lambda: get(home, f"{table}/_scan?format=csv")),
            ("scan elsewhere", lambda: get(away, f"{table}one/_scan?format=json")),
            ("scan of others", lambda: get(home, f"{table}one/_scan?format=json&order=key")),
            ("version", lambda: get(home, f"{table}/_scan?format=csv&version=1")),
            ("changes", lambda: get(home, f"{table}/_changes?after=0&limit=5")),
            ("timeline", lambda: get(self.target, f"/api/{DB}/_timeline?limit=5")),
            ("cluster", lambda: get(self.target, "/api/cluster")),
            ("metrics", lambda: get(self.target, "/metrics")),
            ("tablets", lambda: get(self.target, "/api/_tablets")),
        ]
        for name, do in steps:
            if not self.target.runs() or (sticky and self.control.hits > 200):
                break
            self.step(faults, name, do)
        if not sticky and self.target.runs():

            def whole():
                return not self.target.runs() or cluster.behind() == 0

            self.step(faults, "repair", lambda: wait_for("repair", ANSWER_S + 1, whole))
        return faults

    def life(self, order):
        """From start to stop under the shim: (exit status, its log, faults)."""
        self.lives += 1
        faults = []
        sticky = order.get("forever", False)
        self.target.terminate()
        if self.lives % TABLE_POINTS == 1 or self.book is None:
            self.target.start()
            self.cluster.wait_serves()
            self.fresh_table()
            self.target.terminate()
        if self.target.role == "participant":
            # What the target misses, so that it has to be repaired.
            for _ in range(2):
                self.client.upload(self.book.new(), node=self.cluster.participants[1], timeout=20)
        size = self.target.log_size()
        self.control.order(**order)
        self.target.start(self.control.env(), fixed_addresses)
        try:
            wait_for("start", START_S, lambda: not self.target.runs() or self.target.healthy())
        except Hang:
            if not sticky:
                faults.append(f"neither serves nor ends within {START_S} s")
        faults += self.live(sticky)
        try:
            status = self.target.terminate()
        except Hang as hang:
            faults.append(str(hang))
            status = None
        return status, self.target.log_since(size), faults

    def verify(self):
        """After a restart without the shim: what was acknowledged is there, on every node."""
        faults = []
        self.target.start()
        try:
            self.cluster.wait_serves(HEAL_S)
        except Hang as hang:
            return [f"after the restart: {hang}"]
        must = [self.book.told(what) for what in ("visible", "committed", "aborted")]
        for node in self.cluster.participants:
            faults += check_scan(node, self.book, *must)
        return faults

    def verify_all(self):
        faults = check_all(self.cluster, self.book, self.lives)
        patient_scan(self.cluster.participants[2], self.book.table)
        return faults + self.cluster.compare()

    # ---- points ----

    def judge(self, point, status, log, faults):
        faults = list(faults)
        killed = point.action != FAIL
        if status is not None and status < 0 and not (killed and status == -9):
            faults.append(f"ended by {SIGNALS.get(-status, -status)}")
        elif status is not None and status > 0 and status not in CLEAN:
            if not (status == 2 and "memory" in log):
                faults.append(f"ended with {status}")
        for line in log.splitlines():
            if "check failed" in line or "Assertion" in line or "corrupted" in line:
                faults.append(line)
            if "store damaged" in line or "store hole" in line or "chain_dropped" in line:
                faults.append(line)
        # A disk that fails a write or a sync is not believed any more. (At its start raft only tries
        # what the disk can; later its syncs are of what it makes ready, whose failure shows later.)
        final = ["write", "sync"]
        if self.target.role == "coordinator":
            final = ["write"] if 0 <= log.find("started id=") < log.find("shim:") else []
        if point.action == FAIL and point.error == errno.EIO and point.kind in final:
            if self.control.hits > 0 and status == 0:
                faults.append("went on after EIO")
        if status in (1, 70, 71, 2) and "ERROR" not in log and "memory" not in log:
            faults.append(f"ended with {status} without a word")
        return faults

    def play(self, point):
        order = point._asdict()
        order["kinds"] = [order.pop("kind")]
        status, log, faults = self.life(order)
        hits = self.control.hits
        faults = self.judge(point, status, log, faults)
        try:
            faults += self.verify()
            if self.lives % TABLE_POINTS == 0 and not faults:
                faults += self.verify_all()
        except (wire.Broken, RuntimeError, AssertionError) as error:
            faults.append(f"after the restart: {error}")
        if hits == 0:
            outcome = "untouched"
        elif status is None:
            outcome = "hang"
        else:
            outcome = {0: "went on", 1: "no start", 2: "no start"}.get(status, f"status {status}")
        self.table[point.group() + (outcome,)] += 1
        if faults or self.options.verbose:
            print(f"{'BAD' if faults else 'ok '} {point.words()}: {outcome}", flush=True)
        if faults or self.options.verbose:
            for line in faults:
                print(f"    {line}")
            for line in log.splitlines():
                if line.startswith("shim:") or "ERROR" in line or "out of memory" in line:
                    print(f"    | {line[:400]}")
        if faults:
            self.bad += 1
            with open(self.options.bad_points, "a", encoding="utf-8") as file:
                print(repr(tuple(point)), file=file)
            sys.stdout.flush()
        return not faults

    def sites(self):
        """The call sites of an undisturbed life: {site: (kind, how often)}."""
        status, log, faults = self.life({"kinds": KINDS, "record": True, "action": COUNT})
        if status != 0 or faults:
            raise RuntimeError(f"an undisturbed life ends with {status}: {faults} {log[-600:]}")
        faults = self.verify()
        if faults:
            raise RuntimeError(f"after an undisturbed life: {faults}")
        return self.control.sites(), self.control.counts

    def points(self, sites, counts):
        """All points, or as many as asked for, evenly over kinds and ways."""
        found = []
        for site, (kind, count) in sorted(sites.items()):
            if kind not in self.options.kinds:
                continue
            errors = [errno.ENOMEM] if kind == "alloc" else [errno.EIO, errno.ENOSPC]
            for error in errors:
                found.append(Point(FAIL, kind, site, 1, False, error))
                found.append(Point(FAIL, kind, site, 1, True, error))
                if count > 1:
                    n = self.random.randint(2, count)
                    found.append(Point(FAIL, kind, site, n, False, error))
        for kind in set(self.options.kinds) & {"write", "sync", "truncate", "name"}:
            for n in range(1, counts[kind] + 1):
                found.append(Point(KILL, kind, 0, n, False, 0))
                if kind == "write":
                    found.append(Point(TORN, kind, 0, n, False, 0))
        if self.options.points == "all":
            return found
        groups = {}
        for point in found:
            groups.setdefault(point.group(), []).append(point)
        chosen = []
        for group in groups.values():
            self.random.shuffle(group)
        while len(chosen) < int(self.options.points) and any(groups.values()):
            for group in groups.values():
                if group and len(chosen) < int(self.options.points):
                    chosen.append(group.pop())
        return chosen

    def run(self):
        self.cluster.start()
        self.cluster.wait_serves()
        self.lives = 0
        sites, counts = self.sites()
        if self.options.again:
            with open(self.options.again, encoding="utf-8") as file:
                points = [Point(*eval(line)) for line in file]  # pylint: disable=eval-used
        else:
            points = self.points(sites, counts)
        kinds = collections.Counter(kind for kind, _ in sites.values())
        print(
            f"{self.options.target}: a life has "
            + ", ".join(f"{counts[k]} {k} at {kinds[k]} sites" for k in KINDS)
            + f"; {len(points)} points",
            flush=True,
        )
        begin = time.monotonic()
        for point in points:
            if not self.play(point) and not self.target.runs():
                self.target.start()
        if self.bad == 0:
            faults = self.verify_all()
            self.bad += bool(faults)
            print("\n".join(faults))
        print(f"seed {self.options.seed}: {len(points)} points in {time.monotonic() - begin:.0f} s,"
              f" {self.bad} bad")
        for key, count in sorted(self.table.items()):
            print(f"  {key[0]:9} {key[1]:5} {key[2]:12} {count}")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(here, "..", "..", "build", "bin"))
    parser.add_argument("--target", default="participant", choices=["participant", "coordinator"])
    parser.add_argument("--coordinators", type=int, default=1)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--points", default="30")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--shim", help="default: BIN/tests/libtidegate_shim.so")
    parser.add_argument("--again", help="a file of points, as --bad-points writes it")
    parser.add_argument("--bad-points", default=os.devnull)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.shim = options.shim or os.path.join(options.bin, "tests", "libtidegate_shim.so")
    directory = tempfile.mkdtemp(prefix="tidegate-sweep-")
    sweep = None
    try:
        sweep = Sweep(options, os.path.join(directory, "cluster"))
        sweep.run()
    finally:
        if sweep is not None:
            sweep.cluster.close()
        if sweep is not None and sweep.bad:
            print(f"what is left: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 1 if sweep.bad else 0


if __name__ == "__main__":
    sys.exit(main())
