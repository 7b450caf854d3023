#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real cluster under loads and misfortune, and checks of everything its clients saw.

  tests/chaos/chaos.py --bin build/bin --rounds 3 --seconds 60 --seed 1

A round: fresh tables, clients and nemesis for so long, heal, wait until all is quiet, check. Ends
with status 1 if anything did not hold; then the cluster's directory stays."""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time

import checks
import wire
from nemesis import Guard, Nemesis, Net, Nodes
from workload import DDL, DB, Cluster, History, Puller, Scanner, Watcher, Writer

QUIET_S = 30  # after healing, all transactions must be final within this
REPAIR_S = 60  # … and all replicas good again within this


class Round:
    def __init__(self, nodes, options, number, net):
        self.nodes = nodes
        self.options = options
        self.seed = options.seed * 1000 + number
        self.prefix = f"r{self.seed}"
        self.cluster = Cluster(nodes.description)
        self.history = History()
        self.stop = threading.Event()
        self.pause = options.pause
        self.net = net
        self.kind = {
            f"a{self.seed}": "dup",
            f"b{self.seed}": "dup",
            f"u{self.seed}": "unique",
        }
        self.tables = list(self.kind)
        self.pullers = []

    def prepare(self):
        self.cluster.statement(f"CREATE DATABASE {DB}", db="")
        for name, kind in self.kind.items():
            self.cluster.statement(DDL[kind].format(name=name))

    def play(self):
        seed = random.Random(self.seed)
        clients = [Writer(self, seed.random()) for _ in range(self.options.writers)]
        clients += [Scanner(self, seed.random()) for _ in range(self.options.scanners)]
        clients += [Watcher(self, seed.random()) for _ in range(2)]
        self.pullers = [Puller(self, seed.random(), table) for table in self.tables]
        guard_stop = threading.Event()
        guard = Guard(self.nodes, self.history, guard_stop)
        calm = threading.Event()
        nemeses = [
            Nemesis(self.nodes, self.history, calm, seed.random(), self.options.every, self.net)
            for _ in range(self.options.nemeses if self.options.every else 0)
        ]
        for thread in clients + self.pullers + [guard] + nemeses:
            thread.start()
        time.sleep(self.options.seconds)
        calm.set()
        for nemesis in nemeses:
            nemesis.join(30)
        time.sleep(self.options.calm)
        self.stop.set()
        for thread in clients + self.pullers:
            thread.join(60)
            if thread.is_alive():
                self.history.violation(f"a {type(thread).__name__} hangs")
        finals = self.settle()
        self.check(finals)
        guard_stop.set()
        guard.join()
        if self.history.violations:
            events = sorted(event for nemesis in nemeses for event in nemesis.events)
            self.dump(events, finals)

    def state(self, label, node):
        for _ in range(20):
            try:
                answer = wire.ask(node, "GET", f"/api/{DB}/get_load_state?label={label}").json()
                if answer["code"] == 0:
                    return answer["data"]
            except wire.Broken:
                pass
            time.sleep(0.3)
        return "unanswered"

    def settle(self):
        """Waits until every transaction is over; forgotten precommitted ones are aborted."""
        deadline = time.monotonic() + QUIET_S
        open_ops = list(self.history.ops)
        begin = time.monotonic()
        while open_ops and time.monotonic() < deadline:
            still = []
            for op in open_ops:
                state = self.state(op.label, random.choice(self.cluster.coordinators))
                if state == "PRECOMMITTED":
                    headers = {"label": op.label, "txn_operation": "abort"}
                    try:
                        wire.ask(
                            random.choice(self.cluster.coordinators),
                            "PUT",
                            f"/api/{DB}/_stream_load_2pc",
                            headers,
                        )
                    except wire.Broken:
                        pass
                if state not in ("VISIBLE", "ABORTED", "UNKNOWN"):
                    still.append(op)
            open_ops = still
            if open_ops:
                time.sleep(0.5)
        self.history.counts["quiet after s"] = round(time.monotonic() - begin, 1)
        return {
            op.label: [self.state(op.label, node) for node in self.cluster.coordinators]
            for op in self.history.ops
        }

    def repaired(self):
        """Waits until no replica is behind any more."""
        begin = time.monotonic()
        behind = None
        while time.monotonic() - begin < REPAIR_S:
            try:
                node = random.choice(self.cluster.coordinators)
                tables = wire.ask(node, "GET", "/api/cluster").json()["data"]["cluster"]["tables"]
                behind = {t["table"]: t["replicas_behind"] for t in tables if t["replicas_behind"]}
                if not behind:
                    break
            except (wire.Broken, KeyError, TypeError):
                pass
            time.sleep(0.25)
        else:
            self.history.violation(f"replicas are still behind after {REPAIR_S} s: {behind}")
        self.history.counts["repaired after s"] = round(time.monotonic() - begin, 1)

    def old_scans(self, newest):
        """Old versions from every node, which reads its own replicas."""
        for table in self.tables:
            for node in self.cluster.participants:
                for _ in range(6):
                    version = random.randint(0, newest.get(table, 0))
                    Scanner(self, 0).scan(table, "version", f"&version={version}", node)

    def last_scans(self):
        """Every table, whole, from every node: table -> newest version."""
        newest = {}
        for table in self.tables:
            for node in self.cluster.participants:
                scanner = Scanner(self, 0)
                for _ in range(50):
                    try:
                        version = scanner.scan(table, "newest", "", node)
                        if version is not None:
                            newest[table] = version
                            break
                    except wire.Broken:
                        pass
                    time.sleep(0.3)
                else:
                    self.history.violation(f"{table} cannot be read from {node}")
        return newest

    def works_again(self):
        """After all: a load into each table succeeds."""
        for table in self.tables:
            writer = Writer(self, 0)
            for _ in range(20):
                op = writer.make("again")
                try:
                    if writer.load(op, table) == "success":
                        break
                    op.refused = True
                except wire.Broken:
                    pass
                time.sleep(0.5)
            else:
                self.history.violation(f"no load into {table} works any more: {op.words}")

    def check(self, finals):
        history = self.history
        self.works_again()
        self.repaired()
        newest = self.last_scans()
        self.old_scans(newest)
        feeds = {}
        for puller in self.pullers:
            empty = 0
            while empty < 5:
                empty = 0 if puller.pull() else empty + 1
            whole = Puller(self, 0, puller.table)
            whole.random.random = lambda: 0.9
            for _ in range(20):
                if whole.pull():
                    break
            key = lambda row: (row["_version"], row["i"], row["s"])
            if sorted(map(key, puller.rows)) != sorted(map(key, whole.rows)):
                history.violation(f"{puller.table}: the feed in pieces differs from the whole one")
            feeds[puller.table] = checks.Feed(self.kind[puller.table], puller.rows)
        faults = []
        for table, feed in feeds.items():
            scans = [scan for scan in history.scans if scan[0] == table]
            faults += [f"{table}: {fault}" for fault in feed.faults]
            faults += checks.version_numbers(feed, newest.get(table, 0), table)
            faults += checks.scans_match(feed, scans, table)
            faults += checks.instants_match(feed, scans, table)
            faults += checks.reads_advance(scans, table)
        faults += checks.commits_show(feeds, history.ops, history.scans)
        faults += checks.states_advance(history.states)
        played = [op for op in history.ops if op.label in finals]
        faults += checks.states_final(played, finals, feeds)
        for fault in faults:
            history.violation(fault)
        history.counts["versions"] = sum(len(feed.versions) for feed in feeds.values())
        history.counts["acked"] = sum(1 for op in history.ops if op.acked)

    def dump(self, events, finals):
        """What there is to look at after a violation."""
        path = os.path.join(self.nodes.directory, f"history-{self.seed}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for text in self.history.violations:
                print(json.dumps({"violation": text}), file=file)
            for event in events:
                print(json.dumps({"nemesis": event}), file=file)
            for op in self.history.ops:
                known = {**vars(op), "rival": op.rival and op.rival.parts}
                print(json.dumps({"op": known, "final": finals.get(op.label)}), file=file)
            for scan in self.history.scans:
                print(json.dumps({"scan": scan[:7] + scan[8:]}), file=file)
            for state in self.history.states:
                print(json.dumps({"state": state}), file=file)
        print(f"history: {path}")

    def close(self):
        for table in self.tables:
            self.cluster.statement(f"DROP TABLE {table}")


def idle(nodes, seconds=5):
    """Figures of processes that have nothing to do."""
    before = {node.name: node.figures() for node in nodes.all}
    time.sleep(seconds)
    faults = []
    lines = []
    for node in nodes.all:
        fds, resident, threads, ticks = node.figures()
        cpu = (ticks - before[node.name][3]) / seconds
        size = os.path.getsize(os.path.join(node.directory, "log"))
        lines.append(
            f"  {node.name}: {fds} fds, {resident} KiB, {threads} threads, {cpu:.1f} % CPU, "
            f"log {size // 1024} KiB"
        )
        if cpu > 5:
            faults.append(f"{node.name} uses {cpu:.1f} % CPU when idle")
        if fds > 200:
            faults.append(f"{node.name} has {fds} descriptors open")
    print("\n".join(lines), flush=True)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--dir")
    parser.add_argument("--port-offset", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--calm", type=float, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--writers", type=int, default=12)
    parser.add_argument("--scanners", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.1, help="of a writer, seconds at most")
    parser.add_argument("--every", type=float, default=2, help="a fault in so many seconds, 0: none")
    parser.add_argument("--nemeses", type=int, default=2, help="faults at once")
    parser.add_argument("--net", action="store_true", help="cut connections too (needs root, nft)")
    parser.add_argument(
        "--option", action="append", default=[], help="coordinator:name=value or participant:…"
    )
    options = parser.parse_args()
    if options.net and not os.environ.get("TIDEGATE_CHAOS_NET"):
        os.environ["TIDEGATE_CHAOS_NET"] = "1"
        lo = 'ip link set lo up && exec "$@"'
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", lo, "sh", sys.executable, *sys.argv])
    directory = options.dir or tempfile.mkdtemp(prefix="tidegate-chaos-")
    nodes = Nodes(
        os.path.abspath(options.bin), directory, options.port_offset, options.option, options.net
    )
    net = Net() if options.net else None
    total = {}
    bad = 0
    try:
        for number in range(options.rounds):
            game = Round(nodes, options, number, net)
            game.prepare()
            game.play()
            for fault in idle(nodes):
                game.history.violation(fault)
            game.close()
            bad += len(game.history.violations)
            for what, count in game.history.counts.items():
                total[what] = total.get(what, 0) + count
            print(f"round {number} seed {game.seed}: {len(game.history.violations)} violations")
            print("  " + ", ".join(f"{k}: {v}" for k, v in sorted(game.history.counts.items())))
            sys.stdout.flush()
    finally:
        nodes.close()
    print(f"seed {options.seed}: {bad} violations; total:")
    print("  " + ", ".join(f"{k}: {v}" for k, v in sorted(total.items())))
    if bad:
        print(f"what is left of the cluster: {directory}")
    elif not options.dir:
        shutil.rmtree(directory)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
