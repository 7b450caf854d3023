# SPDX-License-Identifier: Apache-2.0
"""A cluster for integration tests in Python: started, misused, and removed however the test ends.

    with tide.Cluster(1, 1, coordinator=["label_keep_s=43200"]) as c:
        c.sql("CREATE DATABASE d")
        load = c.load("d", "t", b"1\\n", {"label": "a"})

A guard process waits for the end of the test program, whatever kind of end that is, and then stops
the nodes, unmounts what was mounted below the cluster's folder, deletes its network namespaces and
the folder. TIDEGATE_KEEP=1 keeps the folder."""

import base64
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BIN = os.environ.get("TIDEGATE_BIN", "build/bin")
SHORT = bool(os.environ.get("TIDEGATE_TEST_SHORT"))
FULL = bool(os.environ.get("TIDEGATE_TEST_FULL"))
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
AUTH = "Basic " + base64.b64encode(b"root:").decode()
ALARMS = ("Sanitizer", "runtime error:", "check failed:")

GUARD = r"""
cat >/dev/null
# Whatever has this folder in its command line is of this test, also what a dead strace left behind.
for process in /proc/[0-9]*; do
    if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -qF "$DIR/"; then
        pid=${process#/proc/}
        kill -CONT "$pid"; kill -KILL "$pid"
    fi
done
"$BIN/tidegate" cluster stop --dir "$DIR/c"
for place in "$DIR"/mounts/*; do
    [ -d "$place" ] || continue
    for try in 1 2 3 4 5 6 7 8 9 10; do umount "$place" && break; sleep 0.3; done
done
for name in $(cat "$DIR/namespaces" 2>/dev/null); do ip netns del "$name"; done
if [ -n "$KEEP" ]; then exit; fi
for place in "$DIR"/mounts/*; do ! mountpoint -q "$place" || exit; done
rm -rf "$DIR"
"""


class Failed(Exception):
    """What is wrong, in words for who reads the test's output."""


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(word) for word in what))


def equal(found, wanted, what=""):
    check(found == wanted, f"{what}: found {found!r}, wanted {wanted!r}")


def skip(why):
    print(f"SKIPPED: {why}", flush=True)
    sys.exit(SKIPPED)


def need_tools(*names):
    """Skips the program unless it is root and has these tools."""
    if os.geteuid() != 0:
        skip("wants root")
    for name in names:
        if shutil.which(name) is None:
            skip(f"wants {name}")


def own_network():
    """Runs the program again in a network namespace of its own, where packets can be dropped."""
    if os.environ.get("TIDE_NETWORK") != "own":
        need_tools("unshare", "ip", "nft")
        if subprocess.run(["unshare", "-n", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            skip("no network namespace may be made")
        os.environ["TIDE_NETWORK"] = "own"
        os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Dropped:
    """Packets that nftables expressions match are dropped, as long as this lasts."""

    def __init__(self, *matches):
        self.matches = matches

    def __enter__(self):
        rules = "".join(f"add rule inet tide in {match} drop\n" for match in self.matches)
        subprocess.run(["nft", "-f", "-"], check=True, text=True, input=(
            "add table inet tide\nflush table inet tide\n"
            "add chain inet tide in { type filter hook input priority 0 ; }\n" + rules))

    def __exit__(self, *_):
        subprocess.run(["nft", "delete table inet tide"], check=True)


def ports(addresses):
    return "{ " + ", ".join(address.rsplit(":", 1)[1] for address in addresses) + " }"


def count(short, usual, full):
    """How often: under sanitizers, on every change, with TIDEGATE_TEST_FULL=1."""
    return full if FULL else short if SHORT else usual


def until(what, condition, seconds=60, every=0.05):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + seconds * (3 if SHORT else 1)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(every)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Failed(f"not JSON: {self.body[:300]!r}") from error

    def text(self):
        return self.body.decode("utf-8", "replace")


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def ask(node, method, path, body=None, headers=None, timeout=60, follow=True, auth=AUTH):
    """One request; a 307 is followed with the same request. OSError or HTTPException if there is no
    whole answer."""
    for _ in range(3):
        connection = http.client.HTTPConnection(*split(node), timeout=timeout)
        try:
            given = {"Authorization": auth} if auth else {}
            given.update(headers or {})
            connection.request(method, path, body=body, headers=given)
            response = connection.getresponse()
            answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()},
                            response.read())
        finally:
            connection.close()
        if answer.status != 307 or not follow:
            return answer
        node, path = answer.headers["location"].split("//", 1)[1].split("/", 1)
        node, path = node.rsplit("@", 1)[-1], "/" + path
    raise Failed(f"too many redirects: {method} {path}")


def raw_head(method, path, headers, auth=AUTH):
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    lines = (f"Authorization: {auth}\r\n" if auth else "") + lines
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode()


