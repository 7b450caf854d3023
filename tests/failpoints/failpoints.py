#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a node at every named failpoint, under load, and checks that nothing acknowledged is lost.

    tests/failpoints/failpoints.py --bin build-failpoints/bin [--kills N] [--seed S] [--only NAME]

The programs must be built with FAILPOINTS=ON. Each kill: arm a failpoint in one process, wait until
it is dead, start it again, see the cluster serve. At the end every row that was acknowledged is
there once, no row of an aborted load is, versions have no hole, and a follower of the changes that
kept only whole answers has seen each row once. N defaults to the environment's FAILPOINT_KILLS, or
to once for each failpoint. Ends with status 1, and leaves the directory, if anything does not hold.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "chaos"))
import wire  # noqa: E402

DB = "fp"
BUCKETS = 4
ROWS = 6
HIT_S = 90  # until an armed failpoint must have been hit
SERVE_S = 60  # until the cluster must serve again, and until all outcomes must be known
PAD = "x" * 10

# Name -> (whose process is killed, the highest number of the hit, the action).
POINTS = {
    "recv.mid_body": ("participant", 3, "kill"),
    "part.rowset_written_before_fsync": ("participant", 9, "kill"),
    "part.prepared_before_reply": ("participant", 5, "kill"),
    "part.bind_before_commit": ("participant", 5, "kill"),
    "part.bind_after_commit_before_reply": ("participant", 5, "kill"),
    "gc.after_scan": ("participant", 2, "kill"),
    "gc.mid_delete": ("participant", 2, "kill"),
    "feed.cursor_saved": ("participant", 3, "kill"),
    "coord.precommit_applied": ("leader", 4, "kill"),
    "coord.commit_proposed": ("leader", 9, "kill"),
    "coord.commit_applied_before_reply": ("leader", 4, "kill"),
    "coord.visible_proposed": ("leader", 4, "kill"),
    "snapshot.mid_write": ("coordinator", 1, "later"),
    "snapshot.installed_before_segment_delete": ("installed", 1, "kill"),
}
# What must do no harm but delay or refuse: (name, action, whose process).
NUDGES = [
    ("part.rowset_written_before_fsync", "error", "participant"),
    ("part.bind_before_commit", "hold:1500", "participant"),
    ("coord.commit_proposed", "hold:1500", "leader"),  # longer than an election takes
]


class Failed(Exception):
    """Something that had to happen did not."""


def wait_for(what, seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise Failed(f"{what}: not within {seconds} s")


class Node:
    """One process of the cluster; after its first death a child of this one."""

    def __init__(self, role, entry, directory, binaries):
        self.role = role
        self.name = f"{role}-{entry['id']}"
        self.http = entry["http"]
        self.pid = entry["pid"]
        self.directory = os.path.join(directory, self.name)
        self.binary = os.path.join(binaries, f"tidegate-{role}")
        self.child = None

    def alive(self):
        if self.child is not None:
            return self.child.poll() is None
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
                state = stat.read().rsplit(")", 1)[1].split()[0]
            # Its first thread may be gone while another one still holds its files open.
            return state != "Z" or len(os.listdir(f"/proc/{self.pid}/task")) > 1
        except FileNotFoundError:
            return False

    def kill(self):
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        wait_for(f"the end of {self.name}", SERVE_S, lambda: not self.alive())

    def start(self):
        config = os.path.join(self.directory, f"{self.role}.conf")
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.child = subprocess.Popen([self.binary, "--config", config],
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True)
        self.pid = self.child.pid

    def log_tail(self, lines=12):
        path = os.path.join(self.directory, "log")
        with open(path, encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-lines:])


