#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hundreds of clients that stand still (O25): bodies that stop, heads that never end, readers that do
not read. Each ends in time and leaves nothing; others are not slowed."""

import os
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import check, equal, raw_answer, raw_head, raw_open, until

NORMAL_S = 2  # a normal load beside all of them


def normal_load_is_quick(c, node, rows, what):
    """The quickest of some: this machine may have other things to do."""
    best = 1e9
    for i in range(5):
        begin = time.monotonic()
        c.good("t", b"%d\n" % i, node=node)
        best = min(best, time.monotonic() - begin)
        rows += 1
        if best < NORMAL_S / 4:
            break
    check(best < NORMAL_S * (4 if tide.SHORT else 1), f"beside {what} a load takes {best:.2f} s")
    print(f"    beside {what}: {best * 1000:.0f} ms")
    return rows


def threads_of(node):
    with open(f"/proc/{node.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))


def bodies_that_stop():
    count = tide.count(40, 200, 900)
    with tide.Cluster(1, 1, coordinator=["participant_lease_ms=30000"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        node = c.participants[0]
        rows = normal_load_is_quick(c, node.http, 0, "nobody")
        before = node.descriptors()
        threads = threads_of(node)
        timeout = 8 if tide.SHORT else 5
        stalled = []
        begin = time.monotonic()
        for i in range(count):
            sock = raw_open(node.http, 90)
            # Every second one chunked, of which nobody knows how long it will be.
            length = {"Content-Length": 100} if i % 2 else {"Transfer-Encoding": "chunked"}
            sock.sendall(raw_head("PUT", "/api/d/t/_stream_load", {
                **length, "timeout": timeout, "label": f"stalled-{i}"}) +
                (b"1\n" if i % 2 else b"2\r\n1\n\r\n"))
            stalled.append((sock, time.monotonic()))
        rows = normal_load_is_quick(c, node.http, rows, f"{count} stalled bodies")
        first = None
        for sock, sent in stalled:
            answer = raw_answer(sock).json()
            took = time.monotonic() - sent
            first = first or took
            equal((answer["Status"], answer["NumberLoadedRows"]), ("Fail", 0), answer)
            check("TIMEOUT" in answer["Message"], answer["Message"])
            sock.close()
        check(first < timeout + 5, f"the first one was answered after {first:.1f} s")
        took = time.monotonic() - begin
        check(took < timeout + (60 if tide.SHORT else 15), f"all took {took:.1f} s")
        for i in range(0, count, 7):
            equal(c.state(f"stalled-{i}"), "ABORTED", f"state of stalled-{i}")
        equal(len(c.read("t")), rows, "rows")
        c.good("t", b"7\n", {"label": "stalled-0"})
        until("descriptors are given back", lambda: node.descriptors() <= before + 4)
        until("threads end", lambda: threads_of(node) <= threads + 8, 60)
        equal(node.metric("tidegate_rowsets_open"), 0, "rowsets being written")


def heads_that_never_end():
    count = tide.count(60, 300, 2000)
    with tide.Cluster(1, 1) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        rows = 0
        for node in (c.participants[0], c.coordinators[0]):
            before = node.descriptors()
            half = []
            for i in range(count):
                sock = raw_open(node.http, 90)
                sock.sendall((b"", b"PUT", b"PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\n",
                              b"PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\nX-")[i % 4])
                half.append(sock)
            rows = normal_load_is_quick(c, c.coordinators[0].http, rows,
                                        f"{count} half heads on {node.name}")
            # None is kept for ever. Those that said nothing at all may idle longer.
            begin = time.monotonic()
            for i, sock in enumerate(half):
                sock.settimeout(90)
                try:
                    while sock.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
                except socket.timeout as error:
                    raise tide.Failed(f"half head {i} is kept by {node.name}") from error
                sock.close()
            print(f"    {node.name} let go of them within {time.monotonic() - begin:.1f} s")
            until("descriptors are given back", lambda n=node, b=before: n.descriptors() <= b + 4)
        equal(len(c.read("t")), rows, "rows")


def readers_that_do_not_read():
    count = tide.count(20, 80, 200)
    with tide.Cluster(1, 1, participant=["scans_max=8"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        c.table("big", "k INT, v STRING")
        for load in range(6):
            c.good("big", b"".join(b"%d,%s\n" % (load * 100000 + i, os.urandom(50).hex().encode())
                                   for i in range(20000)), {"column_separator": ","})
        node = c.participants[0]
        readers = []
        before = node.descriptors()
        memory = node.memory_kib()
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(tide.split(node.http))
            sock.sendall(raw_head("GET", "/api/d/big/_scan?format=csv", {}))
            readers.append(sock)
        rows = normal_load_is_quick(c, node.http, 0, f"{count} readers that do not read")
        # Memory is bounded by the places, of which there are twice scans_max, not by the readers.
        grown = node.memory_kib() - memory
        check(grown < 16 * 16 * 1024 or tide.SHORT, f"{grown} KiB for {count} readers")
        # Small reads come through although all places of scans are taken.
        begin = time.monotonic()
        equal(len(c.read("t")), rows, "rows")
        print(f"    a small read beside them: {(time.monotonic() - begin) * 1000:.0f} ms")
        for sock in readers:
            sock.close()
        until("descriptors are given back", lambda: node.descriptors() <= before + 4)
        equal(len(c.read("big", "&columns=k")), 120000, "rows of the big table")


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    tide.run([bodies_that_stop, heads_that_never_end, readers_that_do_not_read])
