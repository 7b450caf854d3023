# SPDX-License-Identifier: Apache-2.0
"""What clients asked and were told, as JSON lines on one monotonic clock, and as transactions.

    {"t": ns, "p": who, "type": "invoke|ok|fail|info", "f": what, "n": call, …}

A call is an invoke and, later, an ok (answered), a fail (the answer said no) or an info (no answer:
it may have happened or not) of the same n. Answers are kept word by word."""

import json
import threading
import time

VISIBLE_WAIT_S = 1.95  # a commit that is answered earlier is visible
FINAL_FAIL = ("plain", "double", "twin", "again")  # kinds whose failed load is not tried again
NEVER = ("cut", "stall", "bad")  # kinds that can never become visible


class Op:
    """One transaction as its clients know it. Its events make it, while it runs and afterwards."""

    def __init__(self, number, kind, label, reload=False):
        self.number = number
        self.kind = kind
        self.label = label
        self.reload = reload  # its label was that of an aborted one
        self.txn = None
        self.begun = None
        self.parts = []  # (table, load number)
        self.groups = {}  # load number -> (group, deleted) in a unique table
        self.commit_invoked = None
        self.acked = None  # time at which the answer said committed and visible
        self.committed = False  # an answer said committed
        self.committed_at = None
        self.refused = kind in NEVER  # an answer said that this will never be visible
        self.words = []
        self.calls = {}

    def take(self, event):
        if event["type"] == "invoke":
            self.calls[event["n"]] = event
            if self.begun is None:
                self.begun = event["t"]
            if "i" in event and (event["table"], event["i"]) not in self.parts:
                self.parts.append((event["table"], event["i"]))
                if "g" in event:
                    self.groups[event["i"]] = (event["g"], event["del"])
            commits = event["f"] == "commit" or (event["f"] == "load" and event["own"])
            if commits and self.commit_invoked is None:
                self.commit_invoked = event["t"]
            return
        invoke = self.calls.get(event["n"])
        self.words.append(f"{event['f']} {event.get('text', '')}")
        if invoke is None or event["type"] == "info":
            return
        if event["f"] == "load":
            self._loaded(event, invoke)
        else:
            self._operated(event, (event["t"] - invoke["t"]) / 1e9)

    def _commit(self, time_ns, visible):
        self.committed = True
        self.committed_at = self.committed_at or time_ns
        if visible:
            self.acked = self.acked or time_ns

    def _loaded(self, event, invoke):
        answer = parse(event["text"])
        status = answer.get("Status", answer.get("status"))
        if answer.get("TxnId", -1) > 0 and status != "Label Already Exists":
            self.txn = answer["TxnId"]
        if not invoke["own"]:
            return
        if status in ("Success", "Publish Timeout"):
            self._commit(event["t"], status == "Success")
        elif status == "Label Already Exists":
            if self.kind == "retry" and answer.get("ExistingJobStatus") == "FINISHED":
                self._commit(event["t"], False)
        elif self.kind in FINAL_FAIL:
            self.refused = True

    def _operated(self, event, took):
        answer = parse(event["text"])
        what, msg, done = event["f"], answer.get("msg", ""), answer.get("status") == "Success"
        if done and what == "begin":
            self.txn = int(answer["txn_id"])
        elif done and what == "commit":
            self._commit(event["t"], took < VISIBLE_WAIT_S)
        elif done and what == "abort":
            self.refused = True
        elif "not pre-committed" in msg and ("visible" in msg or "committed," in msg):
            self._commit(event["t"], False)
        elif "already aborted" in msg:
            self.refused = True
        elif "could not abort" in msg:
            self._commit(event["t"], False)


def parse(text):
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


class History:
    """The file, and what of it the running clients need."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "w", encoding="utf-8")
        self.lock = threading.Lock()
        self.ops = []
        self.old = []  # (table, version, as_of) that were read
        self.counts = {}
        self.number = 0

    def log(self, **event):
        event["t"] = event.get("t") or time.monotonic_ns()
        line = json.dumps(event, separators=(",", ":"))
        with self.lock:
            self.file.write(line + "\n")
        return event

    def next_number(self):
        with self.lock:
            self.number += 1
            return self.number

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    def close(self):
        self.file.close()


class Call:
    """An invoke and what comes of it. Without an outcome it is an info."""

    def __init__(self, history, who, what, op=None, **more):
        self.history = history
        self.who = who
        self.what = what
        self.op = op
        self.n = history.next_number()
        self.done = False
        self._log("invoke", **more)

    def _log(self, kind, **more):
        event = {"p": self.who, "type": kind, "f": self.what, "n": self.n, **more}
        if self.op is not None:
            event.update(op=self.op.number, kind=self.op.kind, label=self.op.label)
            if self.op.reload:
                event["reload"] = True
        event = self.history.log(**event)
        if self.op is not None:
            with self.history.lock:
                self.op.take(event)

    def end(self, kind, **more):
        self.done = True
        self._log(kind, **more)

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        if not self.done:
            self.end("info", text=str(error) if error else "")


class Scan:
    """A table as it was read."""

    def __init__(self, invoke, event, kind):
        self.table = invoke["table"]
        self.begin = invoke["t"]
        self.end = event["t"]
        self.how = invoke["how"]  # newest, version, as_of
        self.asked = invoke["asked"]
        self.node = invoke["node"]
        self.snapshot = invoke.get("snap")  # reads of one instant share it
        self.version = event["ver"]
        self.as_of = event["as_of"]
        self.torn = event.get("torn")
        content = event["val"]
        self.content = (
            {int(g): i for g, i in content.items()} if kind == "unique" else {i: i for i in content}
        )

    def __str__(self):
        asked = f" {self.asked}" if self.asked else ""
        return f"the read of {self.table} version {self.version} ({self.how}{asked}, {self.node})"


class Past:
    """A history file, read."""

    def __init__(self, events):
        self.kinds = {}
        self.ops = {}
        self.scans = []
        self.states = []  # (label, begin, end, state, node)
        self.pulls = {}  # puller -> [event]
        self.finals = {}  # label -> states
        self.facts = []  # everything else
        self.last = 0
        calls = {}
        for event in events:
            self.last = max(self.last, event["t"])
            self._take(event, calls)

    def _take(self, event, calls):
        if "n" in event and event["type"] == "invoke":
            calls[event["n"]] = event
        if "op" in event:
            op = self.ops.get(event["op"])
            if op is None:
                op = Op(event["op"], event["kind"], event["label"], event.get("reload", False))
                self.ops[event["op"]] = op
            op.take(event)
        elif event["f"] == "scan":
            if event["type"] == "ok":
                invoke = calls[event["n"]]
                self.scans.append(Scan(invoke, event, self.kinds[invoke["table"]]))
        elif event["f"] == "state":
            if event["type"] == "ok":
                invoke = calls[event["n"]]
                self.states.append(
                    (invoke["label"], invoke["t"], event["t"], event["val"], invoke["node"])
                )
        elif event["f"] in ("incr", "restart"):
            if event["type"] == "ok":
                event = {**calls.get(event["n"], {}), **event}
            if event["type"] == "ok" or event["f"] == "restart":
                self.pulls.setdefault(event["p"], []).append(event)
        elif event["f"] == "final":
            self.finals[event["label"]] = event["val"]
        elif event["f"] == "tables":
            self.kinds.update(event["val"])
        else:
            self.facts.append(event)

    def of(self, what):
        return [event for event in self.facts if event["f"] == what]


def read(path):
    with open(path, encoding="utf-8") as file:
        return Past([json.loads(line) for line in file])
