# SPDX-License-Identifier: Apache-2.0
"""The page that the preloaded shim (shim.c) reads and writes, and how a program is started under it."""

import ctypes
import mmap
import os
import struct

KINDS = ["alloc", "write", "sync", "truncate", "name"]
COUNT, FAIL, KILL, TORN, NOSYNC, CUT = range(6)
HEAD = struct.Struct("<IIIIQQIIQ5Q")
SITE = struct.Struct("<QII")
SITES_MAX = 8192
SIZE = HEAD.size + SITE.size * SITES_MAX
ADDR_NO_RANDOMIZE = 0x0040000


def bits(kinds):
    return sum(1 << KINDS.index(kind) for kind in kinds)


def fixed_addresses():
    """In a child before exec: call sites have the same addresses in every run."""
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)


class Control:
    def __init__(self, path, library):
        self.path = path
        self.library = library
        with open(path, "wb") as file:
            file.truncate(SIZE)
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), SIZE)

    def env(self):
        return {**os.environ, "LD_PRELOAD": self.library, "TIDEGATE_SHIM": self.path}

    def order(self, action=COUNT, kinds=(), n=0, site=0, forever=False, error=5, record=False):
        """What is to happen; all counters begin anew."""
        self.page[:] = bytes(SIZE)
        head = (action, bits(kinds), int(forever), error, n, site, int(record), 0, 0, *[0] * 5)
        self.page[: HEAD.size] = HEAD.pack(*head)

    def calm(self):
        """Nothing fails any more; the counters stay."""
        self.page[0:4] = struct.pack("<I", COUNT)

    def head(self):
        return HEAD.unpack(self.page[: HEAD.size])

    @property
    def hits(self):
        return self.head()[7]

    @property
    def seen(self):
        return self.head()[8]

    @property
    def counts(self):
        return dict(zip(KINDS, self.head()[9:]))

    def sites(self):
        """{site: (kind, how often)} of a run that recorded them."""
        found = {}
        for at in range(HEAD.size, SIZE, SITE.size):
            site, count, kind = SITE.unpack(self.page[at : at + SITE.size])
            if site:
                found[site] = (KINDS[kind], count)
        return found
