#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the tree in its shape: who may include whom, no circles, no swollen files or functions.

    tests/tidy.py [FOLDER]       checks the tree (default: the one this file is in)
    tests/tidy.py --self-test    checks this checker on small bad trees
"""

import os
import re
import sys
import tempfile

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 120  # an error beyond
FUNCTION_LINES_LONG = 80  # a warning beyond

PURE = ["common/proto", "common/model", "common/base"]
COMMON = PURE + ["common/net"]
COORDINATOR_LOW = ["coordinator/consensus", "coordinator/cluster", "coordinator/state"] + COMMON
COORDINATOR_MID = ["coordinator/members", "coordinator/txn", "coordinator/query", "coordinator/ddl"] + COORDINATOR_LOW
COORDINATOR_TOP = ["coordinator/dispatch"] + COORDINATOR_MID
PARTICIPANT_LOW = ["participant/tablet", "participant/link", "participant/rowset",
                   "participant/store"] + COMMON
PARTICIPANT_MID = ["participant/ingest", "participant/read",
                   "participant/maintain"] + PARTICIPANT_LOW

# Folder -> the folders it may include besides itself: the arrows of ARCHITECTURE.md.
ARROWS = {
    "common/base": [],
    "common/model": ["common/base"],
    "common/net": ["common/base"],
    "common/proto": ["common/model", "common/base"],
    "coordinator/ddl": ["common/model", "common/base"],
    "coordinator/state": PURE,
    "coordinator/consensus": ["coordinator/state"] + COMMON,
    "coordinator/cluster": ["coordinator/state"] + COMMON,
    "coordinator/members": COORDINATOR_LOW,
    "coordinator/txn": COORDINATOR_LOW,
    "coordinator/query": ["coordinator/ddl"] + COORDINATOR_LOW,
    "coordinator/dispatch": COORDINATOR_MID,
    "coordinator/rpc": COORDINATOR_TOP,
    "coordinator/api": COORDINATOR_TOP,
    "coordinator": ["coordinator/api", "coordinator/rpc"] + COORDINATOR_TOP,
    "participant/store": COMMON,
    "participant/rowset": ["participant/store"] + COMMON,
    "participant/tablet": ["participant/rowset", "participant/store"] + COMMON,
    "participant/link": COMMON,
    "participant/ingest": PARTICIPANT_LOW,
    "participant/read": PARTICIPANT_LOW,
    "participant/maintain": PARTICIPANT_LOW,
    "participant/api": PARTICIPANT_MID,
    "participant": ["participant/api"] + PARTICIPANT_MID,
    "client": ["common/net", "common/model", "common/base"],
    "client/cli": ["client", "common/net", "common/model", "common/base"],
}

ROOTS = ["coordinator", "participant", "client/cli"]
# Foreign header (or the folder it is in, with a slash) -> the rooms that may know it.
FOREIGN = {
    "uv.h": ["common/net", "coordinator/consensus"] + ROOTS,
    "raft.h": ["coordinator/consensus"],
    "raft/": ["coordinator/consensus"],
    "lmdb.h": ["participant/store"],
    "msgpack.h": ["common/base"],
    "msgpack/": ["common/base"],
    "yyjson.h": ["common/base"],
    "ini.h": ["common/base"],
    "uthash.h": ["common/base"],
    "llhttp.h": ["common/net"],
    "openssl/": ["common/net"],
    "sodium.h": ["common/net"],
    "xxhash.h": ["common/base", "common/model"],
    "lz4.h": ["common/base", "common/model"],
    "lz4hc.h": ["common/base", "common/model"],
    "lz4frame.h": ["common/base", "common/model"],
    "zlib.h": ["participant/ingest"],
    "archive.h": ["participant/ingest"],
    "archive_entry.h": ["participant/ingest"],
    "cmocka.h": [],
}
# Everyone's: the C library, POSIX, Linux, the compiler's intrinsics, and uthash's lists.
SYSTEM = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath
    threads time uchar wchar wctype dirent dlfcn endian err execinfo fcntl fnmatch ftw getopt glob grp
    ifaddrs libgen malloc netdb poll pthread pwd regex sched semaphore spawn sysexits syslog termios
    link ucontext unistd utime byteswap immintrin x86intrin emmintrin nmmintrin smmintrin tmmintrin
    arm_neon arm_acle cpuid utlist utarray utstring alloca""".split())
