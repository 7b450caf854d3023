#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coordinators come, go, are replaced and hand the leadership over, while loads go on (rule 12)."""

import http.client
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import steady
import tide
from tide import check, equal, until


def reread(c):
    """The nodes as cluster.json has them now; those that are known stay the same objects."""
    with open(os.path.join(c.folder, "cluster.json"), encoding="utf-8") as file:
        known = json.load(file)
    old = {node.name: node for node in c.coordinators}
    c.coordinators = [old.get(f"coordinator-{e['id']}") or tide.Node(c, "coordinator", e)
                      for e in known["coordinators"]]
    for node, entry in zip(c.nodes(), known["coordinators"] + known["participants"]):
        if entry["pid"] and node.pid != entry["pid"]:
            node.pid, node.child = entry["pid"], None


def by_id(c, number):
    return next(node for node in c.coordinators if node.name == f"coordinator-{number}")


def listed(c):
    data = tide.ask(c.any(), "GET", "/api/coordinators").json()["data"]
    return {one["id"]: one for one in data["coordinators"]}


def order(c, verb, refused=None, **parameters):
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    answer = tide.ask(c.any(), "POST", f"/api/coordinators/{verb}?{query}").json()
    if refused is None:
        equal(answer["code"], 0, f"{verb} {parameters}: {answer['data']}")
    else:
        check(answer["code"] != 0 and refused in json.dumps(answer), f"{verb} {parameters}:", answer)


def state(node):
    return tide.ask(node.http, "GET", "/api/state").json()["data"]


def equal_states(c):
    """All coordinators that run have the same state at the same index."""
    def same():
        states = [state(node) for node in c.coordinators if node.alive()]
        if len({s["applied_index"] for s in states}) > 1:
            return False
        equal(len({s["state_hash"] for s in states}), 1, f"different states at one index: {states}")
        return True
    until("all coordinators have applied the same", same)


