#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a coordinator or a participant at its n-th write to a file (before it, or half-way), for
many n, and compares it with its undisturbed peers: what is stored and the index that it is valid
for go together.

  tests/sweep/kill_at_write.py --bin build/bin --points 16 --seed 1     (or --points all: n to 200)

After each restart all coordinators have the same hash of their state at the same applied index, and
so has a fresh state to which the killed one's log is applied from its first entry; all participants
hold the same versions, and all that was acknowledged."""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from clients import Book, Crowd, check_all, check_scan, make_table, statement
from cluster import Cluster, Hang, wait_for, wire
from control import KILL, TORN, Control

N_MAX = 200
LOG_IS_SHORT = 3  # log_replay's exit status
TABLE_POINTS = 8


def state_of(node):
    try:
        answer = wire.ask(node.http, "GET", "/api/state", timeout=5).json()
    except wire.Broken:
        return None
    return answer["data"]["applied_index"], answer["data"]["state_hash"]


class Game:
    def __init__(self, options, directory):
        self.options = options
        self.directory = directory
        self.cluster = Cluster(
            options.bin,
            os.path.join(directory, "cluster"),
            3,
            3,
            ["coordinator:disk_reserve_bytes=1m", "participant:disk_reserve_bytes=1m"],
        )
        self.control = Control(os.path.join(directory, "shim"), os.path.abspath(options.shim))
        self.book = None
        self.played = 0
        self.killed = 0
        self.bad = 0
        self.replayed = 0

    def same_state(self):
        """(index, hash) once all coordinators have applied the same; Hang if they never do."""

        def equal():
            found = [state_of(node) for node in self.cluster.coordinators]
            if None in found or len({index for index, _ in found}) != 1:
                return None
            return found

        found = wait_for("equal applied indexes", 30, equal)
        if len({digest for _, digest in found}) != 1:
            raise Hang(f"the states differ at one index: {found}")
        return found[0]

    def apply_log(self, node, index):
        """What log_replay says of a copy of the node's log; None while the log is shorter: a
        coordinator applies what a majority has, and its own disk may follow a moment later."""
        copy = os.path.join(self.directory, "copy")
        program = os.path.join(self.options.bin, "tests", "log_replay")
        try:
            shutil.copytree(os.path.join(node.data, "raft"), copy)
            done = subprocess.run(
                [program, copy, str(index)], capture_output=True, text=True, check=False
            )
        except shutil.Error:
            return None  # a file got its final name while it was copied
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        return None if done.returncode == LOG_IS_SHORT else done

    def replay(self, node, index, digest):
        what = f"{node.name}'s log on disk reaches entry {index}"
        done = wait_for(what, 30, lambda: self.apply_log(node, index))
        self.replayed += 1
        if done.returncode != 0 or done.stdout.strip() != digest:
            return [
                f"{node.name}: its log gives {done.stdout.strip()} {done.stderr.strip()} at entry "
                f"{index}, the state is {digest}"
            ]
        return []

    def life(self, node, action, n, seed):
        """Under load until the n-th write; without end for the others."""
        node.terminate()
        self.control.order(action, ["write"], n=n)
        node.start(self.control.env())
        crowd = Crowd(self.cluster, self.book, 4, seed)
        try:
            wait_for("the n-th write", 20, lambda: not node.runs())
            self.killed += 1
        except Hang:
            pass
        finally:
            crowd.end()
        self.control.order()
        node.kill()

    def one(self, node, action, n, seed):
        if self.played % TABLE_POINTS == 0:
            if self.book is not None:
                statement(self.cluster.coordinators, f"DROP TABLE {self.book.table}")
            self.book = Book(f"t{self.played}")
            make_table(self.cluster, self.book.table)
        self.played += 1
        self.life(node, action, n, seed)
        node.start()
        self.cluster.wait_serves()
        must = [self.book.told(what) for what in ("visible", "committed", "aborted")]
        faults = []
        for peer in self.cluster.participants:
            faults += check_scan(peer, self.book, *must)
        index, digest = self.same_state()
        if node.role == "coordinator" or self.played % TABLE_POINTS == 0:
            look = node if node.role == "coordinator" else self.cluster.coordinators[0]
            faults += self.replay(look, index, digest)
        if self.played % TABLE_POINTS == 0:
            faults += check_all(self.cluster, self.book, seed)
        return faults + self.cluster.compare()

    def run(self):
        chosen = random.Random(self.options.seed)
        self.cluster.start()
        self.cluster.wait_serves()
        numbers = list(range(1, N_MAX + 1))
        points = [(role, action, n) for n in numbers for role in (0, 1) for action in (KILL, TORN)]
        if self.options.points != "all":
            points = chosen.sample(points, int(self.options.points))
        begin = time.monotonic()
        for role, action, n in points:
            nodes = (self.cluster.coordinators, self.cluster.participants)[role]
            node = chosen.choice(nodes)
            try:
                faults = self.one(node, action, n, chosen.randrange(1 << 30))
            except (Hang, RuntimeError, AssertionError, wire.Broken) as error:
                faults = [str(error)]
            if faults:
                self.bad += 1
                how = "half-way through" if action == TORN else "before"
                print(f"BAD {node.name} killed {how} write {n}:")
                print("\n".join(f"    {fault}" for fault in faults), flush=True)
                break
        print(
            f"seed {self.options.seed}: {self.played} points in {time.monotonic() - begin:.0f} s, "
            f"{self.killed} killed, {self.replayed} logs applied anew, {self.bad} bad"
        )


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(here, "..", "..", "build", "bin"))
    parser.add_argument("--points", default="16")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--shim", help="default: BIN/tests/libtidegate_shim.so")
    options = parser.parse_args()
    options.shim = options.shim or os.path.join(options.bin, "tests", "libtidegate_shim.so")
    directory = tempfile.mkdtemp(prefix="tidegate-kill-")
    game = None
    try:
        game = Game(options, directory)
        game.run()
    finally:
        if game is not None:
            game.cluster.close()
        if game is not None and game.bad:
            print(f"what is left: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 1 if game.bad else 0


if __name__ == "__main__":
    sys.exit(main())
