# SPDX-License-Identifier: Apache-2.0
"""Clients that load and read, and what they remember of it.

Every load writes the same number of rows into each table of its group, spread over all buckets, all
marked with the load's own number: what is torn, lost, doubled or early shows by counting."""

import json
import random
import re
import threading
import time
import zlib

import wire

ROWS = 6
GROUPS = 16
VISIBLE_WAIT_S = 1.95  # a commit that is answered earlier is visible
DB = "chaos"
DDL = {
    "dup": "CREATE TABLE {name} (i BIGINT NOT NULL, s INT NOT NULL, c INT, h BIGINT, "
    "pad VARCHAR(65000)) "
    "DUPLICATE KEY(i, s) DISTRIBUTED BY HASH(s) BUCKETS 4",
    "unique": "CREATE TABLE {name} (g INT NOT NULL, s INT NOT NULL, i BIGINT, c INT) "
    "UNIQUE KEY(g, s) DISTRIBUTED BY HASH(g, s) BUCKETS 4",
}


def check_number(i, s):
    return (i * 31 + s * 7) % 1000003


class Cluster:
    def __init__(self, description):
        self.coordinators = [c["http"] for c in description["coordinators"]]
        self.participants = [p["http"] for p in description["participants"]]

    def statement(self, text, db=DB, tries=60):
        body = json.dumps({"stmt": text}).encode()
        error = None
        for _ in range(tries):
            node = random.choice(self.coordinators)
            try:
                answer = wire.ask(
                    node, "POST", ("/api/query/default_cluster/" + db).rstrip("/"), body=body
                ).json()
                if answer["code"] == 0:
                    return answer["data"]
                error = answer
                if "exists" in str(answer.get("data")):
                    return None
            except wire.Broken as broken:
                error = broken
            time.sleep(0.2)
        raise RuntimeError(f"{text}: {error}")


class Op:
    """One transaction as its clients know it. parts: (table, load number)."""

    def __init__(self, kind, label):
        self.kind = kind
        self.label = label
        self.txn = None
        self.parts = []
        self.groups = {}  # load number -> (group, deleted) in a unique table
        self.commit_invoked = None
        self.acked = None  # time at which the answer said committed and visible
        self.committed = False  # an answer said committed
        self.refused = False  # an answer said that this will never be visible
        self.rival = None  # the op with the same label
        self.words = []

    def note(self, text):
        self.words.append((round(time.monotonic(), 4), text))


class History:
    def __init__(self):
        self.lock = threading.Lock()
        self.ops = []
        self.scans = []  # (table, begin, end, kind, asked, version, as_of, content, node)
        self.states = []  # (label, begin, end, state, node)
        self.violations = []
        self.counts = {}
        self.number = 0

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    def next_number(self):
        with self.lock:
            self.number += 1
            return self.number

    def refused(self, answer):
        """A read was answered with a sentence; which, without its numbers."""
        text = re.sub(r"[a-z]?[0-9]+", "N", answer.body.decode(errors="replace"))
        self.count("refused: " + text[:90].strip())

    def violation(self, text):
        with self.lock:
            self.violations.append(text)
        print("VIOLATION", text, flush=True)