def wipe(node):
    for name in os.listdir(node.data):
        path = os.path.join(node.data, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def a_cluster_grows_is_repaired_and_shrinks_under_loads():
    with tide.Cluster(3, 3, coordinator=["snapshot_bytes=64k"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        with steady.Loads(c, "t") as loads:
            for _ in range(2):
                c.tool("add-coordinator")
                reread(c)
                loads.go_on()
            equal(sorted(listed(c)), [1, 2, 3, 4, 5], "coordinators")
            check(all(one["role"] == "voter" for one in listed(c).values()), listed(c))

            # A wiped one may not come back, not even by joining; under a fresh id it may.
            lost = by_id(c, 2)
            lost.end()
            loads.go_on()
            wipe(lost)
            for join in ("false", "true"):
                lost.set_option("join", join)
                lost.start(wait=False)
                equal(lost.wait_gone(), 1, "exit status of a wiped coordinator")
            check("was given before" in lost.log_tail(), lost.log_tail())
            c.tool("drop-coordinator", "coordinator-2")
            reread(c)
            c.tool("add-coordinator")
            reread(c)
            loads.go_on()
            equal(sorted(listed(c)), [1, 3, 4, 5, 6], "coordinators")

            # Back to three; the leader goes first.
            first = c.leader().name
            for name in (first, next(n.name for n in c.coordinators if n.name != first)):
                gone = next(node for node in c.coordinators if node.name == name)
                c.tool("drop-coordinator", name)
                check(not gone.alive(), f"{name} still runs after it was dropped")
                reread(c)
                loads.go_on()
            equal(len(listed(c)), 3, "coordinators")
        print(f"{loads.check()} loads, the longest pause {loads.longest_gap():.2f} s")
        equal_states(c)

        # Everybody finds the others again, though the options name those of the first day.
        c.tool("stop")
        c.tool("start")
        reread(c)
        for node in c.participants:
            node.wait_serves()
        c.good("t", b"-1\n", {"label": "after"})
        equal_states(c)


def a_participant_remembers_coordinators_that_its_options_never_named():
    with tide.Cluster(1, 1) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        for _ in range(2):
            c.tool("add-coordinator")
            reread(c)
        # One that just joined has no more than an open segment: it comes back with it.
        by_id(c, 3).end()
        by_id(c, 3).start()
        until("it is a voter that is alive",
              lambda: listed(c)[3]["alive"] and listed(c)[3]["role"] == "voter")
        equal(by_id(c, 3).log().count("join begins"), 1, "how often it joined")
        told = os.path.join(c.participants[0].data, "coordinators")
        until("the participant was told of three",
              lambda: os.path.exists(told) and len(open(told, encoding="ascii").readlines()) == 3)
        c.participants[0].end()
        c.tool("drop-coordinator", "coordinator-1")
        reread(c)
        equal(sorted(listed(c)), [2, 3], "coordinators")
        c.participants[0].start()
        c.good("t", b"1\n", {"label": "a"})
        equal(c.read("t"), [["1"]], "rows")


def what_would_cost_the_majority_is_refused():
    with tide.Cluster(3, 1) as c:
        leader = c.leader()
        dead = next(node for node in c.coordinators if node is not leader)
        other = next(node for node in c.coordinators if node not in (leader, dead))
        dead.end()
        until("the leader misses it",
              lambda: not listed(c)[int(dead.name.split("-")[1])]["alive"])
        order(c, "drop", refused="no majority", id=other.name.split("-")[1])
        order(c, "drop", refused="no majority", id=leader.name.split("-")[1])
        order(c, "drop", refused="has no coordinator 9", id=9)
        order(c, "transfer", refused="does not answer", id=dead.name.split("-")[1])
        order(c, "add", refused="does not answer", id=9, raft="127.0.0.1:1", rpc="127.0.0.1:2",
              http="127.0.0.1:3")
        order(c, "add", refused="is never given again", id=2, raft="127.0.0.1:1",
              rpc="127.0.0.1:2", http="127.0.0.1:3")
        order(c, "add", refused="not 4", id=4, raft="127.0.0.1:1", rpc=other.rpc,
              http="127.0.0.1:3")
        order(c, "dance", refused="say add, drop or transfer")
        order(c, "drop", id=dead.name.split("-")[1])
        until("the dead one is gone", lambda: len(listed(c)) == 2)
        # One that is back after it was dropped learns of it and ends.
        dead.start(wait=False)
        equal(dead.wait_gone(60), 0, "exit status of one that was dropped while it was dead")
        check("removed" in dead.log_tail(), dead.log_tail())


def two_changes_at_once_are_refused():
    with tide.Cluster(1, 1) as c:
        c.tool("add-coordinator")
        reread(c)
        # One that is admitted, but never comes: the change stays under way until it is dropped.
        joins = by_id(c, 2)
        conf = joins.conf
        c.tool("drop-coordinator", "coordinator-2")
        reread(c)
        with open(conf, encoding="utf-8") as file:
            text = file.read()
        joins.set_option("coordinator_id", "3")
        joins.set_option("coordinators", text.split("coordinators = ")[1].splitlines()[0]
                         .replace("2=", "3="))
        wipe(joins)
        joins.start(wait=False)
        until("it waits to be added", lambda: "join waiting" in joins.log())
        joins.send(tide.signal.SIGSTOP)
        add = dict(id=3, raft=joins.raft, rpc=joins.rpc, http=joins.http)
        order(c, "add", refused="does not answer", **add)
        joins.send(tide.signal.SIGCONT)
        order(c, "add", **add)
        joins.end()
        order(c, "add", refused="one change at a time" if listed(c)[3]["standing"] == "joins" else "", id=4, raft="127.0.0.1:1", rpc="127.0.0.1:2",
              http="127.0.0.1:3")
        if listed(c)[3]["standing"] == "joins":  # it may have been quick enough to vote
            order(c, "drop", id=3)
            until("it is gone", lambda: 3 not in listed(c))


def without_a_majority_what_is_known_stays_readable_and_one_can_go_on_alone():
    with tide.Cluster(3, 1, coordinator=["snapshot_bytes=64k"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        for number in range(20):
            c.good("t", f"{number}\n".encode(), {"label": f"before-{number}"})
        wanted = sorted([str(number)] for number in range(20))
        reader = c.participants[0].http
        answer = tide.ask(reader, "GET", "/api/d/t/_scan?format=csv")
        version, when = answer.headers["x-tidegate-version"], answer.headers["x-tidegate-as-of"]
        survivor = next(node for node in c.coordinators if node is not c.leader())
        until("the survivor has applied it all",
              lambda: len({state(node)["applied_index"] for node in c.coordinators}) == 1)
        open_txn = c.good("t", b"77\n", {"label": "open", "two_phase_commit": "true"})["TxnId"]
        for node in c.coordinators:
            if node is not survivor:
                node.end()

        # Reads of what is known go on, at once.
        for query in ("&consistency=local", f"&version={version}", f"&as_of={when}", "&as_of=1"):
            begun = tide.time.monotonic()
            answer = tide.ask(reader, "GET", "/api/d/t/_scan?format=csv" + query)
            if query == "&as_of=1":
                check(answer.status != 200, "a time before the table:", answer.text())
            else:
                equal(answer.status, 200, f"{query}: {answer.text()}")
                equal(sorted([line] for line in answer.text().split()), wanted, query)
            check(tide.time.monotonic() - begun < 8, f"{query} was answered slowly")
        # Nothing else is done. A load whose outcome nobody can tell ends without an answer (rule 11).
        try:
            tide.refused_with(c.load("t", b"99\n", {"label": "late", "timeout": "2"}, node=reader),
                              "")
        except http.client.RemoteDisconnected:
            pass
        answer = tide.ask(survivor.http, "PUT", "/api/d/_stream_load_2pc", b"",
                          {"txn_id": str(open_txn), "txn_operation": "commit"}, timeout=60).json()
        check(answer["status"] != "Success" and "no leading coordinator" in answer["msg"], answer)

        # The two others are lost. Without a word of acceptance nothing happens.
        survivor.end()
        recover = [os.path.join(tide.BIN, "tidegate-coordinator"), "--config", survivor.conf,
                   "--recover-alone"]
        for accept in ([], ["--accept-loss"]):
            done = subprocess.run(recover + accept, check=False, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            equal(done.returncode, 0 if accept else 1, done.stdout)
            check("the log ends at index" in done.stdout, done.stdout)
        check("only member now" in done.stdout, done.stdout)
        survivor.start()
        c.coordinators = [survivor]
        until("the others are forgotten", lambda: len(listed(c)) == 1)
        equal(c.read("t"), wanted, "rows after the recovery")
        equal(c.state("open"), "PRECOMMITTED", "state of the open transaction")
        equal(c.end_txn(open_txn, "commit")["status"], "Success", "commit after the recovery")
        c.good("t", b"100\n", {"label": "after"})
        equal(len(c.read("t")), 22, "rows")
        running = subprocess.run(recover, check=False, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        check("another coordinator runs" in running.stdout, running.stdout)
        one = survivor.name.split("-")[1]
        survivor.end()
        wipe(survivor)
        empty = subprocess.run(recover + ["--accept-loss"], check=False, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(empty.returncode == 1 and "no log to go on from" in empty.stdout, one, empty.stdout)


def leadership_moves_where_it_is_told():
    with tide.Cluster(3, 1) as c:
        for target in (1, 2, 3, 1):
            order(c, "transfer", id=target)
            until(f"coordinator {target} leads", lambda: listed(c).get(target, {}).get("leads"))
        tool = os.path.join(tide.BIN, "tidegate")
        done = subprocess.run([tool, "coordinator", "--url", c.any(), "transfer"], check=False,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal((done.returncode, done.stdout), (0, "another coordinator leads\n"), "transfer")
        done = subprocess.run([tool, "coordinator", "--url", c.any(), "list"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal(len(done.stdout.splitlines()), 4, done.stdout)


if __name__ == "__main__":
    tide.run([a_cluster_grows_is_repaired_and_shrinks_under_loads,
              a_participant_remembers_coordinators_that_its_options_never_named,
              what_would_cost_the_majority_is_refused,
              two_changes_at_once_are_refused,
              without_a_majority_what_is_known_stays_readable_and_one_can_go_on_alone,
              leadership_moves_where_it_is_told])
