#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small LMDB maps and a reader that takes a row a second (O31): updates go on or are refused with a
word about capacity, nothing half-written stays, the slow scan is of one version, and space that a
drop freed is used again while the scan still runs."""

import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import check, equal, until

KEYS = 100
WIDE = 30000  # bytes of a value: a load of all keys is about 3 MB, of 30 about 1 MB
MAP = 32 << 20


class SlowScan:
    """A scan that is read a row at a time."""

    def __init__(self, node, table):
        self.sock = socket.socket()
        # Small, so that the server's side really waits for us.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(60)
        self.sock.connect(tide.split(node))
        self.sock.sendall(tide.raw_head("GET", f"/api/d/{table}/_scan?format=csv", {}))
        self.response = tide.http.client.HTTPResponse(self.sock)
        self.response.begin()
        equal(self.response.status, 200, "status of the scan")
        self.rows = []

    def row(self):
        """Reads one row; False at the end."""
        line = self.response.readline()
        if line:
            self.rows.append(line.decode().rstrip("\n").split(","))
        return bool(line)


def value(load, key):
    return (f"{load:06d}-{key:03d}-" + os.urandom(WIDE // 2).hex())[:WIDE]


def batch(load, keys):
    return "".join(f"{k},{value(load, k)}\n" for k in keys).encode()


def versions(rows):
    return {row[1].split("-")[0] for row in rows}


def sizes(node):
    return {name: os.stat(os.path.join(node.data, name, "data.mdb")).st_size
            for name in ("meta", "blocks-64k", "blocks-256k")}


def a_row_a_second_while_updates_fill_the_map():
    commas = {"column_separator": ","}
    with tide.Cluster(1, 1, participant=["meta_map_bytes=8m", f"blocks_map_bytes={MAP}"]) as c:
        node = c.participants[0]
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT, v STRING", "UNIQUE")
        c.good("t", batch(0, range(KEYS)), commas)
        scan = SlowScan(node.http, "t")
        check(scan.row(), "the scan is empty")
        # 1. Space comes and goes: many times the map, while the scan stands. Were its pages pinned,
        #    nothing of it could be used again.
        churned = 0
        for i in range(tide.count(12, 20, 80)):
            c.table(f"churn{i}", "k INT, v STRING")
            # What a drop frees is free once the collector has taken it out, a little later.
            body = batch(i, range(KEYS))
            until("there is room again", lambda: c.load(
                f"churn{i}", body, commas)["Status"] == "Success", 30)
            churned += len(body)
            c.sql(f"DROP TABLE churn{i} FORCE", "d")
            until("its tablet is gone", lambda: len(tide.ask(
                node.http, "GET", "/api/_tablets").text().splitlines()) <= 1, 30)
            check(scan.row(), "the scan ended early")
        check(churned > MAP, f"only {churned} bytes went through")
        # 2. Updates of the same keys, of which every version is kept, until the map is full.
        newest = dict.fromkeys(range(KEYS), 0)
        refused = 0
        end = time.monotonic() + tide.count(5, 20, 120)
        load = 0
        while refused < 5 or time.monotonic() < end:
            load += 1
            keys = range(load % 3, KEYS, 3)
            answer = c.load("t", batch(load, keys), {**commas, "label": f"u{load}"})
            if answer["Status"] == "Success":
                newest.update(dict.fromkeys(keys, load))
            else:
                tide.refused_with(answer, "no space left on participant 1")
                equal(c.state(f"u{load}"), "ABORTED", "state of a refused load")
                refused += 1
            check(scan.row(), "the scan ended early")
            check(load < 400, "the map never became full")
            if refused:
                time.sleep(0.2 if tide.SHORT else 1.0)
        for name, size in sizes(node).items():
            check(size <= MAP, f"{name} has {size} bytes")
        # A new reader works; what was refused is not there, what was acknowledged is.
        rows = c.read("t")
        equal(len(rows), KEYS, "rows of a new scan")
        equal({int(r[0]): int(r[1].split("-")[0]) for r in rows}, newest, "newest values")
        # 3. The slow scan ends: all its rows are of the version it began with.
        while scan.row():
            pass
        equal(len(scan.rows), KEYS, "rows of the slow scan")
        equal(versions(scan.rows), {"000000"}, "versions that the slow scan saw")
        # 4. With the history gone loads work again, with no other step.
        c.table("other", "k INT, v STRING", "UNIQUE")
        c.sql("DROP TABLE t FORCE", "d")
        until("loads work again", lambda: c.load("other", batch(1, range(KEYS)), {
            **commas, "label": "after"})["Status"] in ("Success", "Label Already Exists"), 60)
        equal(len(c.read("other")), KEYS, "rows afterwards")
        # And a restart finds everything.
        node.end()
        c.tool("start")
        equal(len(c.read("other")), KEYS, "rows after a restart")
        staged = tide.ask(node.http, "GET", "/api/_tablets").text().splitlines()
        check(len(staged) <= 2, staged)


if __name__ == "__main__":
    tide.run([a_row_a_second_while_updates_fill_the_map])
