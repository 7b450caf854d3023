#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Power cuts: a cluster on loop file systems that are shut down without a flush, under load.

  tests/powercut/powercut.py --bin build/bin --cuts 20 --seed 1

After each cut the nodes concerned are killed, their file systems mounted anew, the nodes started,
and everything that any client was told is looked for. Ends with 1 if something is not so; with 77
where the machine does not let it (no root, no loop devices). --nosync is the control: participants
run under a shim that makes nothing durable, and the loss must be seen."""

import argparse
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sweep"))
from clients import Book, Crowd, check_all, check_past, check_scan  # noqa: E402
from clients import make_table, statement  # noqa: E402
from cluster import Cluster, Hang, wait_for, wire  # noqa: E402
from control import CUT, NOSYNC, Control  # noqa: E402

SHUTDOWN = 0x8004587D  # _IOR('X', 125, uint32_t): EXT4_IOC_SHUTDOWN, and XFS's
NO_LOG_FLUSH = struct.pack("I", 2)
TABLE_CUTS = 5  # so many cuts for one table, then a fresh one
SKIP = 77


class Skip(Exception):
    pass


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stdout.decode(errors='replace').strip()}")


class Disk:
    """A file system of its own for one node's data."""

    def __init__(self, node, directory, kind, size_mb):
        self.node = node
        self.image = os.path.join(directory, node.name + ".img")
        self.mounted = False
        with open(self.image, "wb") as image:
            image.truncate(size_mb << 20)
        if kind == "ext4":
            run("mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1", self.image)
        else:
            run("mkfs.xfs", "-q", self.image)
        before = node.data + ".before"
        os.rename(node.data, before)
        os.mkdir(node.data)
        self.mount()
        for name in os.listdir(before):
            shutil.move(os.path.join(before, name), os.path.join(node.data, name))
        os.rmdir(before)
        self.unmount()  # what was copied is durable

    def mount(self):
        run("mount", "-o", "loop", self.image, self.node.data)
        self.mounted = True

    def unmount(self):
        """Patiently: a killed process may hold its files a moment longer."""
        if not self.mounted:
            return

        def gone():
            try:
                run("umount", self.node.data)
                return True
            except OSError as error:
                return "busy" not in str(error) and "not mounted" in str(error)

        wait_for(f"umount {self.node.data}", 30, gone)
        self.mounted = False


def probe(directory, kind):
    """Whether this machine can do it; Skip with the reason if not."""
    if os.geteuid() != 0:
        raise Skip("file systems are mounted: that wants root")
    for tool in ("mount", "umount", "mke2fs" if kind == "ext4" else "mkfs.xfs"):
        if shutil.which(tool) is None:
            raise Skip(f"{tool} is not installed")
    image, where = os.path.join(directory, "probe.img"), os.path.join(directory, "probe")
    os.mkdir(where)
    try:
        with open(image, "wb") as file:
            file.truncate(320 << 20)
        run(*(["mke2fs", "-q", "-t", "ext4"] if kind == "ext4" else ["mkfs.xfs", "-q"]), image)
        run("mount", "-o", "loop", image, where)
    except OSError as error:
        raise Skip(f"no loop file systems here: {error}") from error
    try:
        with open(os.path.join(where, "durable"), "wb") as file:
            file.write(b"x" * 5000)
            os.fsync(file.fileno())
        top = os.open(where, os.O_RDONLY)
        os.fsync(top)
        with open(os.path.join(where, "lost"), "wb") as file:
            file.write(b"x" * 5000)
        try:
            fcntl.ioctl(top, SHUTDOWN, NO_LOG_FLUSH)
        except OSError as error:
            raise Skip(f"no shutdown of a {kind}: {error}") from error
        finally:
            os.close(top)
        run("umount", where)
        run("mount", "-o", "loop", image, where)
        there = sorted(os.listdir(where))
        if "durable" not in there or "lost" in there:
            raise RuntimeError(f"a shutdown does not lose what it should: {there}")
    finally:
        subprocess.run(["umount", where], stderr=subprocess.DEVNULL, check=False)
        os.remove(image)
        os.rmdir(where)


