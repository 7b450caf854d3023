# SPDX-License-Identifier: Apache-2.0
"""What lies in participants' stores once all is quiet and collected (rule 8), by mdb_dump."""

import os
import shutil
import struct
import subprocess

FILES = {"lock", "coordinators", "reserve", "blocks-64k", "blocks-256k", "meta", "error_log"}
VERSION_HEAD = 40  # bytes of a version's value before its rowsets: docs/formats.md
ROWSET_ITEM = 24


def possible():
    return shutil.which("mdb_dump") is not None


def dump(environment, table):
    """(key, value) of a table of an LMDB environment, as bytes."""
    done = subprocess.run(
        ["mdb_dump", "-s", table, environment], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and "NOTFOUND" not in done.stderr:
        raise RuntimeError(f"mdb_dump {environment} {table}: {done.stderr.strip()}")
    lines = [line[1:] for line in done.stdout.splitlines() if line.startswith(" ")]
    data = [bytes.fromhex(line) for line in lines]
    return list(zip(data[::2], data[1::2]))


def numbers(key):
    return list(struct.unpack(f">{len(key) // 8}Q", key))


def look(data):
    """The facts about one participant: for the history."""
    meta = os.path.join(data, "meta")
    # Versions first: what is bound while this looks has its rowset already.
    bound = set()
    for key, value in dump(meta, "version"):
        count = struct.unpack_from("<I", value, 4)[0]
        for item in range(count):
            at = VERSION_HEAD + item * ROWSET_ITEM
            bound.add((numbers(key)[0], struct.unpack_from("<Q", value, at)[0]))
    blocks = set()
    for environment in ("blocks-64k", "blocks-256k"):
        for key, _ in dump(os.path.join(data, environment), "block"):
            blocks.add(tuple(numbers(key)[:2]))
    return {
        "staged": [numbers(key) for key, _ in dump(meta, "staged")],
        "rowsets": sorted(tuple(numbers(key)) for key, _ in dump(meta, "rowset")),
        "bound": sorted(bound),
        "blocks": sorted(blocks),
        "strays": sorted(set(os.listdir(data)) - FILES),
    }


def busy(fact):
    """Whether something is still to be collected."""
    held = {tuple(pair) for pair in fact["rowsets"]}
    return bool(fact["staged"]) or any(tuple(pair) not in held for pair in fact["blocks"])


def nothing_left(facts):
    """No rowset without a version, no version without its rowsets, no block without a rowset, and the
    same on all. facts: node, val as look() made it."""
    faults = []
    first = None
    for fact in facts:
        node, val = fact["node"], fact["val"]
        rowsets, bound, blocks = (
            {tuple(pair) for pair in val[what]} for what in ("rowsets", "bound", "blocks")
        )
        if val["staged"]:
            faults.append(f"{node}: staged and never collected: {val['staged'][:5]}")
        staged = {(tablet, rowset) for _, rowset, tablet in val["staged"]}
        if rowsets - bound - staged:
            faults.append(f"{node}: rowsets of no version: {sorted(rowsets - bound)[:5]}")
        if bound - rowsets:
            faults.append(f"{node}: versions without their rowsets: {sorted(bound - rowsets)[:5]}")
        if blocks - rowsets - staged:
            faults.append(f"{node}: blocks of no rowset: {sorted(blocks - rowsets)[:5]}")
        if val["strays"]:
            faults.append(f"{node}: files that nobody knows: {val['strays']}")
        first = first or (node, bound)
        if bound != first[1]:
            odd = sorted(bound ^ first[1])[:5]
            faults.append(f"{node} and {first[0]} hold different rowsets: {odd}")
    return faults