class Nodes:
    """Three coordinators and three participants, started by the tool."""

    def __init__(self, binaries, directory):
        subprocess.run([os.path.join(binaries, "tidegate"), "cluster", "start", "--dir", directory,
                        "--port-offset", "auto", "--coordinator-option", "snapshot_bytes=64k",
                        "--participant-option", "disk_reserve_bytes=0"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(directory, "cluster.json"), encoding="utf-8") as file:
            entries = json.load(file)
        self.coordinators = [Node("coordinator", entry, directory, binaries)
                             for entry in entries["coordinators"]]
        self.participants = [Node("participant", entry, directory, binaries)
                             for entry in entries["participants"]]
        self.all = self.coordinators + self.participants

    def leader(self):
        for node in self.coordinators:
            try:
                answer = wire.ask(node.http, "GET", "/metrics", timeout=2)
            except wire.Broken:
                continue
            if b"\ntidegate_raft_is_leader 1\n" in answer.body:
                return node
        return None

    def close(self):
        for node in self.all:
            node.kill()


class Load:
    def __init__(self, number, kind):
        self.number = number
        self.kind = kind
        self.label = f"l{number}"
        self.outcome = None  # "committed", "aborted", or None: not told
        self.acked = False  # an answer said committed


class Client(threading.Thread):
    """Loads without an end; remembers what it was told."""

    def __init__(self, run, seed):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(seed)

    def run(self):
        while not self.run_.stop.is_set():
            kind = self.random.choice(["plain", "plain", "commit", "abort"])
            load = self.run_.next_load(kind)
            try:
                self.one(load)
            except wire.Broken:
                time.sleep(0.1)
            time.sleep(self.random.random() * 0.02)

    def one(self, load):
        node = self.random.choice(self.run_.nodes.participants).http
        pad = PAD
        if load.kind == "abort" and load.number % 2 == 0:
            pad = self.random.randbytes(15000).hex()  # content in extents of its own
        rows = "".join(f"{load.number},{i},{pad}\n" for i in range(ROWS))
        headers = {"label": load.label, "column_separator": ","}
        if load.kind != "plain":
            headers["two_phase_commit"] = "true"
        answer = wire.ask(node, "PUT", f"/api/{DB}/t/_stream_load", headers, rows.encode()).json()
        if answer["Status"] == "Fail":
            load.outcome = "aborted"
        if answer["Status"] not in ("Success", "Publish Timeout"):
            return
        if load.kind == "plain":
            load.acked = True
            return
        headers = {"txn_id": answer["TxnId"], "txn_operation": load.kind}
        answer = wire.ask(self.random.choice(self.run_.nodes.coordinators).http, "PUT",
                          f"/api/{DB}/_stream_load_2pc", headers).json()
        if answer["status"] == "Success":
            load.acked = load.kind == "commit"
            load.outcome = "aborted" if load.kind == "abort" else load.outcome


class Puller(threading.Thread):
    """Follows the changes; moves on only with an answer that came whole."""

    def __init__(self, run, seed):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(seed)
        self.position = "after=0"
        self.rows = []

    def run(self):
        while not self.run_.stop.is_set():
            self.pull(self.random.choice([3, 20, 1000]))
            time.sleep(0.05)

    def pull(self, limit):
        node = self.random.choice(self.run_.nodes.participants).http
        query = f"{self.position}&columns=k,b&limit={limit}"
        try:
            answer = wire.ask(node, "GET", f"/api/{DB}/t/_changes?{query}")
        except wire.Broken:
            return None
        if answer.status != 200:
            return None
        rows = [json.loads(line) for line in answer.body.splitlines()]
        self.rows += rows
        self.position = f"token={answer.headers['x-tidegate-token']}"
        return len(rows)


class Run:
    def __init__(self, binaries, directory, seed):
        self.random = random.Random(seed)
        self.armed = os.path.join(directory, "armed")
        os.environ["TIDEGATE_FAILPOINTS"] = self.armed
        self.disarm()
        self.nodes = Nodes(binaries, os.path.join(directory, "cluster"))
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.loads = []
        self.kills = {}

    def next_load(self, kind):
        with self.lock:
            load = Load(len(self.loads) + 1, kind)
            self.loads.append(load)
        return load

    def statement(self, text, db=DB):
        body = json.dumps({"stmt": text}).encode()
        path = f"/api/query/default_cluster/{db}".rstrip("/")

        def answered():
            try:
                node = self.random.choice(self.nodes.coordinators).http
                return wire.ask(node, "POST", path, body=body).json()["code"] == 0
            except wire.Broken:
                return False

        wait_for(text, SERVE_S, answered)

    # ---- arming ----

    def arm(self, name, action, number, pid=None):
        line = f"{name} {action} {number}" + (f" {pid}" if pid else "")
        with open(self.armed + ".new", "w", encoding="utf-8") as file:
            file.write(f"{line}\n# {self.random.random()}\n")
        os.rename(self.armed + ".new", self.armed)

    def disarm(self):
        with open(self.armed, "w", encoding="utf-8"):
            pass

    def metric(self, node, name):
        try:
            text = wire.ask(node.http, "GET", "/metrics", timeout=2).body.decode()
        except wire.Broken:
            return 0
        values = [line.split()[1] for line in text.splitlines() if line.startswith(name + " ")]
        return int(float(values[0])) if values else 0

    def serve(self):
        """A load of each participant, answered as a success, after all dead nodes were started."""
        self.disarm()
        for node in self.nodes.all:
            if not node.alive():
                node.start()
        for node in self.nodes.participants:
            wait_for(f"a load through {node.name}", SERVE_S, lambda node=node: self.probe(node))

    def probe(self, node):
        load = self.next_load("plain")
        rows = "".join(f"{load.number},{i},{PAD}\n" for i in range(ROWS))
        headers = {"label": load.label, "column_separator": ","}
        try:
            answer = wire.ask(node.http, "PUT", f"/api/{DB}/t/_stream_load", headers,
                              rows.encode()).json()
        except wire.Broken:
            return False
        load.acked = answer["Status"] in ("Success", "Publish Timeout")
        return answer["Status"] == "Success"

    def victim_of(self, whose):
        if whose == "participant":
            return self.random.choice(self.nodes.participants)
        if whose == "leader":
            return wait_for("a leader", SERVE_S, self.nodes.leader)
        return self.random.choice(self.nodes.coordinators)

    def kill_at(self, name):
        whose, most, action = POINTS[name]
        number = self.random.randint(1, most)
        if whose == "installed":
            victim = self.fall_behind()
            has_one = any(file.startswith("snapshot-") and not file.endswith(".meta")
                          for file in os.listdir(os.path.join(victim.directory, "data")))
            number = 2 if has_one else 1  # the first is the node's own, at its start
            self.arm(name, "kill", number)
            victim.start()
        else:
            victim = self.victim_of(whose)
            if action == "later":
                action = f"later:{self.random.randint(0, 10)}"
            self.arm(name, action, number, victim.pid)
        try:
            wait_for(f"{victim.name} killed at {name}, hit {number}", HIT_S,
                     lambda: not victim.alive())
        finally:
            self.disarm()
        if f"failpoint {name} " not in victim.log_tail(40):
            raise Failed(f"{victim.name} ended, but not at {name}:\n{victim.log_tail()}")
        self.kills[name] = self.kills.get(name, 0) + 1
        self.serve()

    def nudge(self, name, action, whose):
        victim = self.victim_of(whose)
        self.arm(name, action, 2, victim.pid)
        wait_for(f"{action} at {name} in {victim.name}", HIT_S,
                 lambda: f"failpoint {name} {action}" in victim.log_tail(200))
        if not victim.alive():
            raise Failed(f"{victim.name} ended after {action} at {name}:\n{victim.log_tail()}")
        self.serve()

    def fall_behind(self):
        """A follower that is down until what it lacks is no longer in the others' logs."""
        leader = wait_for("a leader", SERVE_S, self.nodes.leader)
        victim = self.random.choice([n for n in self.nodes.coordinators if n is not leader])
        victim.kill()
        metric = "tidegate_raft_snapshots_taken"
        before = self.metric(leader, metric)
        wait_for("four snapshots", HIT_S, lambda: self.metric(leader, metric) >= before + 4)
        return victim

    # ---- the end ----

    def settle(self):
        """What became of every load, from the log; the open ones are aborted first."""
        for load in self.loads:
            deadline = time.monotonic() + SERVE_S
            state = ""
            while state not in ("VISIBLE", "ABORTED", "UNKNOWN"):
                if time.monotonic() > deadline:
                    raise Failed(f"{load.label} stays {state}")
                try:
                    node = self.random.choice(self.nodes.coordinators).http
                    answer = wire.ask(node, "GET", f"/api/{DB}/get_load_state?label={load.label}")
                    state = answer.json()["data"]
                    if state == "PRECOMMITTED":
                        headers = {"label": load.label, "txn_operation": "abort"}
                        wire.ask(node, "PUT", f"/api/{DB}/_stream_load_2pc", headers)
                except (wire.Broken, KeyError):
                    time.sleep(0.1)
            final = "committed" if state == "VISIBLE" else "aborted"
            if load.acked and final == "aborted":
                raise Failed(f"{load.label} was acknowledged, now it is {state}")
            if load.outcome not in (None, final):
                raise Failed(f"{load.label} was {load.outcome}, now it is {state}")
            load.outcome = final

    def check(self, puller):
        for node in self.nodes.participants:
            def scan(node=node):
                try:
                    answer = wire.ask(node.http, "GET", f"/api/{DB}/t/_scan?columns=k,b",
                                      timeout=60)
                except wire.Broken:
                    return None
                return answer if answer.status == 200 else None

            answer = wait_for(f"a scan of {node.name}", SERVE_S, scan)
            rows = [json.loads(line) for line in answer.body.splitlines()]
            compare(f"scan of {node.name}", rows, self.loads)
            newest = int(answer.headers["x-tidegate-version"])

        def all_pulled():
            return puller.pull(1000) == 0

        wait_for("the end of the changes", SERVE_S, all_pulled)
        compare("changes", puller.rows, self.loads)
        compare_versions(puller.rows, newest)

    def play(self, names):
        self.statement(f"CREATE DATABASE {DB}", db="")
        self.statement("CREATE TABLE t (k BIGINT, b INT, v VARCHAR(40000)) DUPLICATE KEY(k) "
                       f"DISTRIBUTED BY HASH(b) BUCKETS {BUCKETS}")
        self.serve()
        clients = [Client(self, self.random.random()) for _ in range(3)]
        puller = Puller(self, self.random.random())
        for thread in clients + [puller]:
            thread.start()
        try:
            for name in names:
                began = time.monotonic()
                self.kill_at(name)
                print(f"killed at {name}, served again, {time.monotonic() - began:.1f} s",
                      flush=True)
            for nudge in NUDGES:
                self.nudge(*nudge)
        finally:
            self.stop.set()
            for thread in clients + [puller]:
                thread.join(60)
        self.settle()
        self.check(puller)

    def close(self):
        self.disarm()
        self.nodes.close()


def compare(what, rows, loads):
    """The rows must be those of the committed loads, each once."""
    seen = {}
    for row in rows:
        seen.setdefault(row["k"], []).append(row["b"])
    right = {load.number for load in loads if load.outcome == "committed"}
    if set(seen) != right:
        raise Failed(f"{what}: lacks {sorted(right - set(seen))[:10]}, "
                     f"has {sorted(set(seen) - right)[:10]} too many")
    for number, found in seen.items():
        if sorted(found) != list(range(ROWS)):
            raise Failed(f"{what}: load {number} has rows {sorted(found)}")


def compare_versions(rows, newest):
    versions = [row["_version"] for row in rows]
    if versions != sorted(versions):
        raise Failed("the changes are not in the order of versions")
    missing = set(range(1, newest + 1)) - set(versions)
    if missing:
        raise Failed(f"versions {sorted(missing)[:10]} of {newest} are missing")


def fails(check, *arguments):
    try:
        check(*arguments)
    except Failed:
        return True
    return False


def self_test():
    """Each kind of loss must be seen, and a good history must pass."""
    loads = [Load(number, "plain") for number in (1, 2, 3)]
    for load, outcome in zip(loads, ("committed", "aborted", "committed")):
        load.outcome = outcome

    def rows(*numbers):
        return [{"k": n, "b": b, "_version": v + 1} for v, n in enumerate(numbers)
                for b in range(ROWS)]

    cases = [
        ("all is there", not fails(compare, "", rows(1, 3), loads)),
        ("a load is lost", fails(compare, "", rows(1), loads)),
        ("a load is doubled", fails(compare, "", rows(1, 3, 3), loads)),
        ("an aborted load is there", fails(compare, "", rows(1, 2, 3), loads)),
        ("a load is torn", fails(compare, "", rows(1, 3)[:-1], loads)),
        ("versions follow each other", not fails(compare_versions, rows(1, 3), 2)),
        ("a version is missing", fails(compare_versions, rows(1, 3), 3)),
        ("an order is wrong", fails(compare_versions, rows(1, 3)[::-1], 2)),
    ]
    wrong = [name for name, right in cases if not right]
    print("\n".join(wrong + [f"{len(cases) - len(wrong)} passed, {len(wrong)} failed"]))
    return 1 if wrong else 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--kills", type=int,
                        default=int(os.environ.get("FAILPOINT_KILLS", str(len(POINTS)))))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", choices=list(POINTS))
    options = parser.parse_args()
    names = [options.only] if options.only else list(POINTS)
    names = [names[i % len(names)] for i in range(options.kills)]
    if options.kills > len(POINTS):
        random.Random(options.seed).shuffle(names)
    directory = tempfile.mkdtemp(prefix="tidegate-failpoints-")
    run = None
    began = time.monotonic()
    try:
        run = Run(os.path.abspath(options.bin), directory, options.seed)
        run.play(names)
    except Failed as failed:
        print(f"FAILED: {failed}\nseed {options.seed}, directory {directory}")
        return 1
    finally:
        if run is not None:
            run.close()
    acked = sum(load.acked for load in run.loads)
    print(f"{sum(run.kills.values())} kills at {len(run.kills)} failpoints, {len(run.loads)} loads, "
          f"{acked} acknowledged, none lost; seed {options.seed}, "
          f"{time.monotonic() - began:.0f} s")
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