SYSTEM_FOLDERS = ("sys/", "linux/", "netinet/", "arpa/", "net/", "bits/", "asm/", "sanitizer/")

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def c_files(top):
    """Paths of all C files below the known top folders, relative to top, sorted."""
    found = []
    for start in ("common", "coordinator", "participant", "client", "tests", "bench", "cmake"):
        for folder, folders, names in os.walk(os.path.join(top, start)):
            folders[:] = [f for f in folders if not f.startswith((".", "build"))]
            for name in names:
                if name.endswith((".c", ".h")):
                    found.append(os.path.relpath(os.path.join(folder, name), top))
    return sorted(found)


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8", errors="replace") as file:
        return file.read().split("\n")[:-1]


def is_free(path):
    """Tests, benchmarks and build helpers may include everything."""
    return path.startswith(("tests/", "bench/", "cmake/"))


def without_comments(lines):
    """The same lines, with comments and what is in quotes blanked (not in #include lines)."""
    out, inside = [], False
    for line in lines:
        kept, i = "", 0
        if not inside and INCLUDE.match(line):
            out.append(line)
            continue
        while i < len(line):
            if inside:
                end = line.find("*/", i)
                inside = end < 0
                i = len(line) if end < 0 else end + 2
            elif line.startswith("/*", i):
                inside = True
                i += 2
            elif line.startswith("//", i):
                break
            elif line[i] in "\"'":
                quote, i = line[i], i + 1
                while i < len(line) and line[i] != quote:
                    i += 2 if line[i] == "\\" else 1
                i += 1
                kept += quote + quote
            else:
                kept += line[i]
                i += 1
        out.append(kept)
    return out


def check_include(path, number, own, foreign):
    room = os.path.dirname(path)
    where = "%s:%d" % (path, number)
    if own is not None:
        target = os.path.dirname(own)
        if not target:
            return ["%s: \"%s\" is not written from the top of the tree" % (where, own)]
        if is_free(path):
            return []
        if is_free(own):
            return ["%s: %s includes %s: nothing outside tests may" % (where, room, own)]
        if target != room and room in ARROWS and target not in ARROWS[room]:
            return ["%s: %s may not include %s (direction of includes)" % (where, room, target)]
        return []
    if is_free(path):
        return []
    for name, rooms in FOREIGN.items():
        if foreign == name or (name.endswith("/") and foreign.startswith(name)):
            if room not in rooms:
                return ["%s: foreign header <%s> belongs to %s only" %
                        (where, foreign, ", ".join(rooms) or "tests")]
            return []
    known = foreign.startswith(SYSTEM_FOLDERS) or \
        (foreign.endswith(".h") and foreign[:-2] in SYSTEM)
    return [] if known else ["%s: foreign header <%s> has no room yet" % (where, foreign)]


def check_functions(path, lines):
    """With our formatting a function's braces stand alone in the first column."""
    errors, warnings, start = [], [], None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            length = number - start + 1
            name = "?"
            for back in range(start - 2, max(start - 12, -1), -1):
                match = re.match(r"^[A-Za-z_][\w\s\*]*?\b(\w+)\(", lines[back])
                if match:
                    name = match.group(1)
                    break
            text = "%s:%d: function %s has %d lines" % (path, start, name, length)
            if length > FUNCTION_LINES_MAX:
                errors.append("%s (at most %d)" % (text, FUNCTION_LINES_MAX))
            elif length > FUNCTION_LINES_LONG:
                warnings.append(text)
            start = None
    return errors, warnings