class Writer(threading.Thread):
    """Starts one transaction after the other."""

    KINDS = {
        "plain": 30,
        "commit": 24,
        "abort": 8,
        "race": 8,
        "multi": 12,
        "double": 5,
        "cut": 5,
        "silent": 3,
        "stall": 1,
        "bad": 2,
        "retry": 10,
    }

    def __init__(self, run, seed):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(seed)

    def run(self):
        kinds, weights = list(self.KINDS), list(self.KINDS.values())
        while not self.run_.stop.is_set():
            kind = self.random.choices(kinds, weights)[0]
            op = self.make(kind)
            try:
                getattr(self, "do_" + kind)(op)
            except wire.Broken as broken:
                op.note(f"broken: {broken}")
                self.run_.history.count(f"broken: {broken}"[:50])
            time.sleep(self.random.random() * self.run_.pause)

    # ---- pieces ----

    def make(self, kind, label=None):
        history = self.run_.history
        op = Op(kind, label or f"{self.run_.prefix}-{history.next_number()}")
        with history.lock:
            history.ops.append(op)
        history.count("op " + kind)
        return op

    def any_node(self):
        return self.random.choice(self.run_.cluster.coordinators + self.run_.cluster.participants)

    def table(self):
        return self.random.choice(self.run_.tables)

    def body(self, op, table):
        """A load's rows and the headers that describe them."""
        i = self.run_.history.next_number()
        op.parts.append((table, i))
        as_json = self.random.random() < 0.4
        rows = []
        if self.run_.kind[table] == "unique":
            group, deleted = self.random.randrange(GROUPS), self.random.random() < 0.15
            op.groups[i] = (group, deleted)
            for s in range(ROWS):
                rows.append({"g": group, "s": s, "i": i, "c": check_number(i, s)})
                rows[-1]["__DORIS_DELETE_SIGN__"] = int(deleted)
            headers = {"hidden_columns": "__DORIS_DELETE_SIGN__"}
        else:
            size = self.random.choices([0, 3, 40, 900, 5000, 60000], [20, 30, 20, 15, 10, 3])[0]
            for s in range(ROWS):
                pad = self.random.randbytes((size + 1) // 2).hex()
                checksum = zlib.crc32(pad.encode())
                rows.append(
                    {"i": i, "s": s, "c": check_number(i, s), "h": checksum, "pad": pad}
                )
            headers = {}
        self.random.shuffle(rows)
        if as_json:
            headers["format"] = "json"
            headers["read_json_by_line"] = "true"
            text = "\n".join(json.dumps(row) for row in rows)
        else:
            headers["column_separator"] = ","
            text = "\n".join(",".join(str(value) for value in row.values()) for row in rows)
        return text.encode(), headers

    def upload(self, op, table, body, headers, cut=None, stall=0):
        """One PUT of a body. The answer's JSON, or None where none can come."""
        path = f"/api/{DB}/{table}/_stream_load"
        headers = {"timeout": 20, **headers}
        chunked = self.random.random() < 0.3
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = len(body)
        expect = self.random.random() < 0.4
        node = self.random.choice(self.run_.cluster.participants)
        if expect:
            headers["Expect"] = "100-continue"
            if self.random.random() < 0.7:
                node = self.redirect(path, headers)
        with wire.Connection(node, 30) as connection:
            connection.send(wire.head("PUT", path, headers))
            if expect:
                answer = connection.answer()
                if answer.status != 100:
                    op.note(answer.body.decode(errors="replace"))
                    return answer.json()
            at = self.random.randrange(len(body)) if cut or stall else len(body)
            if chunked:
                if body[:at]:
                    connection.send(b"%x\r\n%s\r\n" % (at, body[:at]))
                if not cut and not stall:
                    connection.send(b"0\r\n\r\n")
            else:
                connection.send(body[:at])
            if cut:
                time.sleep(self.random.choice([0, 0, 0.05]))
                return None
            answer = connection.answer()
            op.note(answer.body.decode(errors="replace"))
            return answer.json()

    def redirect(self, path, headers):
        node = self.random.choice(self.run_.cluster.coordinators)
        with wire.Connection(node, 15) as connection:
            connection.send(wire.head("PUT", path, headers))
            answer = connection.answer()
        if answer.status != 307:
            raise wire.Broken(f"no redirect: {answer.status} {answer.body[:200]!r}")
        return answer.headers["location"].split("@", 1)[1].split("/", 1)[0]

    def load(self, op, table, two_phase=False, more=None, **how):
        """A whole load. What became of it: success, timeout, exists, fail, none."""
        body, headers = self.body(op, table)
        return self.load_body(op, table, body, headers, two_phase, more, **how)

    def load_body(self, op, table, body, headers, two_phase=False, more=None, **how):
        headers = dict(headers)
        if two_phase:
            headers["two_phase_commit"] = "true"
        headers.update(more if more is not None else {"label": op.label})
        if not two_phase and op.commit_invoked is None:
            op.commit_invoked = time.monotonic()
        answer = self.upload(op, table, body, headers, **how)
        if answer is None:
            return "none"
        status = answer.get("Status", answer.get("status"))
        if answer.get("TxnId", -1) > 0:
            op.txn = answer["TxnId"]
        self.run_.history.count("load " + str(status))
        if status in ("Success", "Publish Timeout"):
            if not two_phase:
                op.committed = True
                if status == "Success":
                    op.acked = op.acked or time.monotonic()
            return "success"
        if status == "Label Already Exists":
            op.note("exists " + str(answer.get("ExistingJobStatus")))
            return "exists " + str(answer.get("ExistingJobStatus"))
        return "fail"

    def operate(self, op, operation, by_label=False, timeout=15, more=None):
        """A call of _stream_load_2pc: (status, msg)."""
        headers = {"txn_operation": operation}
        if by_label or op.txn is None:
            headers["label"] = op.label
        else:
            headers["txn_id"] = op.txn
        headers.update(more or {})
        if operation == "commit" and op.commit_invoked is None:
            op.commit_invoked = time.monotonic()
        node, begin = self.any_node(), time.monotonic()
        answer = wire.ask(
            node, "PUT", f"/api/{DB}/_stream_load_2pc", headers, timeout=timeout
        ).json()
        took = time.monotonic() - begin
        msg = answer.get("msg", "")
        op.note(f"{operation} at {node} after {took:.3f} s: {answer}")
        if answer["status"] == "Success" and operation == "commit":
            op.committed = True
            if took < VISIBLE_WAIT_S:
                op.acked = op.acked or time.monotonic()
        elif answer["status"] == "Success" and operation == "abort":
            op.refused = True
        elif "not pre-committed" in msg and ("visible" in msg or "committed," in msg):
            op.committed = True
        elif "already aborted" in msg:
            op.refused = True
        elif "could not abort" in msg:
            op.committed = True
        return answer["status"], msg

    def settle(self, op, operation, by_label=False):
        """Again and again until an answer decides."""
        for attempt in range(40):
            try:
                self.operate(op, operation, by_label)
                if op.committed or op.refused:
                    return
                if "not found" in op.words[-1][1]:
                    return
            except wire.Broken as broken:
                op.note(f"broken: {broken}")
            time.sleep(min(0.05 * 2**attempt, 1.0))

    # ---- kinds ----

    def do_plain(self, op):
        if self.load(op, self.table()) == "fail":
            op.refused = True

    def do_retry(self, op):
        """Repeats the very same load until its outcome is known."""
        table = self.table()
        body, headers = self.body(op, table)
        for attempt in range(30):
            try:
                result = self.load_body(op, table, body, headers)
                if result == "success":
                    return
                if result == "exists FINISHED":
                    op.committed = True
                    return
            except wire.Broken as broken:
                op.note(f"broken: {broken}")
            time.sleep(min(0.05 * 2**attempt, 1.0))

    def do_commit(self, op):
        if self.load(op, self.table(), two_phase=True) == "success":
            if self.random.random() < 0.3:
                time.sleep(self.random.random())
            self.settle(op, "commit", self.random.random() < 0.3)

    def do_abort(self, op):
        if self.load(op, self.table(), two_phase=True) == "success":
            self.settle(op, "abort", self.random.random() < 0.3)

    def do_race(self, op):
        if self.load(op, self.table(), two_phase=True) != "success":
            return
        rival = threading.Thread(target=self.settle, args=(op, "abort"), daemon=True)
        rival.start()
        self.settle(op, "commit")
        rival.join()

    def begin(self, op, timeout):
        status, _ = self.operate(op, "begin", by_label=True, more={"timeout": timeout})
        answer = op.words[-1][1]
        if status != "Success":
            return False
        op.txn = int(answer.split("'txn_id': '")[1].split("'")[0])
        return True

    def do_multi(self, op):
        if not self.begin(op, 30):
            return
        tables = self.random.sample(self.run_.tables, self.random.randint(2, len(self.run_.tables)))
        if self.random.random() < 0.3:
            tables.append(tables[0])
        results = []

        def one(table):
            try:
                results.append(self.load(op, table, two_phase=True, more={"txn_id": op.txn}))
            except wire.Broken as broken:
                op.note(f"broken: {broken}")
                results.append("broken")

        at_once = self.random.random() < 0.5
        threads = [threading.Thread(target=one, args=(table,), daemon=True) for table in tables]
        for thread in threads:
            thread.start()
            if not at_once:
                thread.join()
        for thread in threads:
            thread.join()
        if results.count("success") != len(tables):
            self.settle(op, "abort")
            return
        if self.random.random() < 0.5:
            self.operate(op, "precommit")
        self.settle(op, "commit")

    def do_double(self, op):
        twin = self.make("twin", op.label)
        op.rival, twin.rival = twin, op
        table = self.table()

        def other():
            try:
                if self.load(twin, table) == "fail":
                    twin.refused = True
            except wire.Broken as broken:
                twin.note(f"broken: {broken}")

        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        try:
            if self.load(op, table) == "fail":
                op.refused = True
        finally:
            thread.join()

    def do_cut(self, op):
        self.load(op, self.table(), two_phase=self.random.random() < 0.5, cut=True)
        op.refused = True

    def do_silent(self, op):
        if self.begin(op, 2):
            self.load(op, self.table(), two_phase=True, more={"txn_id": op.txn})

    def do_stall(self, op):
        begin = time.monotonic()
        body, headers = self.body(op, self.table())
        op.refused = True
        result = self.load_body(
            op, op.parts[0][0], body, headers, more={"label": op.label, "timeout": 3}, stall=1
        )
        took = time.monotonic() - begin
        op.note(f"stalled {took:.1f} s: {result}")
        if result == "success":
            self.run_.history.violation(f"a body that never ended was accepted: {op.label}")

    def do_bad(self, op):
        table = self.table()
        body, headers = self.body(op, table)
        body += b"\n{}" if headers.get("format") == "json" else b"\nnonsense"
        if self.load_body(op, table, body, headers) == "success":
            self.run_.history.violation(f"a load with a bad row was accepted: {op.label}")
        op.refused = True


def parse_rows(run, table, text):
    """Rows of a scan as CSV: ({key: load number}, complaint). Every load or group must be whole."""
    seen = {}
    for line in text.decode().splitlines():
        if run.kind[table] == "unique":
            key, s, i, c = line.split(",")
        else:
            key, s, c, *more = line.split(",")
            i = key
            if more and zlib.crc32(more[1].strip("\"").encode()) != int(more[0]):
                return None, f"a wrong long value in {line[:80]!r}"
        key, i = int(key), int(i)
        if check_number(i, int(s)) != int(c):
            return None, f"a wrong value in {line!r}"
        seen.setdefault(key, []).append((i, int(s)))
    for key, rows in seen.items():
        if len({i for i, _ in rows}) != 1 or sorted(s for _, s in rows) != list(range(ROWS)):
            return None, f"torn: {key} has {rows}"
    return {key: rows[0][0] for key, rows in seen.items()}, None


def columns(run, table, whole=False):
    if run.kind[table] == "unique":
        return "g,s,i,c"
    return "i,s,c,h,pad" if whole else "i,s,c"


class Scanner(threading.Thread):
    """Reads whole tables: the newest version, old versions, instants."""

    def __init__(self, run, seed):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(seed)

    def run(self):
        while not self.run_.stop.is_set():
            try:
                self.once()
            except wire.Broken as broken:
                self.run_.history.count(f"scan broken: {broken}"[:50])
            time.sleep(0.05 + self.random.random() * 0.3)

    def choose(self):
        table = self.random.choice(self.run_.tables)
        way = self.random.random()
        with self.run_.history.lock:
            old = [scan for scan in self.run_.history.scans[-400:] if scan[0] == table]
        if way < 0.5 or not old:
            return table, "newest", ""
        scan = self.random.choice(old)
        if way < 0.65:
            return table, "version", f"&version={scan[5]}"
        if way < 0.9:
            return table, "as_of", f"&as_of={scan[6] + self.random.choice([-1, 0, 1, 1000])}"
        return table, "as_of", f"&as_of={int(time.time() * 1e6) - self.random.randrange(2000000)}"

    def once(self):
        nodes = self.run_.cluster.participants + self.run_.cluster.coordinators
        self.scan(*self.choose(), self.random.choice(nodes))

    def scan(self, table, kind, asked, node):
        """The version that was read, None if that was refused or wrong."""
        begin = time.monotonic()
        shown = columns(self.run_, table, self.random.random() < 0.04)
        path = f"/api/{DB}/{table}/_scan?format=csv&columns={shown}{asked}"
        answer = wire.get_following(node, path)
        end = time.monotonic()
        history = self.run_.history
        history.count(f"scan {answer.status}")
        if answer.status != 200:
            history.refused(answer)
            return None
        content, complaint = parse_rows(self.run_, table, answer.body)
        version = int(answer.headers["x-tidegate-version"])
        if complaint:
            history.violation(f"{table} version {version} {asked} from {node}: {complaint}")
            return None
        as_of = int(answer.headers["x-tidegate-as-of"])
        with history.lock:
            history.scans.append((table, begin, end, kind, asked, version, as_of, content, node))
        return version


class Puller(threading.Thread):
    """Follows one table's changes by token, from changing nodes."""

    def __init__(self, run, seed, table):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(seed)
        self.table = table
        self.position = "after=0"
        self.rows = []

    def run(self):
        while not self.run_.stop.is_set():
            self.pull()
            time.sleep(self.random.random() * 0.5)

    def pull(self):
        """True if something new came."""
        node = self.random.choice(self.run_.cluster.participants)
        query = f"{self.position}&columns={columns(self.run_, self.table)}"
        if self.random.random() < 0.7:
            query += f"&limit={self.random.choice([1, 5, 7, 100, 1000])}"
        if self.random.random() < 0.3:
            query += "&wait_ms=500"
        try:
            answer = wire.ask(node, "GET", f"/api/{DB}/{self.table}/_changes?{query}")
        except wire.Broken as broken:
            self.run_.history.count(f"pull broken: {broken}"[:50])
            return False
        self.run_.history.count(f"pull {answer.status}")
        if answer.status != 200:
            self.run_.history.refused(answer)
            return False
        rows = [json.loads(line) for line in answer.body.splitlines()]
        self.rows += rows
        self.position = f"token={answer.headers['x-tidegate-token']}"
        return bool(rows)


class Watcher(threading.Thread):
    """Asks coordinators for the states of labels."""

    def __init__(self, run, seed):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(seed)

    def run(self):
        while not self.run_.stop.is_set():
            with self.run_.history.lock:
                recent = self.run_.history.ops[-40:]
            if recent:
                op = self.random.choice(recent)
                if op.rival is None and op.kind not in ("retry",):
                    self.look(op.label, self.random.choice(self.run_.cluster.coordinators))
            time.sleep(0.02 + self.random.random() * 0.1)

    def look(self, label, node):
        begin = time.monotonic()
        try:
            answer = wire.ask(node, "GET", f"/api/{DB}/get_load_state?label={label}").json()
        except wire.Broken as broken:
            self.run_.history.count(f"state broken: {broken}"[:50])
            return None
        if answer["code"] != 0:
            self.run_.history.count("state refused")
            return None
        with self.run_.history.lock:
            self.run_.history.states.append((label, begin, time.monotonic(), answer["data"], node))
        return answer["data"]
