#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real cluster under loads and misfortune, and checks of everything its clients saw.

  tests/chaos/chaos.py --bin build/bin --minutes 10 --seed 1
  tests/chaos/chaos.py --check history-1000.jsonl

A round: fresh tables, clients and at most three kinds of faults for so long, heal, wait until all is
quiet, read everything, check. Ends with status 1 if anything did not hold; then the histories, logs
and data stay. Without root or the tools for a network of its own the faults of network and disk are
left out, which the first line says."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

import checks
import history
import net
from final import Final
from history import History
from nemesis import KINDS, Guard, deal
from nodes import Nodes
from readers import Puller, Scanner, Watcher
from writers import DB, DDL, Writer, statement

# Summed up over the rounds, or the largest of them.
LARGEST = ("worst unavailability s", "worst stale read ms", "quiet after s", "repaired after s",
           "collected after s")


class Round:
    """What clients and checks need to know of it."""

    def __init__(self, nodes, options, number, kinds):
        self.nodes = nodes
        self.options = options
        self.kinds = kinds
        self.seed = options.seed * 1000 + number
        self.prefix = f"r{self.seed}"
        self.path = os.path.join(nodes.directory, f"history-{self.seed}.jsonl")
        self.history = History(self.path)
        self.stop = threading.Event()
        self.pause = options.pause
        self.kind = {f"{name}{self.seed}": kind for name, kind in
                     (("a", "dup"), ("b", "dup"), ("u", "unique"), ("v", "unique"))}
        self.tables = list(self.kind)

    @property
    def coordinators(self):
        return [node.http for node in self.nodes.coordinators]

    @property
    def participants(self):
        return [node.http for node in self.nodes.participants]

    def prepare(self):
        self.history.log(p="main", type="info", f="round", seed=self.seed, kinds=self.kinds)
        self.history.log(p="main", type="info", f="tables", val=self.kind)
        statement(self.coordinators, f"CREATE DATABASE {DB}", db="")
        for name, kind in self.kind.items():
            statement(self.coordinators, DDL[kind].format(name=name))

    def play(self):
        seed = random.Random(self.seed)
        options = self.options
        clients = [Writer(self, seed.random(), f"w{n}") for n in range(options.writers)]
        clients += [Scanner(self, seed.random(), f"s{n}") for n in range(options.scanners)]
        clients += [Watcher(self, seed.random(), f"l{n}") for n in range(2)]
        clients += [Puller(self, seed.random(), table, f"pull {table}") for table in self.tables]
        ended, calm = threading.Event(), threading.Event()
        guard = Guard(self.nodes, self.history, ended)
        misfortunes = [
            KINDS[kind](self.nodes, self.history, calm, seed.random(), options.every)
            for kind in self.kinds
        ]
        for thread in clients + [guard] + misfortunes:
            thread.start()
        time.sleep(options.seconds)
        calm.set()
        for thread in misfortunes:
            thread.join(120)
        time.sleep(options.calm)
        self.history.log(p="main", type="info", f="stopped")
        self.stop.set()
        deadline = time.monotonic() + 90 * options.slow
        for thread in clients + misfortunes:
            thread.join(max(0, deadline - time.monotonic()))
            if thread.is_alive():
                self.history.log(p="main", type="info", f="violation",
                                 text=f"{type(thread).__name__} {thread.name} hangs")
        Final(self).play()
        ended.set()
        guard.join()

    def close(self):
        """Checks the history from its file: (faults, figures)."""
        self.history.close()
        past = history.read(self.path)
        faults, feeds = checks.check(past)
        counts = {**self.history.counts, **checks.figures(past, feeds)}
        for table in self.tables:
            statement(self.coordinators, f"DROP TABLE {table}")
        return faults, counts


def idle(nodes, seconds=5):
    """Figures of processes that have nothing to do, and complaints about them."""
    before = {node.name: node.figures() for node in nodes.all}
    time.sleep(seconds)
    faults = []
    lines = []
    for node in nodes.all:
        fds, resident, threads, ticks = node.figures()
        cpu = (ticks - before[node.name][3]) / seconds
        lines.append(f"{node.name} {fds} fds {resident >> 10} MiB {threads} threads {cpu:.1f} % CPU")
        if cpu > 10:
            faults.append(f"{node.name} uses {cpu:.1f} % CPU when idle")
        if fds > 200:
            faults.append(f"{node.name} has {fds} descriptors open")
    print("  idle: " + "; ".join(lines), flush=True)
    return faults


def end(nodes):
    """All end in an orderly way, if they still can; complaints about how, and about what they wrote."""
    faults = []
    for node in nodes.all:
        took = node.terminate(30) if node.alive() else None
        if took is None or node.child.returncode != 0:
            faults.append(f"{node.name} ended after {took} s with {node.child.returncode}")
        complaint = node.complaints()
        if complaint:
            faults.append(f"{node.name} has written: {complaint}")
    for fault in faults:
        print("VIOLATION", fault)
    return len(faults)