class Game:
    def __init__(self, options, directory):
        self.options = options
        self.random = random.Random(options.seed)
        self.directory = directory
        self.violations = []
        self.disks = {}
        self.cuts = {}
        self.acked = 0
        self.lost = 0
        self.aborted = 0
        self.unknown = 0
        self.heal_s = []
        self.shims = {}
        self.cluster = None
        self.answered, self.committing = threading.Event(), threading.Event()

    def prepare(self):
        options = self.options
        self.cluster = Cluster(
            options.bin,
            self.directory,
            options.coordinators,
            3,
            ["coordinator:disk_reserve_bytes=8m", "participant:disk_reserve_bytes=8m"],
        )
        for node in self.cluster.nodes:
            self.disks[node.name] = Disk(node, self.directory, options.fs, options.disk_mb)
            if os.path.exists(options.shim):
                page = os.path.join(self.directory, node.name + ".shim")
                self.shims[node.name] = Control(page, os.path.abspath(options.shim))
                if options.nosync and node.role == "participant":
                    self.shims[node.name].order(NOSYNC)
        if options.nosync and not self.shims:
            raise Skip(f"no {options.shim}")

    def close(self):
        if self.cluster is not None:
            self.cluster.close()
        for disk in self.disks.values():
            disk.unmount()

    def ended(self):
        """Nodes that should run and do not."""
        nodes = self.cluster.nodes if self.cluster else []
        return [
            f"{node.name} has ended with {node.child.poll()}: ...{node.log_since(0)[-700:]}"
            for node in nodes
            if node.child is not None and node.child.poll() is not None
        ]

    def start(self, nodes):
        for node in nodes:
            self.disks[node.name].mount()
            self.begin(node)

    def begin(self, node):
        node.start(self.shims[node.name].env() if self.shims else None)

    def scope(self):
        """What loses power: (word, nodes)."""
        coordinators, participants = self.cluster.coordinators, self.cluster.participants
        word = self.random.choice(["one", "quorum", "all"])
        if self.options.nosync:
            word = "participants"
        if word == "one":
            return word, [self.random.choice(self.cluster.nodes)]
        if word == "all":
            return word, self.cluster.nodes
        if word == "participants":
            return word, participants
        some = self.random.sample(coordinators, len(coordinators) // 2 + 1)
        return word, some + self.random.sample(participants, 2)

    def moment(self, nodes):
        """Waits for the moment of a cut: any, just after an answer, within a commit; or, for one
        node alone, between a write and its sync, where the shim has then cut already."""
        aimed = ["sync", "sync", "write"] if len(nodes) == 1 and self.shims else []
        word = self.random.choice(["any", "answer", "commit"] + aimed)
        time.sleep(0.1 + 0.5 * self.random.random())
        if word == "any":
            return word
        if word in ("sync", "write"):
            shim = self.shims[nodes[0].name]
            shim.order(CUT, [word], n=self.random.randint(1, 30))
            try:
                wait_for("a call of that kind", 10, lambda: not nodes[0].runs())
            except Hang:
                pass  # it follows and had nothing to write: any moment, then
            shim.order()
            return word
        event = self.answered if word == "answer" else self.committing
        event.clear()
        event.wait(5)
        if word == "commit":
            time.sleep(self.random.random() * 0.004)
        return word

    def cut(self, nodes):
        """Every file system at once, then the processes."""
        tops = [os.open(node.data, os.O_RDONLY) for node in nodes]
        self.random.shuffle(tops)
        for top in tops:
            fcntl.ioctl(top, SHUTDOWN, NO_LOG_FLUSH)
        for node in nodes:
            if node.child.poll() is None:
                node.child.kill()
        for top in tops:
            os.close(top)
        for node in nodes:
            node.kill()
            self.disks[node.name].unmount()

    def bad(self, faults):
        for fault in faults:
            print("VIOLATION", fault, flush=True)
        self.violations += faults

    def one(self, number, book):
        word, nodes = self.scope()
        moment = self.moment(nodes)
        before = {node.name: node.log_size() for node in nodes}
        self.cut(nodes)
        self.cuts[f"{word}/{moment}"] = self.cuts.get(f"{word}/{moment}", 0) + 1
        begin = time.monotonic()
        self.start(nodes)
        self.cluster.wait_serves(20 if self.options.nosync else 90)
        self.heal_s.append(time.monotonic() - begin)
        # What a read that begins now has to show, while the clients go on.
        must = [book.told(what) for what in ("visible", "committed", "aborted")]
        for node in self.cluster.participants:
            faults = check_scan(node, book, *must)
            self.bad([f"cut {number} ({word}, {moment}): {fault}" for fault in faults])
        self.bad(check_past(self.cluster.participants, book, 2, number))
        self.bad([f"cut {number} ({word}, {moment}): {fault}" for fault in self.ended()])
        if self.options.verbose:
            print(
                f"cut {number} {word} {moment} {[node.name for node in nodes]}: whole after "
                f"{self.heal_s[-1]:.1f} s, looked at after {time.monotonic() - begin:.1f} s, "
                f"{len(must[0]) + len(must[1])} acknowledged",
                flush=True,
            )
        for node in nodes:
            for line in node.log_since(before[node.name]).splitlines():
                if "store damaged" in line or "store hole" in line or "chain_dropped" in line:
                    self.bad([f"cut {number} ({word}, {moment}): {node.name} says {line}"])

    def table(self, first, cuts):
        """So many cuts while one table is loaded into; then all of it is looked at."""
        book = Book(f"t{first}")
        make_table(self.cluster, book.table)
        crowd = Crowd(
            self.cluster,
            book,
            self.options.clients,
            self.options.seed + first,
            self.answered.set,
            self.committing.set,
        )
        try:
            for number in range(first, first + cuts):
                self.one(number, book)
                if self.violations:
                    break
        finally:
            crowd.end()
        if not self.violations:
            self.bad(check_all(self.cluster, book, first))
            self.bad(self.cluster.compare())
        told = {load.told for load in book.loads.values()}
        acked = book.told("visible") | book.told("committed")
        self.acked += len(acked)
        self.aborted += len(book.told("aborted"))
        self.unknown += len(book.told("unknown"))
        if not acked:
            self.bad([f"nothing was acknowledged at all: {told}"])
        if not self.violations:
            statement(self.cluster.coordinators, f"DROP TABLE {book.table}")

    def play(self):
        self.start(self.cluster.nodes)
        self.cluster.wait_serves()
        number = 0
        while number < self.options.cuts and not self.violations:
            cuts = min(TABLE_CUTS, self.options.cuts - number)
            self.table(number, cuts)
            number += cuts

    def report(self, seconds):
        heal = sorted(self.heal_s) or [0.0]
        print(
            f"seed {self.options.seed}: {sum(self.cuts.values())} cuts in {seconds:.0f} s, "
            f"{self.acked} acknowledged, {self.aborted} aborted, {self.unknown} unanswered, "
            f"{len(self.violations)} violations"
        )
        print("  cuts: " + ", ".join(f"{k} {v}" for k, v in sorted(self.cuts.items())))
        print(f"  all serves and is whole again after {heal[len(heal) // 2]:.1f} s, at most "
              f"{heal[-1]:.1f} s")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(here, "..", "..", "build", "bin"))
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--coordinators", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--fs", default="ext4", choices=["ext4", "xfs"])
    parser.add_argument("--disk-mb", type=int, default=2048)
    parser.add_argument("--nosync", action="store_true", help="the control: loss must be seen")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--shim", help="default: BIN/tests/libtidegate_shim.so")
    options = parser.parse_args()
    options.shim = options.shim or os.path.join(options.bin, "tests", "libtidegate_shim.so")
    if os.geteuid() == 0 and not os.environ.get("TIDEGATE_POWERCUT_INSIDE"):
        # In namespaces of its own: however this ends, no mount and no process stays.
        os.environ["TIDEGATE_POWERCUT_INSIDE"] = "1"
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run(own + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            os.execvp("unshare", own + [sys.executable, *sys.argv])
    directory = tempfile.mkdtemp(prefix="tidegate-powercut-")
    begin = time.monotonic()
    game = None
    keep = False
    try:
        probe(directory, options.fs)
        cluster_directory = os.path.join(directory, "cluster")
        game = Game(options, cluster_directory)
        try:
            game.prepare()
            game.play()
        except (Hang, RuntimeError, AssertionError, wire.Broken) as error:
            game.bad([str(error)] + game.ended())
        game.report(time.monotonic() - begin)
    except Skip as skip:
        print(f"skipped: {skip}")
        return SKIP
    finally:
        if game is not None:
            keep = bool(game.violations) and not options.nosync
            game.close()
        if keep:
            print(f"what is left: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if options.nosync:
        print("the control " + ("saw the loss" if game.violations else "SAW NO LOSS"))
        return 0 if game.violations else 1
    return 1 if game.violations else 0


if __name__ == "__main__":
    sys.exit(main())
