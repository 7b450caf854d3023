#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Row counts, JSON, numbers, dates and heads of requests as real bug reports met them: O08, O09,
O15, O18, O19, O20, O22."""

import os
import sys
from urllib.parse import unquote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tide
from tide import ask, check, equal, raw_answer, raw_head, raw_open, refused_with

JSON_LINES = {"format": "json", "read_json_by_line": "true"}


def counts(answer):
    return tuple(answer["Number" + word + "Rows"] for word in
                 ("Total", "Loaded", "Filtered", "Unselected"))


def error_log(answer):
    node, path = answer["ErrorURL"].split("//", 1)[1].split("/", 1)
    return ask(node, "GET", "/" + path, auth=None).text()


# ---- O08 ----

def o08_all_rows_filtered_with_ratio_1_is_a_success():
    c.table("o08", "id INT, name VARCHAR(5)", "UNIQUE")
    array = {"format": "json", "strip_outer_array": "true", "strict_mode": "true"}
    answer = c.good("o08", b'[{"id":"1","name":"abcdefghij"}]', {**array, "max_filter_ratio": "1"})
    equal(counts(answer), (1, 0, 1, 0), "counts")
    check("abcdefghij" in error_log(answer), "the error log lacks the row")
    equal(c.read("o08"), [], "rows")
    empty = c.good("o08", b"[]", array)
    equal(counts(empty), (0, 0, 0, 0), "counts of an empty array")
    check("ErrorURL" not in empty, empty)


def o08_the_ratio_is_a_border_that_may_be_reached():
    c.table("o08r", "k INT NOT NULL")
    ten = b"x\n" + b"".join(b"%d\n" % i for i in range(9))
    answer = c.good("o08r", ten, {"max_filter_ratio": "0.1", "label": "o08-a"})
    equal(counts(answer), (10, 9, 1, 0), "counts")
    refused_with(c.load("o08r", ten, {"max_filter_ratio": "0.09", "label": "o08-b"}),
                 "too many filtered rows")
    equal(len(c.read("o08r")), 9, "rows")
    for ratio in ("1.5", "-1", "abc"):
        answer = c.load("o08r", ten, {"max_filter_ratio": ratio, "label": "o08-c"})
        equal((answer["Status"], answer["TxnId"]), ("Fail", -1), f"ratio {ratio}")
        equal(c.state("o08-c"), "UNKNOWN", "state of a refused load's label")
    c.good("o08r", b"77\n", {"label": "o08-b"})
    equal(len(c.read("o08r")), 10, "rows")


# ---- O09 ----

def o09_a_bad_row_at_the_front_is_named_although_the_body_goes_on():
    c.table("o09", "k INT NOT NULL")
    rest = b"1\n" * (512 * 1024)
    megabytes = tide.count(4, 16, 64)
    size = 2 + megabytes * len(rest)
    for i in range(tide.count(3, 12, 50)):
        node = c.participants[i % len(c.participants)].http
        with raw_open(node) as sock:
            sock.sendall(raw_head("PUT", "/api/d/o09/_stream_load",
                                  {"label": "o09", "Content-Length": size,
                                   **({"Expect": "100-continue"} if i % 2 else {})}) + b"x\n")
            try:
                for _ in range(megabytes):
                    sock.sendall(rest)
            except OSError as error:
                raise tide.Failed(f"the server hung up while the body came: {error}") from error
            answer = raw_answer(sock).json()
        refused_with(answer, "[DATA_QUALITY_ERROR]")
        check(answer["NumberFilteredRows"] >= 1, answer)
        check("[x]" in error_log(answer), answer)
        equal(c.state("o09"), "ABORTED", "state")
    equal(c.read("o09"), [], "rows")
    c.good("o09", b"5\n", {"label": "o09"})
    equal(c.read("o09"), [["5"]], "rows")


# ---- O15 ----

def o15_wide_numbers_in_json_are_exact():
    c.table("o15", "a INT, b LARGEINT, c DECIMAL(38,2), s VARCHAR(50)")
    numbers = ("37778931862957161709568", "123456789012345678901234567890.12",
               "12345678901234567890123")
    line = '{"a":%d,"b":%s,"c":%s,"s":%s}\n'
    c.good("o15", (line % (1, *numbers)).encode(), JSON_LINES)
    c.good("o15", (line % (2, *numbers)).encode(), {**JSON_LINES, "num_as_string": "true"})
    c.good("o15", ("3," + ",".join(numbers) + "\n").encode(), {"column_separator": ","})
    c.good("o15", (line % (4, *(f'"{n}"' for n in numbers))).encode(), JSON_LINES)
    negative = tuple("-" + n for n in numbers)
    c.good("o15", (line % (5, *negative)).encode(), JSON_LINES)
    equal(c.read("o15"), [[str(i), *numbers] for i in range(1, 5)] + [["5", *negative]], "rows")


# ---- O18 ----

def o18_an_invalid_escape_spoils_its_record_only():
    c.table("o18", "k INT, v VARCHAR(20)")
    lines = b'{"k":1,"v":"a"}\n{"k":2,"v":"x\\qy"}\n{"k":3,"v":"c"}\n'
    answer = c.good("o18", lines, {**JSON_LINES, "max_filter_ratio": "0.5"})
    equal(counts(answer), (3, 2, 1, 0), "counts")
    check('{"k":2,"v":"x\\qy"}' in error_log(answer), error_log(answer))
    equal(c.read("o18"), [["1", "a"], ["3", "c"]], "rows")
    answer = c.load("o18", lines, {**JSON_LINES, "max_filter_ratio": "0"})
    refused_with(answer, "[DATA_QUALITY_ERROR]")
    array = b'[{"k":4,"v":"a"},{"k":5,"v":"x\\qy"},{"k":6,"v":"c"}]'
    answer = c.load("o18", array, {"format": "json", "strip_outer_array": "true",
                                   "max_filter_ratio": "0.5"})
    equal((answer["Status"], answer["NumberLoadedRows"]), ("Fail", 0), "an array that is broken")
    equal(c.read("o18"), [["1", "a"], ["3", "c"]], "rows")


# ---- O19 ----

def o19_a_decimal_is_rounded_or_refused_never_cut():
    c.table("o19", "k DECIMAL(1,0), v DECIMAL(3,1)")
    body = b"1,1.0\n28,2\n400,3\n5,99.99\n"
    commas = {"column_separator": ","}
    answer = c.good("o19", body, {**commas, "strict_mode": "true", "max_filter_ratio": "1"})
    equal(counts(answer), (4, 1, 3, 0), "counts, strict")
    equal(c.read("o19"), [["1", "1.0"]], "rows, strict")
    c.sql("TRUNCATE TABLE o19", "d")
    answer = c.good("o19", body, commas)
    equal(counts(answer), (4, 4, 0, 0), "counts")
    equal(c.read("o19"), [["1", "1.0"], ["5", "\\N"], ["\\N", "2.0"], ["\\N", "3.0"]], "rows")
    c.table("o19r", "k INT, v DECIMAL(4,1)")
    c.good("o19r", b"1,12.25\n2,-12.25\n3,12.24\n4,12.35\n5,999.94\n", commas)
    equal(c.read("o19r"), [["1", "12.3"], ["2", "-12.3"], ["3", "12.2"], ["4", "12.4"],
                           ["5", "999.9"]], "rounded")


# ---- O20 ----

def o20_an_offset_of_a_time_counts():
    c.table("o20", "id INT, ts DATETIME(3), dt DATE")
    body = (b'{"id":1,"ts":"2023-06-15T10:00:00.000Z","dt":"2024-04-11T06:00:13+08:00"}\n'
            b'{"id":2,"ts":"2023-06-15T18:00:00.000+08:00","dt":"2024-04-10"}\n'
            b'{"id":3,"ts":"2023-06-15 10:00:00","dt":"2024-02-29"}\n')
    c.good("o20", body, {**JSON_LINES, "timezone": "UTC"})
    rows = c.read("o20")
    equal([row[1] for row in rows], ["2023-06-15 10:00:00.000"] * 3, "instants")
    equal([row[2] for row in rows], ["2024-04-10", "2024-04-10", "2024-02-29"], "dates")


# ---- O22 ----

def o22_credentials_survive_the_redirect_or_are_refused_in_clean_words():
    password = "p@s:s/w%rd#1"
    with tide.Cluster(1, 1, [f"root_password={password}"], [f"root_password={password}"]) as safe:
        good = "Basic " + tide.base64.b64encode(f"root:{password}".encode()).decode()
        wrong = "Basic " + tide.base64.b64encode(b"root:p@s").decode()
        at = safe.coordinators[0].http
        statement = '{"stmt": "CREATE DATABASE d"}'
        equal(ask(at, "POST", "/api/query/default_cluster", statement, auth=good).json()["code"], 0)
        statement = ('{"stmt": "CREATE TABLE t (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) '
                     'BUCKETS 1"}')
        equal(ask(at, "POST", "/api/query/default_cluster/d", statement, auth=good).json()["code"], 0)
        path = "/api/d/t/_stream_load"
        # a: as curl --location-trusted does, which sends them again.
        answer = ask(at, "PUT", path, b"1\n", {"label": "a"}, auth=good).json()
        equal(answer["Status"], "Success", answer)
        # b: who follows the Location and knows nothing else.
        location = ask(at, "PUT", path, b"", {"label": "b"}, auth=good, follow=False
                       ).headers["location"]
        user, _, host = location.split("//", 1)[1].split("/", 1)[0].rpartition("@")
        if user:
            name, _, word = user.partition(":")
            text = f"{unquote(name)}:{unquote(word)}"
            answer = ask(host, "PUT", path, b"2\n", {"label": "b"}, auth="Basic " +
                         tide.base64.b64encode(text.encode()).decode()).json()
            equal(answer["Status"], "Success", f"{location}: {answer}")
        # c: a wrong password, before any transaction or label; and none at all.
        for auth in (wrong, None):
            for node in (at, safe.participants[0].http):
                answer = ask(node, "PUT", path, b"3\n", {"label": "c"}, auth=auth)
                text = answer.text()
                equal(answer.status, 200 if auth or node != at else answer.status, text)
                check("Success" not in text and "s:s" not in text, text)
                if auth:
                    check("Access denied for user 'root@" in text, text)
        state = ask(at, "GET", "/api/d/get_load_state?label=c", auth=good).json()["data"]
        equal(state, "UNKNOWN", "state of a refused load's label")


if __name__ == "__main__":
    with tide.Cluster(1, 3) as c:
        c.sql("CREATE DATABASE d")
        tide.run([f for name, f in sorted(globals().items()) if name.startswith("o")
                  and callable(f) and name[1:3].isdigit()])