def raw_open(node, timeout=60):
    sock = socket.create_connection(split(node), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def raw_answer(sock):
    """The next answer that is no 100, as an Answer. Failed if the connection ends before."""
    while True:
        response = http.client.HTTPResponse(sock)
        response.begin()
        body = response.read()
        if response.status != 100:
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, body)


class Node:
    def __init__(self, cluster, role, entry):
        self.cluster = cluster
        self.role = role
        self.name = f"{role}-{entry['id']}"
        self.http = entry["http"]
        self.rpc = entry["rpc"]
        self.raft = entry.get("raft")
        self.pid = entry["pid"]
        self.child = None
        self.folder = os.path.join(cluster.folder, self.name)
        self.conf = os.path.join(self.folder, f"{role}.conf")
        self.data = os.path.join(self.folder, "data")

    def alive(self):
        if self.child is not None:
            return self.child.poll() is None
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
                state = stat.read().rsplit(")", 1)[1].split()[0]
            # Its first thread may be gone while another one still holds its files open.
            return state != "Z" or len(os.listdir(f"/proc/{self.pid}/task")) > 1
        except FileNotFoundError:
            return False

    def send(self, number):
        if self.child is not None:  # with what it was started under
            os.killpg(self.pid, number)
        else:
            os.kill(self.pid, number)

    def end(self, number=signal.SIGKILL, seconds=30):
        """Ends it and waits until it is gone; its exit status if this program started it."""
        if self.alive():
            self.send(number)
        return self.wait_gone(seconds)

    def wait_gone(self, seconds=30):
        until(f"{self.name} ends", lambda: not self.alive(), seconds)
        return self.child.returncode if self.child else None

    def start(self, env=None, prefix=(), wait=True):
        """Starts it from this program: with more environment, under a prefix (strace …)."""
        if env:
            env = dict(os.environ, **env)
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.child = subprocess.Popen(
                [*prefix, os.path.join(BIN, f"tidegate-{self.role}"), "--config", self.conf],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=env)
        self.pid = self.child.pid
        with open(os.path.join(self.cluster.top, "pids", self.name), "w", encoding="ascii") as file:
            file.write(str(self.pid))
        if wait:
            self.wait_serves()

    def wait_serves(self, seconds=60):
        def serves():
            if not self.alive():
                raise Failed(f"{self.name} ended: {self.log_tail()}")
            try:
                if self.role == "participant":
                    return "\ntidegate_joined 1\n" in self.metrics_text()
                return ask(self.http, "GET", "/api/bootstrap", timeout=5).status == 200
            except (OSError, http.client.HTTPException):
                return False
        until(f"{self.name} serves", serves, seconds)

    def set_option(self, name, value):
        with open(self.conf, encoding="utf-8") as file:
            lines = [line for line in file if line.split("=")[0].strip() != name]
        with open(self.conf, "w", encoding="utf-8") as file:
            file.writelines(lines + [f"{name} = {value}\n"])

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def log_tail(self, lines=15):
        return "\n" + "\n".join(self.log().splitlines()[-lines:])

    def metrics_text(self):
        return ask(self.http, "GET", "/metrics", timeout=10).text()

    def metric(self, name):
        for line in self.metrics_text().splitlines():
            if line.startswith(name + " "):
                return int(float(line.rsplit(" ", 1)[1]))
        raise Failed(f"{self.name} has no metric {name}")

    def memory_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return int(fields["RssAnon"].split()[0])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Cluster:
    def __init__(self, coordinators, participants, coordinator=(), participant=(), start=True):
        self.top = tempfile.mkdtemp(prefix="tidegate-test-")
        self.folder = os.path.join(self.top, "c")
        for name in ("pids", "mounts"):
            os.mkdir(os.path.join(self.top, name))
        self.guard = subprocess.Popen(
            ["sh", "-c", GUARD], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
            env=dict(os.environ, DIR=self.top, BIN=BIN, KEEP=os.environ.get("TIDEGATE_KEEP", "")))
        self.counts = (coordinators, participants)
        self.options = [f"--coordinator-option={o}" for o in ("disk_reserve_bytes=1m", *coordinator)]
        self.options += [f"--participant-option={o}" for o in ("disk_reserve_bytes=1m", *participant)]
        self.coordinators = []
        self.participants = []
        if start:
            self.start()

    def start(self, env=None, prefix=()):
        self.tool("start", "--coordinators", str(self.counts[0]), "--participants",
                  str(self.counts[1]), "--port-offset", "auto", *self.options, env=env,
                  prefix=prefix)
        with open(os.path.join(self.folder, "cluster.json"), encoding="utf-8") as file:
            known = json.load(file)
        self.coordinators = [Node(self, "coordinator", e) for e in known["coordinators"]]
        self.participants = [Node(self, "participant", e) for e in known["participants"]]

    def tool(self, *words, env=None, prefix=()):
        done = subprocess.run([*prefix, os.path.join(BIN, "tidegate"), "cluster", words[0], "--dir",
                               self.folder, *words[1:]], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=180, check=False,
                              env=dict(os.environ, **env) if env else None)
        if done.returncode != 0:
            raise Failed(f"tidegate cluster {' '.join(words)}: {done.stdout}")
        return done.stdout

    def grow(self):
        """One participant more, when it serves."""
        done = subprocess.run([os.path.join(BIN, "tidegate"), "node", "add", "--dir", self.folder],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=180, check=False)
        check(done.returncode == 0, "tidegate node add:", done.stdout)
        with open(os.path.join(self.folder, "cluster.json"), encoding="utf-8") as file:
            entry = json.load(file)["participants"][-1]
        self.participants.append(Node(self, "participant", entry))
        return self.participants[-1]

    def nodes(self):
        return self.coordinators + self.participants

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        alarms = []
        ended = isinstance(value, SystemExit) and value.code in (0, SKIPPED)
        for node in self.nodes():
            if kind is not None and not ended:
                print(f"---- {node.name}{node.log_tail(25)}", file=sys.stderr)
            alarms += [f"{node.name}: {word}" for word in ALARMS if word in node.log()]
        self.close()
        if alarms and (kind is None or ended):
            raise Failed(f"nodes' logs tell of {alarms}")

    def close(self):
        self.guard.stdin.close()
        self.guard.wait(timeout=90)

    # ---- what clients do ----

    def leader(self):
        def find():
            for node in self.coordinators:
                try:
                    if node.alive() and node.metric("tidegate_raft_is_leader") == 1:
                        return node
                except (OSError, http.client.HTTPException):
                    pass
            return None
        return until("a leader", find)

    def any(self):
        return next(node.http for node in self.coordinators if node.alive())

    def sql(self, statement, db="", node=None, refused=False):
        path = "/api/query/default_cluster" + ("/" + db if db else "")
        answer = ask(node or self.any(), "POST", path, json.dumps({"stmt": statement})).json()
        check((answer["code"] != 0) == refused, statement, answer)
        return answer["data"]

    def table(self, name, columns, key="DUPLICATE", buckets=1, replicas=0, db="d"):
        first = columns.split()[0]
        replicas = replicas or min(3, len(self.participants))
        self.sql(f"CREATE TABLE {name} ({columns}) {key} KEY({first}) DISTRIBUTED BY HASH({first}) "
                 f"BUCKETS {buckets} PROPERTIES (\"replication_num\" = \"{replicas}\")", db)

    def load(self, table, body, headers=None, db="d", node=None, timeout=120):
        """The answer of a load as a dict."""
        return ask(node or self.any(), "PUT", f"/api/{db}/{table}/_stream_load", body, headers,
                   timeout).json()

    def good(self, table, body, headers=None, **more):
        answer = self.load(table, body, headers, **more)
        check(answer["Status"] == "Success", answer)
        return answer

    def end_txn(self, txn, operation, db="d", node=None, timeout=60):
        return ask(node or self.any(), "PUT", f"/api/{db}/_stream_load_2pc", b"",
                   {"txn_id": str(txn), "txn_operation": operation}, timeout).json()

    def state(self, label, db="d", node=None):
        return ask(node or self.any(), "GET", f"/api/{db}/get_load_state?label={label}").json()["data"]

    def read(self, table, query="", db="d", node=None):
        """The rows as a sorted list of lists of texts."""
        answer = ask(node or self.any(), "GET", f"/api/{db}/{table}/_scan?format=csv" + query)
        check(answer.status == 200, f"_scan of {table}", answer.status, answer.body[:300])
        return sorted(line.split(",") for line in answer.text().splitlines())


def refused_with(answer, text):
    """A load that failed, says so, and counted nothing in."""
    check(answer["Status"] == "Fail", answer)
    check(text in answer["Message"], f"wanted {text!r} in {answer['Message']!r}")
    equal(answer["NumberLoadedRows"], 0, "NumberLoadedRows")


def run(cases):
    """Runs functions as test cases; exits 0 if all passed. Words of the command line choose some."""
    chosen = [c for c in cases if not sys.argv[1:] or any(w in c.__name__ for w in sys.argv[1:])]
    failed = 0
    for case in chosen:
        begin = time.monotonic()
        try:
            case()
            word = "ok"
        except Exception:
            traceback.print_exc()
            word = "FAILED"
            failed += 1
        print(f"{word:8}{case.__name__.replace('_', ' ')} ({time.monotonic() - begin:.1f} s)",
              flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed or not chosen else 0)


def chance(seed=None):
    """A random source whose seed is printed."""
    seed = int(os.environ.get("SEED", seed or random.randrange(1 << 31)))
    print(f"SEED={seed}", flush=True)
    return random.Random(seed)
