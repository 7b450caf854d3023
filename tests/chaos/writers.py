# SPDX-License-Identifier: Apache-2.0
"""Clients that load.

Every load writes the same number of rows into each table of its group, spread over all buckets, all
marked with the load's own number: what is torn, lost, doubled or early shows by counting."""

import json
import random
import threading
import time
import zlib

import wire
from history import Call, Op, parse

ROWS = 6
GROUPS = 16
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
        "reload": 5,
    }

    def __init__(self, run, seed, name="w"):
        super().__init__(daemon=True, name=name)
        self.run_ = run
        self.history = run.history
        self.random = random.Random(seed)

    def run(self):
        kinds, weights = list(self.KINDS), list(self.KINDS.values())
        while not self.run_.stop.is_set():
            kind = self.random.choices(kinds, weights)[0]
            op = self.make(kind)
            try:
                getattr(self, "do_" + kind)(op)
            except wire.Broken as broken:
                self.history.count(f"broken: {broken}"[:50])
            time.sleep(self.random.random() * self.run_.pause)

    # ---- pieces ----

    def make(self, kind, label=None, reload=False):
        number = self.history.next_number()
        op = Op(number, kind, label or f"{self.run_.prefix}-{number}", reload)
        with self.history.lock:
            self.history.ops.append(op)
        self.history.count("op " + kind)
        return op

    def call(self, what, op, **more):
        return Call(self.history, threading.current_thread().name, what, op, **more)

    def any_node(self):
        return self.random.choice(self.run_.coordinators + self.run_.participants)

    def table(self):
        return self.random.choice(self.run_.tables)

    def body(self, table):
        """A load's rows, the headers that describe them, and what the history says of them."""
        i = self.history.next_number()
        known = {"table": table, "i": i}
        as_json = self.random.random() < 0.4
        rows = []
        if self.run_.kind[table] == "unique":
            group, deleted = self.random.randrange(GROUPS), self.random.random() < 0.15
            known.update(g=group, **{"del": deleted})
            for s in range(ROWS):
                rows.append({"g": group, "s": s, "i": i, "c": check_number(i, s)})
                rows[-1]["__DORIS_DELETE_SIGN__"] = int(deleted)
            headers = {"hidden_columns": "__DORIS_DELETE_SIGN__"}
        else:
            size = self.random.choices([0, 3, 40, 900, 5000, 60000], [20, 30, 20, 15, 10, 3])[0]
            for s in range(ROWS):
                pad = self.random.randbytes((size + 1) // 2).hex()
                checksum = zlib.crc32(pad.encode())
                rows.append({"i": i, "s": s, "c": check_number(i, s), "h": checksum, "pad": pad})
            headers = {}
        self.random.shuffle(rows)
        if as_json:
            headers["format"] = "json"
            headers["read_json_by_line"] = "true"
            text = "\n".join(json.dumps(row) for row in rows)
        else:
            headers["column_separator"] = ","
            text = "\n".join(",".join(str(value) for value in row.values()) for row in rows)
        return text.encode(), headers, known

    def upload(self, call, path, body, headers, cut=False, stall=False):
        """One PUT of a body. The answer's JSON, or None where none can come."""
        headers = {"timeout": 20, **headers}
        chunked = self.random.random() < 0.3
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = len(body)
        expect = self.random.random() < 0.4
        node = self.random.choice(self.run_.participants)
        if expect:
            headers["Expect"] = "100-continue"
            if self.random.random() < 0.7:
                node = self.redirect(path, headers)
        with wire.Connection(node, 30) as connection:
            connection.send(wire.head("PUT", path, headers))
            if expect:
                answer = connection.answer()
                if answer.status != 100:
                    return self.answered(call, answer)
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
            return self.answered(call, connection.answer())

    @staticmethod
    def answered(call, answer):
        result = answer.json()
        status = result.get("Status", result.get("status"))
        good = status in ("Success", "Publish Timeout")
        call.end("ok" if good else "fail", text=answer.body.decode(errors="replace"))
        return result

    def redirect(self, path, headers):
        node = self.random.choice(self.run_.coordinators)
        with wire.Connection(node, 15) as connection:
            connection.send(wire.head("PUT", path, headers))
            answer = connection.answer()
        if answer.status != 307:
            raise wire.Broken(f"no redirect: {answer.status} {answer.body[:200]!r}")
        return answer.headers["location"].split("@", 1)[1].split("/", 1)[0]

    def load(self, op, table, two_phase=False, more=None, whole=None, **how):
        """A whole load. What became of it: success, exists …, fail, none."""
        body, headers, known = whole or self.body(table)
        headers = dict(headers)
        if two_phase:
            headers["two_phase_commit"] = "true"
        headers.update(more if more is not None else {"label": op.label})
        with self.call("load", op, own=not two_phase, **known) as call:
            answer = self.upload(call, f"/api/{DB}/{table}/_stream_load", body, headers, **how)
        if answer is None:
            return "none"
        status = answer.get("Status", answer.get("status"))
        self.history.count("load " + str(status))
        if status in ("Success", "Publish Timeout"):
            return "success"
        if status == "Label Already Exists":
            return "exists " + str(answer.get("ExistingJobStatus"))
        return "fail"

    def operate(self, op, operation, by_label=False, timeout=15, more=None):
        """A call of _stream_load_2pc: the answer's JSON."""
        headers = {"txn_operation": operation}
        if by_label or op.txn is None:
            headers["label"] = op.label
        else:
            headers["txn_id"] = op.txn
        headers.update(more or {})
        node = self.any_node()
        with self.call(operation, op, node=node) as call:
            answer = wire.ask(node, "PUT", f"/api/{DB}/_stream_load_2pc", headers, timeout=timeout)
            return self.answered(call, answer)

    def settle(self, op, operation, by_label=False):
        """Again and again until an answer decides."""
        for attempt in range(40):
            try:
                answer = self.operate(op, operation, by_label)
                if op.committed or op.refused or "not found" in answer.get("msg", ""):
                    return
            except wire.Broken:
                pass
            time.sleep(min(0.05 * 2**attempt, 1.0))

    # ---- kinds ----

    def do_plain(self, op):
        self.load(op, self.table())

    do_again = do_plain

    def do_retry(self, op):
        """Repeats the very same load until its outcome is known."""
        table = self.table()
        whole = self.body(table)
        for attempt in range(30):
            try:
                if self.load(op, table, whole=whole) in ("success", "exists FINISHED"):
                    return
            except wire.Broken:
                pass
            time.sleep(min(0.05 * 2**attempt, 1.0))

    def do_commit(self, op):
        if self.load(op, self.table(), two_phase=True) == "success":
            if self.random.random() < 0.3:
                time.sleep(self.random.random())
            self.settle(op, "commit", self.random.random() < 0.3)

    def do_abort(self, op):
        if self.load(op, self.table(), two_phase=True) == "success":
            self.settle(op, "abort", self.random.random() < 0.3)

    def do_reload(self, op):
        """Loads again under the label of what was aborted."""
        self.do_abort(op)
        if op.refused:
            second = self.make("reload", op.label, reload=True)
            if self.load(second, self.table(), two_phase=True) == "success":
                self.settle(second, "commit")

    def do_race(self, op):
        if self.load(op, self.table(), two_phase=True) != "success":
            return
        rival = threading.Thread(target=self.settle, args=(op, "abort"), daemon=True)
        rival.start()
        self.settle(op, "commit")
        rival.join()

    def begin(self, op, timeout):
        answer = self.operate(op, "begin", by_label=True, more={"timeout": timeout})
        return answer.get("status") == "Success"

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
            except wire.Broken:
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
        """Two clients, one label."""
        twin = self.make("twin", op.label)
        table = self.table()

        def other():
            try:
                self.load(twin, table)
            except wire.Broken:
                pass

        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        try:
            self.load(op, table)
        finally:
            thread.join()

    def do_cut(self, op):
        """A client that dies in the middle of its body."""
        self.load(op, self.table(), two_phase=self.random.random() < 0.5, cut=True)

    def do_silent(self, op):
        """A client that never comes back: its transaction times out."""
        if self.begin(op, 2):
            self.load(op, self.table(), two_phase=True, more={"txn_id": op.txn})

    def do_stall(self, op):
        """A body that never ends."""
        self.accepted(op, self.load(op, self.table(), stall=True,
                                    more={"label": op.label, "timeout": 3}))

    def do_bad(self, op):
        """A row that cannot be loaded."""
        table = self.table()
        body, headers, known = self.body(table)
        body += b"\n{}" if headers.get("format") == "json" else b"\nnonsense"
        self.accepted(op, self.load(op, table, whole=(body, headers, known)))

    def accepted(self, op, result):
        if result == "success":
            self.history.log(p=self.name, type="info", f="violation",
                             text=f"{op.kind} {op.label} was accepted")


def statement(nodes, text, db=DB, tries=60):
    """A statement, repeated until it was done."""
    body = json.dumps({"stmt": text}).encode()
    error = None
    for _ in range(tries):
        try:
            path = ("/api/query/default_cluster/" + db).rstrip("/")
            answer = parse(wire.ask(random.choice(nodes), "POST", path, body=body).body)
            if answer.get("code") == 0:
                return answer["data"]
            error = answer
            if "exists" in str(answer.get("data")):
                return None
        except wire.Broken as broken:
            error = broken
        time.sleep(0.2)
    raise RuntimeError(f"{text}: {error}")
