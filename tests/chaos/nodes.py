# SPDX-License-Identifier: Apache-2.0
"""The processes of a cluster, each with a network, a disk and a clock that can be made to fail."""

import mmap
import os
import random
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import wire
from history import parse
from net import ADMIN_ADDRESS

DISK_BYTES = 4 << 30  # of a disk that can be filled; takes memory only for what is on it
RESERVE = "16m"
STARTING_S = 15  # also where it takes long to stop again
SHIM = os.path.join("tests", "libchaos_faults.so")
COMMON = [
    "allow_empty_password = true",
    f"disk_reserve_bytes = {RESERVE}",
]
OWN = {
    "coordinator": ["bootstrap = true", "snapshot_bytes = 1m", "participant_lease_ms = 3000"],
    "participant": [],
}
# What is done over and over as fast as it can be.
STORM = {"coordinator": ["snapshot_bytes = 64k"], "participant": ["heartbeat_ms = 50"]}


class FaultPage:
    """What faults.c reads: tests/chaos/faults.c has the same struct."""

    def __init__(self, path):
        self.path = path
        with open(path, "w+b") as file:
            file.truncate(4096)
            self.map = mmap.mmap(file.fileno(), 4096)

    def set_clock(self, seconds):
        struct.pack_into("q", self.map, 0, int(seconds * 1e9))

    def fail_syncs(self, count):
        struct.pack_into("i", self.map, 8, count)

    def syncs_failed(self):
        return struct.unpack_from("i", self.map, 12)[0]

    def failed_file(self):
        return self.map[16:256].split(b"\0", 1)[0].decode(errors="replace")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class Node:
    def __init__(self, cluster, role, number, own_disk):
        self.role = role
        self.id = number
        self.name = f"{role[0]}{number}"
        self.net = cluster.net
        self.directory = os.path.join(cluster.directory, f"{role}-{number}")
        self.data = os.path.join(self.directory, "data")
        self.conf = os.path.join(self.directory, f"{role}.conf")
        self.binary = os.path.join(cluster.binaries, f"tidegate-{role}")
        self.own_disk = own_disk
        self.peers = ""  # the coordinators that it is told of
        self.joins = False
        self.child = None
        self.up = False
        self.frozen = False
        self.excuse = None  # why it may die by itself
        self.claimed = threading.Lock()
        self.shim = cluster.shim
        os.makedirs(self.data)
        self.faults = FaultPage(os.path.join(self.directory, "faults"))
        if self.net:
            self.host, ports = self.net.add(self.name), [8030, 9010, 9020]
        else:
            self.host, ports = "127.0.0.1", free_ports(3)
        self.http_port, self.raft_port, self.rpc_port = ports
        self.http = f"{self.host}:{self.http_port}"
        if own_disk:
            self.disk("none", f"size={DISK_BYTES}", "-t", "tmpfs")

    def disk(self, what, options, *more):
        subprocess.run(["mount", *more, "-o", options, what, self.data], check=True)

    def disk_used(self):
        stat = os.statvfs(self.data)
        return (stat.f_blocks - stat.f_bfree) * stat.f_frsize

    def fill_disk(self, left):
        """Leaves so many bytes free on its disk."""
        self.disk("none", f"remount,size={self.disk_used() + left}")

    def empty_disk(self):
        self.disk("none", f"remount,size={DISK_BYTES}")

    def configure(self, cluster, options=()):
        self.extra = options
        lines = [f"{self.role}_id = {self.id}", f"data_dir = {self.data}", f"host = {self.host}"]
        lines += [f"http_port = {self.http_port}", f"rpc_port = {self.rpc_port}"]
        if self.role == "coordinator":
            lines += [f"raft_port = {self.raft_port}", f"coordinators = {self.peers}"]
        else:
            lines += [f"coordinators = {self.peers}"]
        lines += [f"cluster_secret = {cluster.secret}", *COMMON]
        if self.joins:
            options = ["join = true", "bootstrap = false", *options]
        known = {}
        options = list(options)
        for line in lines + OWN[self.role] + options:
            known[line.split("=", 1)[0].strip()] = line
        with open(self.conf + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(known.values()) + "\n")
        os.replace(self.conf + ".new", self.conf)

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        if self.alive():
            self.child.send_signal(number)

    def wait_gone(self, timeout):
        """Seconds until it was gone, or None."""
        begin = time.monotonic()
        try:
            self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - begin

    def kill(self):
        self.up = False
        self.signal(signal.SIGKILL)
        self.wait_gone(10)

    def terminate(self, timeout=10):
        self.up = False
        self.signal(signal.SIGTERM)
        took = self.wait_gone(timeout)
        if took is None:
            self.kill()
        return took

    def start(self):
        environment = dict(os.environ)
        if self.shim:
            environment["LD_PRELOAD"] = self.shim
            environment["TIDEGATE_CHAOS_FAULTS"] = self.faults.path
            asan = environment.get("ASAN_OPTIONS", "")
            environment["ASAN_OPTIONS"] = f"{asan}:verify_asan_link_order=0".lstrip(":")
        inside = self.net.inside(self.name) if self.net else []
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.child = subprocess.Popen(
                inside + [self.binary, "--config", self.conf],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )
        self.frozen = False
        self.started = time.monotonic()
        self.up = True

    def ended_well(self):
        """An orderly end. A signal may come before the program knows what to do with it."""
        young = time.monotonic() - self.started < STARTING_S
        return self.child.returncode == 0 or (young and self.child.returncode == -signal.SIGTERM)

    def complaints(self):
        """What a sanitizer has written, from its first word on."""
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as log:
            text = log.read()
        found = re.search(r"(Sanitizer: |runtime error: )", text)
        return text[max(0, found.start() - 200) : found.start() + 4000] if found else None

    def log_tail(self, lines=12):
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    def figures(self):
        """(open descriptors, resident KiB, threads, CPU ticks)."""
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as stat:
            ticks = stat.read().rsplit(")", 1)[1].split()
        resident = int(fields["RssAnon"].split()[0]) + int(fields["RssShmem"].split()[0])
        return (
            len(os.listdir(f"/proc/{self.child.pid}/fd")),
            resident,
            int(fields["Threads"]),
            int(ticks[11]) + int(ticks[12]),
        )


