#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers and calls that are lost on the way: clients that never hear what became of a load (O02),
participants that no coordinator reaches for longer than every timeout (O36). Packets are dropped in
a network namespace of its own; wants root and nftables."""

import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import Dropped, check, equal, ports, raw_answer, raw_head, raw_open, until

FINAL = ("VISIBLE", "ABORTED")


def o02_a_lost_answer_leaves_one_outcome_that_all_tell():
    random = tide.chance()
    outcomes = {"VISIBLE": 0, "ABORTED": 0}
    with tide.Cluster(3, 3) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT", replicas=3)
        loads = tide.count(6, 24, 200)
        for i in range(loads):
            label = f"b{i}"
            node = c.participants[i % 3].http
            body = b"%d\n" % i
            lost = Dropped(f"tcp sport {ports([node])}")
            # The answer of most; of some the sender goes while the body is not complete.
            part = body if i % 4 else body[:-1] + b"0" * 20
            with raw_open(node, 1.0) as sock:
                head = raw_head("PUT", "/api/d/t/_stream_load", {
                    "label": label, "timeout": 4, "Content-Length": len(body) if i % 4 else 400})
                if i % 3:
                    sock.sendall(head + part)
                    time.sleep(random.random() * 0.004)
                    lost.__enter__()
                else:
                    lost.__enter__()
                    sock.sendall(head + part)
                try:
                    answer = raw_answer(sock).json()
                    lost_answer = False
                    check(answer["Status"] in ("Success", "Fail"), answer)
                except (OSError, socket.timeout):
                    lost_answer = True
                finally:
                    lost.__exit__()
            state = until(f"{label} has an outcome", lambda n=label: (
                s := c.state(n)) in FINAL + ("UNKNOWN",) and s, 30)
            # Who asked sees it; so does whoever asks another coordinator later.
            for coordinator in c.coordinators:
                equal(c.state(label, node=coordinator.http), state, f"{label} at {coordinator.name}")
            again = c.load("t", body, {"label": label}, node=c.participants[(i + 1) % 3].http)
            if state == "VISIBLE":
                equal((again["Status"], again["ExistingJobStatus"]),
                      ("Label Already Exists", "FINISHED"), again)
            else:
                equal(again["Status"], "Success", again)
            outcomes["VISIBLE" if state == "VISIBLE" else "ABORTED"] += lost_answer
        equal(c.read("t"), sorted([str(i)] for i in range(loads)), "rows: each exactly once")
        check(sum(outcomes.values()) > 0, "no answer was ever lost")
        print(f"    answers lost of loads that became {outcomes}")


def all_calls(c):
    """Everything between participants and coordinators; raft and HTTP go on."""
    numbers = ports([n.rpc for n in c.nodes()])
    return Dropped(f"tcp dport {numbers}", f"tcp sport {numbers}")


def o36_only_the_log_s_word_drops_a_rowset():
    timeout = 1 if tide.SHORT else 2
    with tide.Cluster(3, 3, coordinator=["participant_lease_ms=1000", "precommit_timeout_s=3600"],
                      participant=["heartbeat_ms=200"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT", replicas=3, buckets=2)
        rows = 0
        for i in range(tide.count(1, 2, 10)):
            held = [c.good("t", b"%d\n" % (10 * i + n), {
                "two_phase_commit": "true", "timeout": timeout,
                "label": f"o36-{i}-{n}"})["TxnId"] for n in range(3)]
            # One load is in the middle of its body when the links go.
            upload = raw_open(c.participants[0].http, 120)
            upload.sendall(raw_head("PUT", "/api/d/t/_stream_load", {
                "Content-Length": 5, "timeout": timeout, "label": f"o36-{i}-up"}) + b"99")
            leader = c.leader().http
            until("it runs", lambda n=i: c.state(f"o36-{n}-up") == "PREPARE")
            answers = {}

            def end(txn, operation, node=leader, into=answers):
                into[txn] = c.end_txn(txn, operation, node=node)

            with all_calls(c):
                threads = [threading.Thread(target=end, args=pair) for pair in
                           ((held[0], "commit"), (held[1], "abort"))]
                for thread in threads:
                    thread.start()
                upload.sendall(b"\n1\n")
                # The participants' own timers run, five times over; the third one stays undecided.
                time.sleep(5 * timeout)
                equal(c.state(f"o36-{i}-2", node=leader), "PRECOMMITTED", "the undecided one")
            for thread in threads:
                thread.join()
            equal(answers[held[0]]["status"], "Success", answers)
            equal(answers[held[1]]["status"], "Success", answers)
            rows += 1
            until("what was committed is visible", lambda n=i: c.state(f"o36-{n}-0") == "VISIBLE", 60)
            # What nobody decided is there all the same, and can still be committed.
            equal(c.end_txn(held[2], "commit")["status"], "Success", "commit after the cut")
            rows += 1
            until("that, too", lambda n=i: c.state(f"o36-{n}-2") == "VISIBLE", 60)
            # The upload's client is told the log's word, or nothing.
            state = until("the upload has an outcome",
                          lambda n=i: (s := c.state(f"o36-{n}-up")) in FINAL and s, 60)
            try:
                answer = raw_answer(upload).json()["Status"]
                check(answer == "Fail" if state == "ABORTED" else answer != "Fail", state, answer)
            except (OSError, tide.http.client.HTTPException):
                pass
            upload.close()
            rows += 2 if state == "VISIBLE" else 0
            until("all copies are good",
                  lambda: c.leader().metric("tidegate_replicas_behind") == 0, 120)
            for node in c.participants:
                equal(len(c.read("t", node=node.http)), rows, f"rows at {node.name}")
                until(f"{node.name} has dropped what was aborted",
                      lambda n=node: n.metric("tidegate_staged_transactions") == 0, 60)
        equal(len({tuple(sorted(tide.ask(n.http, "GET", "/api/_tablets").text().splitlines()))
                   for n in c.participants}), 1, "different tablets")


if __name__ == "__main__":
    tide.own_network()
    tide.run([o02_a_lost_answer_leaves_one_outcome_that_all_tell,
              o36_only_the_log_s_word_drops_a_rowset])
