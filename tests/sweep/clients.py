# SPDX-License-Identifier: Apache-2.0
"""Clients that load, remember what they were told, and look afterwards whether it is so.

Each load writes the rows (i, 0) … (i, ROWS - 1) under a number of its own: what is lost, doubled,
torn or should not be there shows by counting."""

import json
import random
import threading
import time
import zlib

from cluster import wire

DB = "sweep"
ROWS = 8
DDL = (
    "CREATE TABLE {} (i BIGINT NOT NULL, s INT NOT NULL, c BIGINT, pad VARCHAR(65000)) "
    "DUPLICATE KEY(i, s) DISTRIBUTED BY HASH(i, s) BUCKETS {} "
    'PROPERTIES ("replication_num" = "{}")'
)
VISIBLE_WAIT_S = 1.9  # a commit that is answered earlier is visible
PATIENCE_S = 60  # of a client that wants to know an outcome


class Load:
    def __init__(self, number, label):
        self.number = number
        self.label = label
        self.told = "unknown"  # "committed", "visible", "aborted": what some answer has said


class Book:
    """All loads into one table, and what was read of it as of versions."""

    def __init__(self, table):
        self.table = table
        self.lock = threading.Lock()
        self.loads = {}
        self.reads = {}  # version -> checksum of what was read
        self.next = 0

    def new(self):
        with self.lock:
            self.next += 1
            load = Load(self.next, f"{self.table}-{self.next}")
            self.loads[load.number] = load
            return load

    def told(self, what):
        with self.lock:
            return {number for number, load in self.loads.items() if load.told == what}


def statement(nodes, text, db=DB, seconds=PATIENCE_S):
    """A statement, asked until it is answered."""
    deadline = time.monotonic() + seconds
    body = json.dumps({"stmt": text}).encode()
    path = ("/api/query/default_cluster/" + db).rstrip("/")
    while True:
        try:
            answer = wire.ask(random.choice(nodes).http, "POST", path, body=body).json()
            if answer["code"] == 0:
                return answer["data"]
        except wire.Broken as broken:
            answer = broken
        if time.monotonic() > deadline:
            raise RuntimeError(f"{text}: {answer}")
        time.sleep(0.1)


def make_table(cluster, table, buckets=4, copies=3):
    statement(cluster.coordinators, f"CREATE DATABASE IF NOT EXISTS {DB}", "")
    text = DDL.format("IF NOT EXISTS " + table, buckets, copies)
    statement(cluster.coordinators, text)