class Nodes:
    """All processes of one cluster."""

    def __init__(self, binaries, directory, net, seed=0, options=(), coordinators=3, participants=3):
        """options: "coordinator:name=value" or "participant:…"."""
        self.directory = directory
        self.binaries = os.path.abspath(binaries)
        self.net = net
        self.secret = secrets.token_hex(16)
        self.former = []
        shim = os.path.join(self.binaries, SHIM)
        self.shim = shim if os.path.exists(shim) else None
        self.options = {
            role: [o.split(":", 1)[1].replace("=", " = ", 1) for o in options if o.startswith(role)]
            for role in OWN
        }
        # A network of its own means mounts of its own, too.
        fillable = random.Random(seed)
        disk_c = {fillable.randint(1, coordinators)} if net else set()
        disk_p = {fillable.randint(1, participants)} if net else set()
        self.coordinators = [
            Node(self, "coordinator", i + 1, i + 1 in disk_c) for i in range(coordinators)
        ]
        self.participants = [
            Node(self, "participant", i + 1, i + 1 in disk_p) for i in range(participants)
        ]
        for node in self.all:
            node.peers = self.addresses(node.role)
            node.configure(self, self.options[node.role])
            node.start()
        self.wait_serving()

    @property
    def all(self):
        return self.coordinators + self.participants

    def addresses(self, role, more=()):
        """The option coordinators of a node."""
        known = self.coordinators + list(more)
        if role == "participant":
            return ",".join(f"{c.host}:{c.rpc_port}" for c in known)
        return ",".join(f"{c.id}={c.host}:{c.raft_port}:{c.rpc_port}:{c.http_port}" for c in known)

    def new_coordinator(self, number):
        """One that waits to be added. It is not among the others before enlist()."""
        node = Node(self, "coordinator", number, False)
        node.joins = True
        node.peers = self.addresses("coordinator", [node])
        node.configure(self, self.options["coordinator"])
        node.start()
        return node

    def enlist(self, node):
        """From now on it is one of the coordinators. The participants hear so from the cluster; for
        those that are down while all that they know are replaced, an operator changes the option."""
        self.coordinators = self.coordinators + [node]
        for participant in self.participants:
            participant.peers = self.addresses("participant")
            participant.configure(self, participant.extra)

    def dismiss(self, node):
        self.coordinators = [c for c in self.coordinators if c is not node]
        self.former.append(node)

    def members(self):
        """What the cluster says of its coordinators: id -> entry."""
        for node in self.coordinators:
            try:
                answer = parse(self.ask(node, "/api/coordinators", timeout=3).body)
                return {entry["id"]: entry for entry in answer["data"]["coordinators"]}, answer["data"]
            except (wire.Broken, KeyError, TypeError):
                continue
        return None, None

    def order(self, what, timeout=5):
        """A change of the coordinators, asked for once at one of them."""
        try:
            node = random.choice(self.coordinators)
            source = ADMIN_ADDRESS if self.net else None
            path = f"/api/coordinators/{what}"
            return wire.ask(node.http, "POST", path, timeout=timeout, source=source).body.decode()
        except wire.Broken as broken:
            return str(broken)

    def wait_serving(self, timeout=120):
        """Until there is a leader and every participant serves."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                if self.leader() and all(
                    self.ask(node, "/api/health").status == 200 for node in self.participants
                ):
                    return
            except wire.Broken:
                pass
            time.sleep(0.1)
        tails = "\n".join(f"{node.name}: {node.log_tail(4)}" for node in self.all)
        raise RuntimeError(f"the cluster does not serve after {timeout} s\n{tails}")

    def ask(self, node, path, timeout=1.0):
        """A question that no fault of the network concerns."""
        source = ADMIN_ADDRESS if self.net else None
        return wire.ask(node.http, "GET", path, timeout=timeout, source=source)

    def leader(self):
        """The coordinator that leads in the newest term, as far as any of them tells."""
        found = (-1, None)
        for node in self.coordinators:
            if not node.up or node.frozen:
                continue
            try:
                text = self.ask(node, "/metrics").body.decode()
            except wire.Broken:
                continue
            if "\ntidegate_raft_is_leader 1\n" in text:
                term = int(text.split("\ntidegate_raft_term ", 1)[1].split(None, 1)[0])
                found = max(found, (term, node), key=lambda pair: pair[0])
        return found[1]

    def storm(self, on):
        """Rolling restart with tiny intervals, or with the usual ones."""
        for node in self.all:
            more = STORM[node.role] if on else []
            with node.claimed:
                node.configure(self, self.options[node.role] + more)
                node.terminate()
                node.start()
            time.sleep(0.5)

    def keep(self):
        """Disks of memory go with this process: a copy of what is on them stays."""
        for node in self.all:
            if node.own_disk:
                shutil.copytree(node.data, node.data + "-kept", dirs_exist_ok=True)

    def close(self):
        for node in self.all + self.former:
            node.signal(signal.SIGCONT)
            if node.child:
                node.kill()

    def leave_disks(self):
        for node in self.all:
            if node.own_disk:
                subprocess.run(["umount", node.data], check=False)
