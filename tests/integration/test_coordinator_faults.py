#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coordinators that stop, run fast, or have a disk that is full, dead or hangs (O26, O30; rules 14
and 19): another one leads soon, nothing that was answered is lost, and the bad one comes back."""

import fcntl
import http.client
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import steady
import tide
from tide import check, equal, until

EXT4_IOC_SHUTDOWN = 0x8004587D
DISK_BYTES = 96 << 20
# Built where something may be preloaded: sanitizers want to be loaded first.
SHIM = os.path.join(tide.BIN, "tests", "libtidegate_wall_shim.so")
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def begin(c):
    c.sql("CREATE DATABASE d")
    c.table("t", "k INT")


def number(node):
    return int(node.name.split("-")[1])


def let_lead(c, node):
    """Until it does; transfers may come to nothing."""
    def led():
        if c.leader() is node:
            return True
        tide.ask(c.any(), "POST", f"/api/coordinators/transfer?id={number(node)}")
        time.sleep(0.2)
        return c.leader() is node
    until(f"{node.name} leads", led)


def state(node):
    return tide.ask(node.http, "GET", "/api/state").json()["data"]


def equal_states(c):
    def same():
        states = [state(node) for node in c.coordinators]
        if len({s["applied_index"] for s in states}) > 1:
            return False
        equal(len({s["state_hash"] for s in states}), 1, f"different states at one index: {states}")
        return True
    until("all coordinators have applied the same", same, 120)


def another_leads(c, old, seconds=60):
    """The new leader. The old one may answer nothing, or not know yet that it leads no more."""
    def find():
        for node in c.coordinators:
            try:
                if node is not old and node.alive() and node.metric("tidegate_raft_is_leader") == 1:
                    return node
            except (OSError, http.client.HTTPException):
                pass
        return None
    return until("another coordinator leads", find, seconds)


def a_leader_that_stops_hands_over_and_no_commit_fails():
    with tide.Cluster(3, 1) as c:
        begin(c)
        gaps = []
        for round_ in range(tide.count(2, 5, 20)):
            leader = c.leader()
            others = [node.http for node in c.coordinators if node is not leader]
            with steady.Loads(c, "t", threads=4, first=100000 * round_,
                              nodes=lambda asked=others: asked) as loads:
                loads.go_on(30)
                leader.send(signal.SIGTERM)
                leader.wait_gone()
                loads.go_on(30)
            equal(loads.unknown, [], "loads whose answer was lost")
            equal(list(loads.refused.values())[:3], [], "refused loads")
            check("leadership_handed_over" in leader.log(), leader.log_tail())
            gaps.append(loads.longest_gap())
            leader.start()
        gaps.sort()
        print(f"the longest pauses of commits around {len(gaps)} hand-overs: "
              + " ".join(f"{gap * 1000:.0f}" for gap in gaps) + " ms")
        # Without a hand-over an election timeout of 600 to 1200 ms would pass first.
        check(gaps[len(gaps) // 2] < (2.0 if tide.SHORT else 0.5), "pauses at hand-overs:", gaps)


def snapshots_reach_those_far_behind_and_new_ones_through_kills():
    """O26: kills at any moment, snapshots all the time; equal states at equal indexes in the end."""
    chance = tide.chance()
    with tide.Cluster(3, 1, coordinator=["snapshot_bytes=64k"]) as c:
        begin(c)
        end = time.monotonic() + tide.count(6, 25, 240)
        kills = 0
        with steady.Loads(c, "t", threads=3, patience=30) as loads:
            far = chance.choice(c.coordinators)
            far.end()  # the log goes on without it until it needs a snapshot
            loads.go_on(200, 120)
            far.start(wait=False)
            while time.monotonic() < end:
                node = chance.choice(c.coordinators)
                time.sleep(chance.uniform(0.05, 0.6))
                if node.alive():
                    node.end()
                    kills += 1
                time.sleep(chance.uniform(0, 0.3))
                node.start(wait=False)
            for node in c.coordinators:
                if not node.alive():
                    node.start(wait=False)
            loads.go_on(20, 120)

            # One is wiped and replaced; the new one is killed again and again while it joins.
            lost = next(node for node in c.coordinators if node is not c.leader())
            lost.end()
            for name in os.listdir(lost.data):
                path = os.path.join(lost.data, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            note_pids(c)
            c.coordinators.remove(lost)
            c.tool("drop-coordinator", lost.name)
            failed = []
            adding = threading.Thread(
                target=lambda: failed.extend([] if quietly(c.tool, "add-coordinator") else [1]))
            adding.start()
            fresh = until("the new one was started", lambda: newest(c))
            for _ in range(6):
                time.sleep(chance.uniform(0.02, 0.5))
                fresh.end()
                kills += 1
                fresh.start(wait=False)
            adding.join(timeout=180)
            check(not adding.is_alive(), "add-coordinator does not end")
            c.coordinators.append(fresh)
            until("the new one votes", lambda: votes(c, fresh), 120)
            loads.go_on(20, 120)
        rows = loads.check(allow_refused=True)
        restored = sum(node.log().count("raft restored") for node in c.coordinators)
        print(f"{rows} loads, {kills} kills, {restored} snapshots restored")
        check(restored > 0, "no snapshot was ever restored")
        equal_states(c)


def note_pids(c):
    """The tool shall know the processes that the test started."""
    path = os.path.join(c.folder, "cluster.json")
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    for role in ("coordinator", "participant"):
        for entry in known[role + "s"]:
            for node in c.nodes():
                if node.name == f"{role}-{entry['id']}":
                    entry["pid"] = node.pid
    with open(path, "w", encoding="utf-8") as file:
        json.dump(known, file, separators=(",", ":"))


def quietly(call, *words):
    try:
        call(*words)
        return True
    except tide.Failed as failure:
        print(failure)
        return False


def newest(c):
    """The coordinator that cluster.json has and the test does not know yet."""
    known = {node.name for node in c.coordinators}
    with open(os.path.join(c.folder, "cluster.json"), encoding="utf-8") as file:
        for entry in json.load(file)["coordinators"]:
            if f"coordinator-{entry['id']}" not in known and entry["pid"]:
                return tide.Node(c, "coordinator", entry)
    return None


def votes(c, node):
    try:
        data = tide.ask(c.any(), "GET", "/api/coordinators").json()["data"]
        return any(one["id"] == number(node) and one["role"] == "voter"
                   for one in data["coordinators"])
    except (OSError, http.client.HTTPException, TypeError, KeyError):
        return False


def a_coordinator_whose_clock_runs_ahead_neither_stamps_nor_leads():
    """Rule 14."""
    if not os.path.exists(FAKETIME) or not os.path.exists(SHIM):
        tide.skip(f"wants {FAKETIME}, and no sanitizer")
    with tide.Cluster(3, 1) as c:
        begin(c)

        def set_clock(node, seconds):
            path = os.path.join(node.folder, "faketime")
            with open(path + ".new", "w", encoding="ascii") as file:
                file.write(f"{seconds:+d}s\n")
            os.rename(path + ".new", path)

        for node in c.coordinators:
            set_clock(node, 0)
            node.end(signal.SIGTERM)
            node.start({"LD_PRELOAD": FAKETIME, "FAKETIME_NO_CACHE": "1",
                        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
                        "FAKETIME_TIMESTAMP_FILE": os.path.join(node.folder, "faketime")})
        old = c.leader()
        with steady.Loads(c, "t") as loads:
            loads.go_on(10)
            set_clock(old, 600)
            new = another_leads(c, old, 30)
            loads.go_on(20)
            # Nor does it when it is told to.
            tide.ask(new.http, "POST", f"/api/coordinators/transfer?id={number(old)}")
            loads.go_on(20)
            check(another_leads(c, old, 30) is not old, "it leads")
            now = time.time()
            answer = tide.ask(c.participants[0].http, "GET", "/api/d/t/_scan?limit=1")
            stamp = int(answer.headers["x-tidegate-as-of"]) / 1e6
            check(stamp < now + 5, f"a stamp is {stamp - now:.1f} s ahead")
            listed = tide.ask(new.http, "GET", "/api/coordinators").json()["data"]["coordinators"]
            ahead = next(one for one in listed if one["id"] == number(old))["clock_ahead_us"]
            check(590e6 < ahead < 610e6, "clock_ahead_us:", ahead)
            # A clock that is right again is as good as any.
            set_clock(old, 0)
            let_lead(c, old)
            loads.go_on(10)
            # One that is behind hinders nobody and may lead.
            set_clock(old, -3600)
            loads.go_on(20)
            equal(c.leader().name, old.name, "the leader, whose clock was set back")
            set_clock(old, 0)
        loads.check(allow_refused=True)


def nothing_is_begun_while_a_voter_s_disk_is_under_its_reserve():
    """Rule 19."""
    with tide.Cluster(3, 1) as c:
        begin(c)
        leader = c.leader()
        short = next(node for node in c.coordinators if node is not leader)
        opened = c.good("t", b"1\n", {"label": "opened", "two_phase_commit": "true"})["TxnId"]
        short.end(signal.SIGTERM)
        short.set_option("disk_reserve_bytes", "1000g")
        short.start()

        def refused():
            answer = c.load("t", b"2\n", {"label": f"late-{time.monotonic_ns()}"})
            return answer["Status"] != "Success" and answer
        answer = until("loads are refused", refused)
        check("space" in answer["Message"], answer)
        equal(c.end_txn(opened, "commit")["status"], "Success", "a commit meanwhile")
        equal(c.state("opened"), "VISIBLE")
        # It must not lead, either.
        tide.ask(c.any(), "POST", f"/api/coordinators/transfer?id={number(short)}")
        another_leads(c, short)
        short.end(signal.SIGTERM)
        short.set_option("disk_reserve_bytes", "1m")
        short.start()
        until("loads work again", lambda: not refused())
        # A dead one says nothing, and hinders nobody.
        short.end()
        c.good("t", b"3\n", {"label": "without-it"})


# ---- O30: disks ----

class Disk:
    """An ext4 on a loop device with a stopped coordinator's data."""

    def __init__(self, c, node):
        self.node = node
        self.image = os.path.join(c.top, node.name + ".img")
        self.place = os.path.join(c.top, "mounts", node.name)
        with open(self.image, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", self.image], check=True)
        os.mkdir(self.place)
        self.mount()
        shutil.copytree(node.data, os.path.join(self.place, "data"))
        os.sync()  # a power cut must not take the copy away
        node.data = os.path.join(self.place, "data")
        node.set_option("data_dir", node.data)

    def mount(self):
        done = subprocess.run(["mount", "-o", "loop", self.image, self.place], check=False,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            tide.skip(f"no loop device can be mounted: {done.stderr.strip()}")

    def unmount(self):
        until("the disk can be unmounted", lambda: subprocess.run(
            ["umount", self.place], check=False, stderr=subprocess.DEVNULL).returncode == 0, 30, 0.3)

    def fill(self):
        with open(os.path.join(self.place, "stranger"), "wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def free(self):
        os.unlink(os.path.join(self.place, "stranger"))

    def shut(self):
        """As if its power was cut: what is not synced is gone, and all calls fail."""
        fd = os.open(self.place, os.O_RDONLY)
        fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", 2))
        os.close(fd)

    def hang(self):
        # Whatever becomes of this test, the disk must not hang for ever.
        self.rescue = subprocess.Popen(["sh", "-c", f"sleep 100; fsfreeze -u {self.place}"],
                                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       start_new_session=True)
        subprocess.run(["fsfreeze", "-f", self.place], check=True)

    def thaw(self):
        subprocess.run(["fsfreeze", "-u", self.place], check=True)
        os.killpg(self.rescue.pid, signal.SIGKILL)
        self.rescue.wait()


def with_a_bad_disk_under_the_leader(spoil, repair):
    tide.need_tools("mkfs.ext4", "losetup", "mount", "umount", "fsfreeze")
    with tide.Cluster(3, 1) as c:
        begin(c)
        node = c.coordinators[0]
        node.end(signal.SIGTERM)
        disk = Disk(c, node)
        node.start()
        opened = [c.good("t", f"{k}\n".encode(), {"label": f"o-{k}", "two_phase_commit": "true"})
                  ["TxnId"] for k in range(1000, 1040)]
        let_lead(c, node)
        others = [other.http for other in c.coordinators if other is not node]
        with steady.Loads(c, "t", nodes=lambda: others, patience=20) as loads:
            loads.go_on(10)
            begun = time.monotonic()
            spoil(disk)
            new = another_leads(c, node, 10)
            took = time.monotonic() - begun
            for txn in opened[:20]:
                answer = c.end_txn(txn, "commit", node=new.http, timeout=20)
                equal(answer["status"], "Success", "a commit through the new leader")
            print(f"another one leads after {took:.1f} s, 20 commits after "
                  f"{time.monotonic() - begun:.1f} s")
            repair(disk)
            node.wait_serves()
            loads.go_on(20)
        for txn in opened[20:]:
            equal(c.end_txn(txn, "commit")["status"], "Success", "a commit after the repair")
        # It is a member like the others again: it can even lead.
        let_lead(c, node)
        # How much room there is it measures now and then; what is refused meanwhile has begun nothing.
        until("the one that leads again has room", lambda: c.load(
            "t", b"-1\n", {"label": "led-again"})["Status"] in ("Success", "Label Already Exists"), 30)
        equal_states(c)
        states = {k: c.state(f"o-{k}") for k in range(1000, 1040)}
        equal(set(states.values()), {"VISIBLE"}, "states of what was committed")
        rows = {int(row[0]) for row in c.read("t")}
        missing = (set(loads.done) | set(range(1000, 1040)) | {-1}) - rows
        equal(sorted(missing)[:5], [], "answered, but not there")
        node.end(signal.SIGTERM)
        disk.unmount()


def another_one_leads_when_the_leader_s_disk_is_full():
    with_a_bad_disk_under_the_leader(Disk.fill, Disk.free)


def another_one_leads_when_the_leader_s_disk_dies():
    def repair(disk):
        disk.node.end()
        disk.unmount()
        disk.mount()
        disk.node.start()
    with_a_bad_disk_under_the_leader(Disk.shut, repair)


def another_one_leads_when_the_leader_s_disk_hangs():
    def repair(disk):
        disk.thaw()

        def settled():
            """It goes on, or its end was only held up by the disk."""
            if not disk.node.alive():
                disk.node.start(wait=False)
            try:
                return disk.node.metric("tidegate_raft_append_ms") == 0
            except (OSError, http.client.HTTPException):
                return False
        until("the disk takes the log again", settled)
    with_a_bad_disk_under_the_leader(Disk.hang, repair)


if __name__ == "__main__":
    tide.run([a_leader_that_stops_hands_over_and_no_commit_fails,
              snapshots_reach_those_far_behind_and_new_ones_through_kills,
              a_coordinator_whose_clock_runs_ahead_neither_stamps_nor_leads,
              nothing_is_begun_while_a_voter_s_disk_is_under_its_reserve,
              another_one_leads_when_the_leader_s_disk_is_full,
              another_one_leads_when_the_leader_s_disk_dies,
              another_one_leads_when_the_leader_s_disk_hangs])
