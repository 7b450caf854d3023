#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Participants on disks that are full (O29): loads are refused in clear words, everything else goes
on, also after kill -9, and loads work again as soon as there is room. Wants root (loop devices)."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import check, equal, until

MIB = 1 << 20
DISK_BYTES = 64 * MIB


def onto_small_disk(cluster, node):
    """Moves a stopped node's data onto an ext4 of its own, as small as a disk can be."""
    image = os.path.join(cluster.top, node.name + ".img")
    place = os.path.join(cluster.top, "mounts", node.name)
    with open(image, "wb") as file:
        file.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    os.mkdir(place)
    done = subprocess.run(["mount", "-o", "loop", image, place], check=False,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        tide.skip(f"no loop device can be mounted: {done.stderr.strip()}")
    shutil.copytree(node.data, os.path.join(place, "data"))
    node.data = os.path.join(place, "data")
    node.set_option("data_dir", node.data)
    node.set_option("disk_reserve_bytes", "8m")
    return place


def free_bytes(node):
    disk = os.statvfs(node.data)
    return disk.f_bavail * disk.f_frsize


def rows_of(load, bytes_of_text=64):
    """About a mebibyte that does not compress."""
    lines = [f"{load * 100000 + i},{os.urandom(bytes_of_text // 2).hex()}\n" for i in range(15000)]
    return "".join(lines).encode(), len(lines)


def is_full(answer):
    return answer["Status"] == "Fail" and "disk full: no space left" in answer["Message"]


def load_until_full(c, table, first, node=None):
    """Loads until one is refused; (acknowledged rows, number of the next load)."""
    rows = 0
    for load in range(first, first + 400):
        body, count = rows_of(load)
        answer = c.load(table, body, {"column_separator": ",", "label": f"{table}-{load}"}, node=node)
        if answer["Status"] != "Success":
            check(is_full(answer), "refused with other words:", answer)
            equal(answer["NumberLoadedRows"], 0, "rows of a refused load")
            equal(c.state(f"{table}-{load}"), "ABORTED" if answer["TxnId"] > 0 else "UNKNOWN",
                  "state of a refused load")
            return rows, load
        rows += count
    raise tide.Failed("the disks never became full")


def count_rows(c, table):
    return len(c.read(table, "&columns=k"))


def fill(node):
    """Somebody else takes what is left of the disk, to the last block."""
    path = os.path.join(os.path.dirname(node.data), "stranger")
    with open(path, "wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return path


def wait_dropped(c, tables):
    """Until the participants have dropped what is not in tables' tablets any more."""
    for node in c.participants:
        until(f"{node.name} drops the table", lambda n=node: len(tide.ask(
            n.http, "GET", "/api/_tablets").text().splitlines()) <= tables, 60)


def all_participants_full():
    with tide.Cluster(1, 3) as c:
        c.sql("CREATE DATABASE d")
        for node in c.participants:
            c.tool("stop", node.name)
            onto_small_disk(c, node)
            node.start()
        c.table("old", "k INT, v STRING", buckets=2)
        c.table("new", "k INT, v STRING", buckets=2)
        body, old_rows = rows_of(0)
        for i in range(10):
            c.good("old", body, {"column_separator": ","})
        c.good("new", b"-1,two-phase\n", {"column_separator": ",", "label": "held",
                                          "two_phase_commit": "true"})
        rows, load = load_until_full(c, "new", 1)
        print(f"    full after {load} loads, free: {[free_bytes(n) // 1024 for n in c.participants]}")
        for node in c.participants:
            check(free_bytes(node) > 0, f"{node.name}: nothing is left for emergencies")
        # Reads go on; what was precommitted can be committed, another one aborted.
        equal(count_rows(c, "new"), rows, "rows while the disks are full")
        check("Success" == c.end_txn(txn_of(c, "held"), "commit")["status"], "commit on full disks")
        rows += 1
        equal(count_rows(c, "new"), rows, "rows with the committed one")
        # Strangers take the rest, every node dies and starts again.
        strangers = [fill(node) for node in c.participants]
        for node in c.participants:
            check(free_bytes(node) < 64 * 1024, "the disk is not full")
        check(is_full(c.load("new", b"1,x\n", {"column_separator": ","})), "a load on a full disk")
        for node in c.participants:
            node.end()
        for node in c.participants:
            node.start()
        equal(count_rows(c, "new"), rows, "rows after kill -9 on full disks")
        equal(count_rows(c, "old"), 10 * old_rows, "rows of the old table")
        check(is_full(c.load("new", b"1,x\n", {"column_separator": ","})), "a load on a full disk")
        # Dropping a table works on a full disk; with its space alone loads work again.
        c.sql("DROP TABLE old", "d")
        wait_dropped(c, 2)
        for path in strangers:
            os.unlink(path)
        until("loads work again by themselves",
              lambda: c.load("new", b"7,y\n", {"column_separator": ",", "label": "again"}
                             )["Status"] in ("Success", "Label Already Exists"), 30)
        rows += 1
        for i in range(3):
            body, some = rows_of(1000 + i)
            c.good("new", body, {"column_separator": ","})
            rows += some
        equal(count_rows(c, "new"), rows, "rows at the end")
        for node in c.participants:
            check(node.alive(), f"{node.name} died")


def one_participant_full():
    """Two of three copies take the loads; the third one is repaired when it has room again."""
    with tide.Cluster(1, 3) as c:
        c.sql("CREATE DATABASE d")
        node = c.participants[0]
        c.tool("stop", node.name)
        onto_small_disk(c, node)
        node.start()
        c.table("t", "k INT, v STRING", buckets=2)
        rows = 0
        for load in range(70):
            body, count = rows_of(load)
            c.good("t", body, {"column_separator": ",", "label": f"t-{load}"},
                   node=c.participants[load % 3].http)
            rows += count
        check(free_bytes(node) < 8 * MIB, "the small disk never became full")
        check(free_bytes(node) > 0, "nothing is left for emergencies")
        until("its copies are behind", lambda: c.coordinators[0].metric("tidegate_replicas_behind") > 0)
        for other in c.participants:
            equal(count_rows_at(other, "t"), rows, f"rows, asked at {other.name}")
        node.end()
        node.start()
        equal(count_rows_at(node, "t"), rows, "rows after kill -9")
        # The operator makes room: a larger disk.
        node.end()
        larger = os.path.join(c.folder, node.name, "larger")
        shutil.copytree(node.data, larger)
        node.set_option("data_dir", larger)
        node.start()
        until("its copies are good again",
              lambda: c.coordinators[0].metric("tidegate_replicas_behind") == 0, 120)
        equal(len({tuple(sorted(tide.ask(n.http, "GET", "/api/_tablets").text().splitlines()))
                   for n in c.participants}), 1, "different tablets")
        equal(count_rows_at(node, "t"), rows, "rows after the repair")


def count_rows_at(node, table):
    answer = tide.ask(node.http, "GET", f"/api/d/{table}/_scan?format=csv&columns=k")
    check(answer.status == 200, answer.status, answer.body[:300])
    return answer.body.count(b"\n")


def txn_of(c, label):
    data = c.sql(f"SHOW TRANSACTION WHERE label = '{label}'", "d")
    return int(data["data"][0][0])


if __name__ == "__main__":
    tide.need_tools("mkfs.ext4", "mount")
    tide.run([all_participants_full, one_participant_full])
