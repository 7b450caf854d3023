#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long commits wait when the leading coordinator is killed, on a cluster that is otherwise quiet.

  tests/chaos/failover.py --bin build/bin --kills 200

Some clients commit all the time, each at a node of its own choice and at the next one if that does
not answer. What is measured: from the SIGKILL to the first answer of success to a commit that was
asked for after it. Then the killed one is started again, and the next leader is due once all three
are equal. Ends with status 1 if the 99th percentile is not below --limit, or a commit is missing."""

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time

import net
import wire
from checks import percentile
from nodes import Nodes
from writers import DB, statement

TABLE = "t"
DDL = f"CREATE TABLE {TABLE} (k BIGINT NOT NULL) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 3"


class Client(threading.Thread):
    """Loads one row after the other; each load is repeated under its label until it is known."""

    def __init__(self, nodes, number, stop, acks):
        super().__init__(daemon=True)
        self.nodes = [node.http for node in nodes.participants]
        self.number = number
        self.stop = stop
        self.acks = acks  # (answered, asked, row), appended to by all
        self.random = random.Random(number)

    def run(self):
        row = self.number
        while not self.stop.is_set():
            self.load(row)
            row += 1000
            time.sleep(0.01)

    def load(self, row):
        body = f"{row}\n".encode()
        headers = {"label": f"f{row}", "timeout": 30, "Content-Length": len(body)}
        while not self.stop.is_set():
            asked = time.monotonic()
            try:
                path = f"/api/{DB}/{TABLE}/_stream_load"
                with wire.Connection(self.random.choice(self.nodes), 30) as connection:
                    connection.send(wire.head("PUT", path, headers) + body)
                    answer = connection.answer().json()
            except wire.Broken:
                continue
            if answer["Status"] == "Success" or answer.get("ExistingJobStatus") == "FINISHED":
                self.acks.append((time.monotonic(), asked, row))
                return
            time.sleep(0.02)


def measure(nodes, options, acks):
    waits = []
    for number in range(options.kills):
        leader = wait_equal(nodes)
        time.sleep(random.random() * 0.3)
        leader.up = False
        at = time.monotonic()
        leader.child.kill()
        leader.wait_gone(10)
        while True:
            found = next((ack for ack in reversed(acks[-64:]) if ack[1] > at), None)
            if found:
                first = min(ack for ack in acks[-4096:] if ack[1] > at)
                waits.append(first[0] - at)
                break
            if time.monotonic() - at > 60:
                raise RuntimeError(f"kill {number}: nothing was committed for a minute")
            time.sleep(0.005)
        leader.start()
        if (number + 1) % 20 == 0:
            print(f"  {number + 1} kills: {summary(waits)}", flush=True)
    return waits


def wait_equal(nodes, timeout=60):
    """The leader, once every coordinator has applied what it has."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        leader = nodes.leader()
        try:
            if leader and len({leads(nodes, node) for node in nodes.coordinators}) == 1:
                return leader
        except (wire.Broken, IndexError):
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the coordinators do not agree on a leader after {timeout} s")


def leads(nodes, node):
    text = nodes.ask(node, "/metrics").body.decode()
    return float(text.split("\ntidegate_raft_leader ", 1)[1].split(None, 1)[0])


def summary(waits):
    return (f"p50 {percentile(waits, 0.5):.3f} s, p99 {percentile(waits, 0.99):.3f} s, "
            f"max {max(waits):.3f} s")


def missing(nodes, acks):
    """Rows that were acknowledged and are not there exactly once."""
    for _ in range(50):
        try:
            node = random.choice(nodes.participants).http
            answer = wire.get_following(node, f"/api/{DB}/{TABLE}/_scan?format=csv&columns=k", 60)
            if answer.status == 200:
                break
        except wire.Broken:
            pass
        time.sleep(0.3)
    rows = sorted(int(line) for line in answer.body.split())
    twice = [a for a, b in zip(rows, rows[1:]) if a == b]
    return sorted({ack[2] for ack in acks} - set(rows)) + twice


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--limit", type=float, default=2.0, help="of the 99th percentile, seconds")
    parser.add_argument("--no-net", action="store_true", help="no network of its own")
    options = parser.parse_args()
    reason = "--no-net was given" if options.no_net else net.why_not()
    if reason is None:
        net.enter()
    directory = tempfile.mkdtemp(prefix="tidegate-failover-")
    nodes, acks, stop = None, [], threading.Event()
    try:
        nodes = Nodes(options.bin, directory, None if reason else net.Net())
        statement([c.http for c in nodes.coordinators], f"CREATE DATABASE {DB}", db="")
        statement([c.http for c in nodes.coordinators], DDL)
        clients = [Client(nodes, n + 1, stop, acks) for n in range(options.clients)]
        for client in clients:
            client.start()
        waits = measure(nodes, options, acks)
        stop.set()
        for client in clients:
            client.join(60)
        lost = missing(nodes, acks)
    finally:
        if nodes:
            nodes.close()
            nodes.leave_disks()
    good = not lost and percentile(waits, 0.99) < options.limit
    print(f"next commit after {len(waits)} leader kills: {summary(waits)}; "
          f"{len(acks)} commits, lost or doubled: {lost[:10] or 'none'}")
    print("  the quickest and the slowest: "
          + ", ".join(f"{wait:.3f}" for wait in sorted(waits)[:3] + sorted(waits)[-5:]))
    if good:
        shutil.rmtree(directory)
    else:
        print(f"what is left of the cluster: {directory}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
