#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of a node and of a cluster: who exceeds one is told in the right words, nothing of it stays,
and others go on."""

import gzip
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import ask, check, equal, raw_answer, raw_head, raw_open, refused_with, until

ANALYSIS = "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = "


def leaves_nothing(c, table, rows, label, node=None):
    """The label is free, no rowset stays, the rows are what they were."""
    check(c.state(label) in ("UNKNOWN", "ABORTED"), label, c.state(label))
    equal(len(c.read(table)), rows, "rows")
    until("no rowset is being written", lambda: all(
        p.metric("tidegate_rowsets_open") == 0 for p in c.participants if p.alive()))
    c.good(table, b"4711\n", {"label": label}, node=node)
    equal(len(c.read(table)), rows + 1, "rows with the same label's load")
    return rows + 1


def transactions_of_a_database_are_limited_in_doris_s_words():
    with tide.Cluster(3, 1, coordinator=["max_running_txn_num_per_db=5"]) as c:
        c.sql("CREATE DATABASE d")
        c.sql("CREATE DATABASE other")
        c.table("t", "k INT")
        c.table("t", "k INT", db="other")
        number = c.sql("SHOW DATABASES")
        held = [c.good("t", b"%d\n" % i, {"two_phase_commit": "true", "label": f"held-{i}"})["TxnId"]
                for i in range(5)]
        answer = c.load("t", b"9\n", {"label": "sixth"})
        check(answer["Status"] == "Fail" and answer["TxnId"] == -1, answer)
        text = answer["Message"]
        words = ("current running txns on db ", " is 5, larger than limit 5")
        check(text.startswith(ANALYSIS + words[0]) and text.endswith(words[1]), text)
        check(text[len(ANALYSIS + words[0]):-len(words[1])].isdigit(), text, number)
        equal(c.state("sixth"), "UNKNOWN", "state of the refused label")
        # An explicit begin is refused, too; another database is not.
        begun = ask(c.any(), "PUT", "/api/d/_stream_load_2pc", b"",
                    {"txn_operation": "begin", "label": "explicit"}).json()
        check(begun["status"] != "Success" and words[0] in begun["msg"], begun)
        c.good("t", b"1\n", {"label": "sixth"}, db="other")
        equal(c.end_txn(held[0], "commit")["status"], "Success", "commit")
        rows = leaves_nothing(c, "t", 1, "sixth")
        # It is the log's limit: another leader has it, from its own options if they differ.
        leader = c.leader()
        leader.end()
        fifth = c.good("t", b"10\n", {"two_phase_commit": "true"})["TxnId"]
        check(words[1] in c.load("t", b"9\n", {})["Message"], "the new leader knows no limit")
        for node in c.coordinators:
            node.set_option("max_running_txn_num_per_db", 50)
        for node in c.coordinators:
            if node.alive():
                node.end()
            node.start(wait=False)
        for node in c.coordinators:
            node.wait_serves()
        until("the larger limit holds",
              lambda: c.load("t", b"9\n", {"label": "larger"})["Status"] != "Fail")
        for txn in held[1:] + [fifth]:
            equal(c.end_txn(txn, "commit")["status"], "Success", "commit")
        equal(len(c.read("t")), rows + 6, "rows at the end")


def labels_memory_is_limited_and_frees_itself():
    with tide.Cluster(1, 1, coordinator=["label_memory_max=64k"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        rows = 0
        answer = None
        for i in range(2000):
            answer = c.load("t", b"1\n", {"label": f"a-label-of-a-good-length-{i:06d}"})
            if answer["Status"] != "Success":
                break
            rows += 1
        refused_with(answer, "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = the labels of ")
        check("fill the memory kept for them (65536 bytes)" in answer["Message"], answer)
        equal(len(c.read("t")), rows, "rows")
        check(c.coordinators[0].metric("tidegate_labels_bytes") < 70000, "labels' memory")


def bodies_are_limited_in_doris_s_words():
    with tide.Cluster(1, 1, participant=["streaming_load_max_mb=2",
                                         "streaming_load_json_max_mb=1"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        size = (2 << 20) + 1
        node = c.participants[0].http
        path = "/api/d/t/_stream_load"
        # By its length: at once, instead of 100 Continue, before the body and any transaction.
        with raw_open(node) as sock:
            sock.sendall(raw_head("PUT", path, {"Expect": "100-continue", "Content-Length": size,
                                                "label": "long"}))
            answer = raw_answer(sock).json()
        equal((answer["Status"], answer["TxnId"]), ("Fail", -1), answer)
        equal(answer["Message"], f"[E-217]body size {size} exceed BE's conf `streaming_load_max_mb` "
              f"{2 << 20}. increase it if you are sure this load is reasonable", "message")
        rows = leaves_nothing(c, "t", 0, "long")
        # Chunked: when it has become too long.
        with raw_open(node) as sock:
            sock.sendall(raw_head("PUT", path, {"Transfer-Encoding": "chunked", "label": "chunked"}))
            piece = b"1\n" * 32768
            for _ in range(40):
                sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            sock.sendall(b"0\r\n\r\n")
            answer = raw_answer(sock).json()
        refused_with(answer, "[E-217]body size ")
        check("exceed BE's conf `streaming_load_max_mb` 2097152." in answer["Message"], answer)
        rows = leaves_nothing(c, "t", rows, "chunked")
        document = json.dumps([{"k": 1}] * 120000).encode()
        check(1 << 20 < len(document) < 2 << 20, len(document))
        plain = {"format": "json", "read_json_by_line": "false", "strip_outer_array": "false"}
        answer = c.load("t", document, {**plain, "label": "document"})
        equal(answer["Message"], f"[E-217]json body size {len(document)} exceed BE's conf "
              "`streaming_load_json_max_mb` 1048576. increase it if you are sure this load is "
              "reasonable", "message for a document")
        rows = leaves_nothing(c, "t", rows, "document")
        c.good("t", document, {"format": "json", "strip_outer_array": "true"})
        equal(len(c.read("t")), rows + 120000, "an outer array is no document")
        # And the largest that is allowed.
        c.good("t", b"1\n" * (1 << 20), {"label": "just"})


def memory_of_loads_is_limited_and_given_back():
    limit = 24 << 20
    with tide.Cluster(1, 1, participant=[f"loads_memory_bytes={limit}",
                                         "load_memory_bytes=16m"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        c.table("w", "k INT, v STRING")
        node = c.participants[0]
        held = []
        try:
            # Documents that never end, each of some megabytes, until one is refused.
            for i in range(40):
                sock = raw_open(node.http)
                held.append(sock)
                sock.sendall(raw_head("PUT", "/api/d/w/_stream_load", {
                    "Content-Length": 8 << 20, "format": "json", "read_json_by_line": "false",
                    "label": f"held-{i}"}))
                sock.settimeout(20)
                try:
                    sock.sendall(b'{"k": 1, "v": "' + b"x" * (3 << 20))
                except OSError:
                    pass
                if node.metric("tidegate_loads_memory_refused_total") > 0:
                    break
            until("one is refused", lambda: node.metric("tidegate_loads_memory_refused_total") > 0)
            check(node.metric("tidegate_loads_memory_bytes") <= limit + (4 << 20),
                  "memory that loads hold:", node.metric("tidegate_loads_memory_bytes"))
            refused = [w for w in node.log().splitlines() if "memory limit exceeded" in w]
            check(refused and f"of {limit} bytes (loads_memory_bytes)" in refused[0], refused)
            # Small loads go on meanwhile; a large one is told before its body is sent.
            c.good("t", b"1\n", {"label": "small"})
            document = b'{"k": 1, "v": "' + b"x" * (9 << 20) + b'"}'
            answer = c.load("w", document, {"format": "json", "read_json_by_line": "false",
                                            "strip_outer_array": "false", "label": "document"})
            refused_with(answer, "[INTERNAL_ERROR]memory limit exceeded: the loads of this node hold")
            equal(c.state("document"), "ABORTED", "state of the refused document")
        finally:
            for sock in held:
                sock.close()
        until("all is given back", lambda: node.metric("tidegate_loads_memory_bytes") == 0)
        leaves_nothing(c, "t", 1, "again")
        equal(large(c, "large-2")["Status"], "Success", "a large load afterwards")
        check(node.memory_kib() < 400 * 1024, f"{node.memory_kib()} KiB")


def large(c, label):
    rows = b"".join(b"%d,%s\n" % (i, b"y" * 100) for i in range(80000))
    return c.load("w", rows, {"column_separator": ",", "label": label})


def many_large_loads_at_once_share_what_there_is():
    """Each of them wants more than its share: all succeed, by making smaller segments, or are told."""
    with tide.Cluster(1, 1, participant=["loads_memory_bytes=32m", "load_memory_bytes=16m"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("w", "k INT, v STRING")
        answers = []

        def one(i):
            answers.append(large(c, f"w-{i}"))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(tide.count(4, 10, 24))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        good = sum(a["Status"] == "Success" for a in answers)
        check(good > 0, answers[0])
        for answer in answers:
            if answer["Status"] != "Success":
                refused_with(answer, "[INTERNAL_ERROR]memory limit exceeded")
        equal(len(c.read("w", "&columns=k")), good * 80000, "rows")
        until("all is given back", lambda: c.participants[0].metric("tidegate_loads_memory_bytes") == 0)


def connections_and_loads_are_limited():
    with tide.Cluster(1, 1, participant=["http_connections_max=24", "loads_max=4"]) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        node = c.participants[0]
        stalled = [raw_open(node.http) for _ in range(4)]
        for i, sock in enumerate(stalled):
            sock.sendall(raw_head("PUT", "/api/d/t/_stream_load",
                                  {"Content-Length": 100, "label": f"s{i}"}) + b"1\n")
        until("four loads run", lambda: all(c.state(f"s{i}") == "PREPARE" for i in range(4)))
        answer = c.load("t", b"1\n", {"label": "fifth"})
        refused_with(answer, "[INTERNAL_ERROR]too many loads run on this node")
        equal(c.state("fifth"), "UNKNOWN", "state of the fifth")
        idle = [raw_open(node.http) for _ in range(20)]

        def is_refused():
            try:
                return ask(node.http, "GET", "/metrics", timeout=10).status == 503
            except (OSError, tide.http.client.HTTPException):
                return False
        until("further connections are refused with 503", is_refused)
        for sock in stalled + idle:
            sock.close()
        until("it answers again", lambda: not is_refused())
        until("the stalled ones are aborted",
              lambda: all(c.state(f"s{i}") == "ABORTED" for i in range(4)))
        leaves_nothing(c, "t", 0, "fifth")


def heads_are_limited():
    with tide.Cluster(1, 1) as c:
        for node in c.nodes():
            with raw_open(node.http) as sock:
                sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
                try:
                    for i in range(4000):
                        sock.sendall(b"X-%d: %s\r\n" % (i, b"y" * 100))
                    sock.sendall(b"\r\n")
                except OSError:
                    pass
                try:
                    status = raw_answer(sock).status
                except (OSError, tide.http.client.HTTPException):
                    status = 0  # it hung up while we were still sending
                check(status in (0, 400, 413, 431), f"{node.name}: {status}")
            check("tidegate" in node.metrics_text(), "it does not answer any more")


def a_gzip_body_without_its_header_is_explained():
    with tide.Cluster(1, 1) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT NOT NULL")
        body = gzip.compress(b"1\n2\n3\n")
        for headers in ({}, {"format": "json", "read_json_by_line": "true"}):
            answer = c.load("t", body, headers)
            refused_with(answer, "[DATA_QUALITY_ERROR]")
            check("compress_type: gz" in answer["Message"], answer)
        c.good("t", body, {"compress_type": "gz"})
        equal(len(c.read("t")), 3, "rows")
        answer = c.load("t", b"x\n")
        check("gz" not in answer["Message"], answer)


def a_joined_load_answers_the_transaction_s_label():
    with tide.Cluster(1, 1) as c:
        c.sql("CREATE DATABASE d")
        c.table("t", "k INT")
        begun = ask(c.any(), "PUT", "/api/d/_stream_load_2pc", b"",
                    {"txn_operation": "begin", "label": "together"}).json()
        join = {"two_phase_commit": "true", "txn_id": str(begun["txn_id"])}
        equal(c.good("t", b"1\n", join)["Label"], "together", "Label")
        equal(c.good("t", b"2\n", {**join, "label": "mine"})["Label"], "mine", "Label")


def metrics_say_what_they_are():
    with tide.Cluster(1, 1) as c:
        for node in c.nodes():
            kinds = {}
            for line in node.metrics_text().splitlines():
                if line.startswith("# TYPE "):
                    kinds[line.split()[2]] = line.split()[3]
            for name, kind in kinds.items():
                counts = name.endswith("_total") or any(word in name for word in (
                    "proposed", "times_led", "taken", "refused", "stalls", "bad_frames",
                    "clone_rounds", "clone_bytes", "scrub_passes", "scrub_bytes", "scrub_damaged"))
                if kind != "histogram":
                    equal(kind, "counter" if counts else "gauge", f"{node.name}: type of {name}")


if __name__ == "__main__":
    tide.run([transactions_of_a_database_are_limited_in_doris_s_words,
              labels_memory_is_limited_and_frees_itself,
              bodies_are_limited_in_doris_s_words,
              memory_of_loads_is_limited_and_given_back,
              many_large_loads_at_once_share_what_there_is,
              connections_and_loads_are_limited,
              heads_are_limited,
              a_gzip_body_without_its_header_is_explained,
              a_joined_load_answers_the_transaction_s_label,
              metrics_say_what_they_are])