def add(total, counts):
    for what, value in counts.items():
        if what in LARGEST:
            total[what] = max(total.get(what, 0), value)
        else:
            total[what] = total.get(what, [] if isinstance(value, list) else 0) + value


def shown(counts, everything=False):
    rare = lambda what: what.startswith(("broken", "refused", "scan broken", "pull broken", "state"))
    return ", ".join(
        f"{what}: {value}"
        for what, value in sorted(counts.items())
        if not isinstance(value, list) and (everything or not rare(what))
    )


def report(total, seed, bad):
    waits = total.get("next commit s", [])
    print(f"seed {seed}: {bad} violations; total:")
    print("  " + shown(total, everything=True))
    if waits:
        half, most = checks.percentile(waits, 0.5), checks.percentile(waits, 0.99)
        print(f"  next commit after {len(waits)} leader kills, other faults going on: "
              f"p50 {half} s, p99 {most} s, max {max(waits)} s")
    loads = max(1, total.get("loads", 0))
    print(f"  kills: {total.get('kills', 0)}, of leaders: {total.get('leader kills', 0)}, "
          f"partitions: {total.get('partitions', 0)}, pauses: {total.get('pauses', 0)}, "
          f"loads: {total.get('loads', 0)}, acknowledged: {total.get('acknowledged', 0)}, "
          f"unknown: {100 * total.get('unknown', 0) / loads:.1f} %, "
          f"worst unavailability: {total.get('worst unavailability s', 0)} s, violations: {bad}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--dir", help="where the cluster lives; kept")
    parser.add_argument("--minutes", type=float, help="as many rounds as begin within this")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=45, help="of faults in a round")
    parser.add_argument("--calm", type=float, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    parser.add_argument("--writers", type=int, default=12)
    parser.add_argument("--scanners", type=int, default=3)
    parser.add_argument("--coordinators", type=int, default=3)
    parser.add_argument("--participants", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.1, help="of a writer, seconds at most")
    parser.add_argument("--every", type=float, default=1.5, help="seconds between faults of a kind")
    parser.add_argument("--kinds", help="of faults, only these: " + ",".join(KINDS))
    parser.add_argument("--always", default="", help="kinds that are in each round")
    parser.add_argument("--slow", type=float, default=1, help="factor of all patience")
    parser.add_argument("--no-net", action="store_true", help="no network of its own")
    parser.add_argument("--keep", action="store_true", help="keep histories and logs in any case")
    parser.add_argument("--check", nargs="+", metavar="FILE", help="only check histories")
    parser.add_argument(
        "--option", action="append", default=[], help="coordinator:name=value or participant:…"
    )
    return parser.parse_args()


def kinds_for(options, nodes):
    kinds = options.kinds.split(",") if options.kinds is not None else list(KINDS)
    kinds = [kind for kind in kinds if kind]
    out = [kind for kind in kinds if not KINDS[kind].possible(nodes)]
    if out:
        print(f"LEFT OUT, not possible here: {', '.join(out)}", flush=True)
    return [kind for kind in kinds if kind not in out]


def play(options, nodes, number, kinds):
    """One round: (faults, counts)."""
    game = Round(nodes, options, number, kinds)
    begin = time.monotonic()
    game.prepare()
    game.play()
    lazy = [] if os.environ.get("TIDEGATE_CHAOS_SANITIZED") else idle(nodes)
    faults, counts = game.close()
    faults += lazy
    for fault in faults:
        print("VIOLATION", fault[:3000], flush=True)
    print(f"round {number} seed {game.seed} ({', '.join(kinds)}) {time.monotonic() - begin:.0f} s: "
          f"{len(faults)} violations\n  {shown(counts)}", flush=True)
    if not faults and not options.keep:
        os.remove(game.path)
    return faults, counts


def main():
    options = arguments()
    if options.check:
        sys.argv = [sys.argv[0]] + options.check
        return checks.main()
    reason = "--no-net was given" if options.no_net else net.why_not()
    if reason is None:
        net.enter()
    else:
        print(f"NO NETWORK OF ITS OWN ({reason}): faults of network and disk are left out")
    directory = options.dir or tempfile.mkdtemp(prefix="tidegate-chaos-")
    begin = time.monotonic()
    total = {}
    bad = number = 0
    nodes = None
    try:
        nodes = Nodes(options.bin, directory, None if reason else net.Net(), options.seed,
                      options.option, options.coordinators, options.participants)
        kinds = kinds_for(options, nodes)
        hands = deal(1000, options.seed, kinds, options.always.split(","))
        while number < options.rounds or (
            not options.rounds and time.monotonic() - begin < 60 * (options.minutes or 2)
        ):
            faults, counts = play(options, nodes, number, hands[number])
            number += 1
            bad += len(faults)
            add(total, counts)
        bad += end(nodes)
    finally:
        if nodes:
            nodes.close()
            if bad:
                nodes.keep()
            nodes.leave_disks()
    report(total, options.seed, bad)
    if bad:
        print(f"what is left of the cluster: {directory}")
    elif not options.dir and not options.keep:
        shutil.rmtree(directory)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