class Client:
    """Loads into one table. At an answer that says committed, `on_ack` is called at once."""

    def __init__(self, cluster, book, seed, on_ack=None, on_commit=None):
        self.cluster = cluster
        self.book = book
        self.random = random.Random(seed)
        self.on_ack = on_ack or (lambda: None)
        self.on_commit = on_commit or (lambda: None)

    def body(self, load, as_json=False):
        size = self.random.choices([0, 3, 40, 300, 5000], [8, 8, 8, 4, 1])[0]
        rows = []
        for s in range(ROWS):
            pad = self.random.randbytes((size + 1) // 2).hex()
            rows.append({"i": load.number, "s": s, "c": zlib.crc32(pad.encode()), "pad": pad})
        if as_json:
            return "\n".join(json.dumps(row) for row in rows).encode()
        return "\n".join(",".join(str(value) for value in row.values()) for row in rows).encode()

    def upload(self, load, two_phase=False, node=None, as_json=False, timeout=30):
        """The answer to a load. An answer that decides is noted."""
        headers = {"label": load.label, "timeout": timeout, "column_separator": ","}
        if two_phase:
            headers["two_phase_commit"] = "true"
        if as_json:
            headers.update({"format": "json", "read_json_by_line": "true"})
        node = node or self.random.choice(self.cluster.participants)
        path = f"/api/{DB}/{self.book.table}/_stream_load"
        body = self.body(load, as_json)
        answer = wire.ask(node.http, "PUT", path, headers, body, timeout + 15).json()
        status = answer.get("Status", answer.get("status"))
        if status in ("Success", "Publish Timeout") and not two_phase:
            load.told = "visible" if status == "Success" else "committed"
            self.on_ack()
        return status, answer

    def operate(self, load, operation, node=None):
        """One call of commit or abort; True once the outcome is known."""
        node = node or self.random.choice(self.cluster.nodes)
        headers = {"label": load.label, "txn_operation": operation}
        begin = time.monotonic()
        answer = wire.ask(node.http, "PUT", f"/api/{DB}/_stream_load_2pc", headers).json()
        msg = answer.get("msg", "")
        if answer.get("status") == "Success":
            load.told = "aborted"
            if operation == "commit":
                seen = time.monotonic() - begin < VISIBLE_WAIT_S
                load.told = "visible" if seen else "committed"
                self.on_ack()
        elif "already visible" in msg or "already committed" in msg:
            load.told = "committed"
        elif "already aborted" in msg or "not found" in msg:
            load.told = "aborted"
        return load.told != "unknown"

    def decide(self, load, operation, stop=None):
        """Again and again, as an engine does, until the outcome is known."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and not (stop is not None and stop.is_set()):
            try:
                self.on_commit()
                if self.operate(load, operation):
                    return
            except wire.Broken:
                pass
            time.sleep(0.05)

    def once(self, stop=None):
        load = self.book.new()
        way = self.random.random()
        if way < 0.6:
            self.upload(load, as_json=self.random.random() < 0.3)
        elif self.upload(load, two_phase=True)[0] == "Success":
            self.decide(load, "commit" if way < 0.9 else "abort", stop)


class Crowd:
    """Clients that load until they are told to stop."""

    def __init__(self, cluster, book, size, seed, on_ack=None, on_commit=None, pause=0.08):
        self.pause = pause  # of a client between two loads, seconds at most
        self.stop = threading.Event()
        self.clients = [
            Client(cluster, book, seed * 1000 + i, on_ack, on_commit) for i in range(size)
        ]
        self.threads = [
            threading.Thread(target=self._work, args=(client,), daemon=True)
            for client in self.clients
        ]
        for thread in self.threads:
            thread.start()

    def _work(self, client):
        while not self.stop.is_set():
            try:
                client.once(self.stop)
            except wire.Broken:
                time.sleep(0.05)
            time.sleep(client.random.random() * self.pause)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(90)
            if thread.is_alive():
                raise RuntimeError("a client hangs")


def scan(node, table, asked="", timeout=30):
    """(version, {load: rows}, checksum) of a whole table as this node reads it."""
    path = f"/api/{DB}/{table}/_scan?format=csv&order=key&columns=i,s,c,pad{asked}"
    answer = wire.get_following(node.http, path, timeout)
    if answer.status != 200:
        raise wire.Broken(f"{answer.status} {answer.body[:200]!r}")
    found = {}
    for line in answer.body.decode().splitlines():
        i, s, c, pad = line.split(",")
        if zlib.crc32(pad.strip('"').encode()) != int(c):
            raise AssertionError(f"{table}: a wrong value in {line[:100]!r}")
        found.setdefault(int(i), []).append(int(s))
    version = int(answer.headers["x-tidegate-version"])
    return version, found, zlib.crc32(answer.body)


def patient_scan(node, table, asked="", seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return scan(node, table, asked)
        except wire.Broken:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def check_scan(node, book, visible, committed, never):
    """Sentences about what a read of the newest version shows wrongly. What is only known to be
    committed gets time to become visible."""
    faults = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        version, found, checksum = patient_scan(node, book.table)
        if visible - set(found) or not committed - set(found) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    lost = sorted((visible | committed) - set(found))
    if lost:
        faults.append(f"{node.name}: acknowledged and not there: {lost[:20]} ({len(lost)})")
    ghosts = sorted(never & set(found))
    if ghosts:
        faults.append(f"{node.name}: aborted and yet there: {ghosts[:20]}")
    for number, rows in found.items():
        if sorted(rows) != list(range(ROWS)):
            faults.append(f"{node.name}: load {number} is there as {sorted(rows)}")
    with book.lock:
        before = book.reads.setdefault(version, checksum)
    if before != checksum:
        faults.append(f"{node.name}: version {version} was read otherwise before")
    return faults


def check_past(nodes, book, picks=3, seed=0):
    """Versions that were read once must still read the same, from every node."""
    faults = []
    chosen = random.Random(seed)
    with book.lock:
        versions = list(book.reads.items())
    for version, checksum in chosen.sample(versions, min(picks, len(versions))):
        node = chosen.choice(nodes)
        if patient_scan(node, book.table, f"&version={version}")[2] != checksum:
            faults.append(f"{node.name}: version {version} is not what it was")
    return faults


def label_state(nodes, label, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while True:
        try:
            node = random.choice(nodes)
            answer = wire.ask(node.http, "GET", f"/api/{DB}/get_load_state?label={label}").json()
            if answer["code"] == 0:
                return answer["data"]
        except wire.Broken as broken:
            answer = broken
        if time.monotonic() > deadline:
            raise RuntimeError(f"state of {label}: {answer}")
        time.sleep(0.1)


def settle(cluster, book, client, seconds=PATIENCE_S):
    """No client runs. What was left precommitted is aborted; returns what is visible in the end."""
    visible = set()
    deadline = time.monotonic() + seconds
    for load in list(book.loads.values()):
        while True:
            state = label_state(cluster.coordinators, load.label)
            if state in ("VISIBLE", "ABORTED", "UNKNOWN"):
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"{load.label} stays {state}")
            if state == "PRECOMMITTED":
                client.decide(load, "abort")
            time.sleep(0.02)
        if state == "VISIBLE":
            visible.add(load.number)
    return visible


def check_all(cluster, book, seed=0):
    """Everything, at rest: outcomes, all copies, the feed, old versions."""
    visible = settle(cluster, book, Client(cluster, book, seed))
    faults = []
    told = book.told("visible") | book.told("committed")
    if told - visible:
        faults.append(f"acknowledged, but not VISIBLE by label: {sorted(told - visible)[:20]}")
    if book.told("aborted") & visible:
        faults.append(f"aborted, but VISIBLE: {sorted(book.told('aborted') & visible)[:20]}")
    never = set(book.loads) - visible
    for node in cluster.participants:
        faults += check_scan(node, book, visible, set(), never)
    faults += check_feed(cluster.participants[seed % len(cluster.participants)], book, visible)
    faults += check_past(cluster.participants, book, 6, seed)
    return faults


def check_feed(node, book, visible):
    """Versions without a hole, each load in one of them."""
    faults = []
    rows = []
    where = "after=0"
    while True:
        path = f"/api/{DB}/{book.table}/_changes?{where}&columns=i,s&limit=20000"
        answer = wire.ask(node.http, "GET", path, timeout=30)
        if answer.status != 200:
            return [f"feed of {book.table}: {answer.status} {answer.body[:200]!r}"]
        new = [json.loads(line) for line in answer.body.splitlines()]
        if not new:
            break
        rows += new
        where = "token=" + answer.headers["x-tidegate-token"]
    versions = {}
    for row in rows:
        versions.setdefault(row["_version"], []).append((row["i"], row["s"]))
    if sorted(versions) != list(range(1, len(versions) + 1)):
        faults.append(f"the feed's versions have holes: {len(versions)} up to {max(versions)}")
    flat = sorted(pair for pairs in versions.values() for pair in pairs)
    if flat != sorted((i, s) for i in visible for s in range(ROWS)):
        faults.append(f"the feed has {len(flat)} rows, not those of {len(visible)} loads")
    return faults