def circles(edges):
    """Strongly connected groups of more than one pair, each as a sorted list (Tarjan, iterative)."""
    index, low, on_stack, stack, groups = {}, {}, set(), [], []
    for root in sorted(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, nexts = work[-1]
            for follower in nexts:
                if follower not in edges:
                    continue
                if follower not in index:
                    index[follower] = low[follower] = len(index)
                    stack.append(follower)
                    on_stack.add(follower)
                    work.append((follower, iter(sorted(edges[follower]))))
                    break
                if follower in on_stack:
                    low[node] = min(low[node], index[follower])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.append(member)
                        if member == node:
                            break
                    if len(group) > 1:
                        groups.append(sorted(group))
    return groups


def reachable(graph, start):
    """Everything that start leads to, without start itself unless it is in a circle."""
    seen, work = set(), list(graph.get(start, ()))
    while work:
        node = work.pop()
        if node not in seen:
            seen.add(node)
            work += graph.get(node, ())
    return seen


def pair_edges(includes):
    """Who depends on whom among the pairs x.h, x.c; includes: path -> the headers it includes.

    x.c may use a helper whose header builds on x.h: the interface lies above the helper, its
    implementation below. That is no circle. Two pairs that call one another, neither building on
    the other, are one.
    """
    headers = {p: [i for i in found if i in includes] for p, found in includes.items()
               if p.endswith(".h")}
    above = {header: reachable(headers, header) for header in headers}
    edges = {}
    for path, found in includes.items():
        pair = os.path.splitext(path)[0]
        edges.setdefault(pair, set())
        for other in found:
            is_helper = path.endswith(".c") and pair + ".h" in above.get(other, ())
            if os.path.splitext(other)[0] != pair and not is_helper:
                edges[pair].add(os.path.splitext(other)[0])
    return edges


ALLOCATED = re.compile(r"([\w.>-]+) = (?:\([^)]*\))?(?:malloc|calloc|realloc|strdup)\(")
MEMORY_CHECK = re.compile(r"\bTG_CHECK\(([\w.>-]+) != NULL")


def check_memory(path, code):
    """TG_CHECK aborts: that there is no memory is for TG_CHECK_MEMORY to say."""
    errors = []
    if is_free(path):
        return errors
    for number, line in enumerate(code, 1):
        found = MEMORY_CHECK.search(line)
        before = ALLOCATED.findall("\n".join(code[max(0, number - 5):number - 1]))
        if found and found.group(1).strip("*") in before:
            errors.append("%s:%d: no memory wants TG_CHECK_MEMORY" % (path, number))
    return errors


def check_tree(top):
    """All errors and warnings of the tree, as two lists of sentences, and the number of files."""
    errors, warnings, includes = [], [], {}
    paths = c_files(top)
    for path in paths:
        lines = read(top, path)
        room = os.path.dirname(path)
        if not is_free(path) and room not in ARROWS:
            errors.append("%s: no room (library) takes the folder %s: an orphan" % (path, room))
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
            errors.append("%s: no SPDX line at the top" % path)
        if len(lines) > FILE_LINES_MAX:
            errors.append("%s: %d lines (at most %d)" % (path, len(lines), FILE_LINES_MAX))
        for number, line in enumerate(lines, 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                errors.append("%s:%d: a note to oneself instead of an issue" % (path, number))
        code = without_comments(lines)
        includes[path] = []
        for number, line in enumerate(code, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            errors += check_include(path, number, match.group(1), match.group(2))
            if match.group(1):
                includes[path].append(match.group(1))
        found, long_ones = check_functions(path, code)
        errors += found + check_memory(path, code)
        warnings += long_ones
    for group in circles(pair_edges(includes)):
        errors.append("circle of includes: %s" % ", ".join(group))
    return errors, warnings, len(paths)


SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def function_of(lines):
    """A function whose braces and body take so many lines."""
    return "int f(void)\n{\n" + "    g();\n" * (lines - 2) + "}\n"


# What is wrong, the files of the tree, a word of the error that must come (None: no error).
SELF_TESTS = [
    ("a good tree", {
        "common/base/buf.h": SPDX + "#include <stdint.h>\n",
        "common/base/buf.c": SPDX + '#include "common/base/buf.h"\n#include <lz4.h>\n',
        "participant/store/lmdb_env.c": SPDX + '#include "common/base/buf.h"\n#include <lmdb.h>\n',
        "coordinator/api/api_ddl.c": SPDX + '#include "coordinator/ddl/ddl_parser.h"\n',
        "tests/unit/common/base/test_buf.c": SPDX + '#include "common/base/buf.h"\n',
        "coordinator/main.c": SPDX + '#include "coordinator/api/api.h"\n#include <uv.h>\n'}, None),
    ("an upward include",
     {"common/base/a.c": SPDX + '#include "common/net/loop.h"\n'}, "direction of includes"),
    ("a sibling's header",
     {"coordinator/txn/a.c": SPDX + '#include "coordinator/query/x.h"\n'}, "direction"),
    ("the other program's header",
     {"participant/api/a.c": SPDX + '#include "coordinator/state/x.h"\n'}, "direction"),
    ("state that knows the network",
     {"coordinator/state/a.c": SPDX + '#include "common/net/loop.h"\n'}, "direction"),
    ("the parser that knows the state",
     {"coordinator/ddl/a.c": SPDX + '#include "coordinator/state/x.h"\n'}, "direction"),
    ("a product file that includes a test's",
     {"common/base/a.c": SPDX + '#include "tests/lib/fault.h"\n'}, "nothing outside tests"),
    ("a circle through the headers", {
        "common/base/a.h": SPDX + '#include "common/base/b.h"\n',
        "common/base/b.h": SPDX + '#include "common/base/a.h"\n'}, "circle"),
    ("a circle through the C files", {
        "common/base/a.c": SPDX + '#include "common/base/b.h"\n',
        "common/base/a.h": SPDX,
        "common/base/b.c": SPDX + '#include "common/base/c.h"\n',
        "common/base/b.h": SPDX,
        "common/base/c.h": SPDX + '#include "common/base/a.h"\n'}, "circle"),
    ("two pairs that call one another", {
        "common/base/a.c": SPDX + '#include "common/base/b.h"\n', "common/base/a.h": SPDX,
        "common/base/b.c": SPDX + '#include "common/base/a.h"\n', "common/base/b.h": SPDX},
     "circle"),
    ("a helper that builds on the interface it helps", {
        "common/base/a.c": SPDX + '#include "common/base/a_part.h"\n',
        "common/base/a.h": SPDX,
        "common/base/a_part.h": SPDX + '#include "common/base/a.h"\n',
        "common/base/a_part.c": SPDX + '#include "common/base/a_part.h"\n'}, None),
    ("a file too long", {"common/base/a.c": SPDX + "\n" * FILE_LINES_MAX}, "lines (at most 600)"),
    ("a file just short enough", {"common/base/a.c": SPDX + "\n" * (FILE_LINES_MAX - 1)}, None),
    ("a function too long",
     {"common/base/a.c": SPDX + function_of(FUNCTION_LINES_MAX + 1)}, "function f has 121"),
    ("a function just short enough",
     {"common/base/a.c": SPDX + function_of(FUNCTION_LINES_MAX)}, None),
    ("an abort for want of memory",
     {"common/base/a.c": SPDX + "    x->a = calloc(1, 2);\n    TG_CHECK(x->a != NULL);\n"},
     "TG_CHECK_MEMORY"),
    ("an end for want of memory",
     {"common/base/a.c": SPDX + "    a = malloc(2);\n    TG_CHECK_MEMORY(a != NULL);\n"}, None),
    ("a foreign header outside its room",
     {"coordinator/txn/a.c": SPDX + "#include <raft.h>\n"}, "foreign header <raft.h>"),
    ("a foreign header of a folder outside its room",
     {"participant/read/a.c": SPDX + "#include <openssl/hmac.h>\n"}, "openssl/hmac.h"),
    ("a foreign header without a room",
     {"common/base/a.c": SPDX + "#include <glib.h>\n"}, "has no room"),
    ("cmocka in the product",
     {"common/base/a.c": SPDX + "#include <cmocka.h>\n"}, "belongs to tests"),
    ("no SPDX line", {"common/base/a.c": "int a;\n"}, "no SPDX line"),
    ("an orphan", {"participant/lost/a.c": SPDX}, "an orphan"),
    ("a note to oneself", {"common/base/a.c": SPDX + "/* TODO: later */\n"}, "note to oneself"),
    ("an include not from the top",
     {"common/base/a.c": SPDX + '#include "buf.h"\n'}, "from the top"),
    ("an include within a comment",
     {"common/base/a.c": SPDX + '/*\n#include "common/net/loop.h"\n*/\n'}, None),
]


def self_test():
    failed = 0
    for name, files, expected in SELF_TESTS:
        with tempfile.TemporaryDirectory() as top:
            for path, text in files.items():
                os.makedirs(os.path.join(top, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                    file.write(text)
            errors, _, _ = check_tree(top)
        good = errors == [] if expected is None else any(expected in e for e in errors)
        if not good:
            failed += 1
            print("%s: expected %s, got %s" % (name, expected or "no error", errors or "no error"))
    with tempfile.TemporaryDirectory() as top:
        os.makedirs(os.path.join(top, "common/base"))
        with open(os.path.join(top, "common/base/a.c"), "w", encoding="utf-8") as file:
            file.write(SPDX + function_of(FUNCTION_LINES_LONG + 1))
        errors, warnings, _ = check_tree(top)
        if errors or len(warnings) != 1:
            failed += 1
            print("a long function: expected one warning, got %s, %s" % (errors, warnings))
    print("%d passed, %d failed" % (len(SELF_TESTS) + 1 - failed, failed))
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    top = sys.argv[1] if len(sys.argv) > 1 else \
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    errors, warnings, count = check_tree(top)
    for warning in warnings:
        print("warning: %s" % warning)
    for error in errors:
        print("error: %s" % error)
    print("%d files checked, %d errors, %d warnings" % (count, len(errors), len(warnings)))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
