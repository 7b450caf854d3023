/* SPDX-License-Identifier: Apache-2.0 */
/* msgpack on buf and cursor: the encoding of RPC heads, commands, snapshots and LMDB values.
 * Packing uses the library; reading is our own bounded pull cursor, because a five-byte message
 * must not be able to ask for gigabytes. This file alone knows the msgpack library.
 *
 * Habit of every message here: an array whose first element is the format version, then fields in
 * a fixed order. A reader refuses an unknown version and trailing bytes. */
#ifndef TG_COMMON_BASE_MSGPACK_H
#define TG_COMMON_BASE_MSGPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"

/* Writing appends to buf; errors stay in buf->err. */
void mp_array(struct buf *buf, uint32_t count);
void mp_uint(struct buf *buf, uint64_t value);
void mp_int(struct buf *buf, int64_t value);
void mp_bool(struct buf *buf, bool value);
void mp_nil(struct buf *buf);
void mp_str(struct buf *buf, const char *text); /* NULL writes "" */
void mp_str_slice(struct buf *buf, struct slice text);
void mp_bin(struct buf *buf, const void *data, size_t len);
void mp_double(struct buf *buf, double value);

/* Reading. A reader has a sticky error (cursor->err, TG_CORRUPT); nesting deeper than MP_DEPTH_MAX
 * is an error. */
enum { MP_DEPTH_MAX = 16 };

/* An array's element count; fails if it is over max or over the bytes that are left. */
uint32_t mp_read_array(struct cursor *cursor, uint32_t max);
/* The same where the count must be exactly `count`. */
void mp_expect_array(struct cursor *cursor, uint32_t count);
uint64_t mp_read_uint(struct cursor *cursor);
/* Fails if the value is over max. */
uint64_t mp_read_uint_max(struct cursor *cursor, uint64_t max);
int64_t mp_read_int(struct cursor *cursor);
bool mp_read_bool(struct cursor *cursor);
double mp_read_double(struct cursor *cursor);
/* True and consumed if the next item is nil. */
bool mp_read_nil(struct cursor *cursor);
/* Text or bytes inside the cursor's memory; fails if longer than max. */
struct slice mp_read_str(struct cursor *cursor, size_t max);
struct slice mp_read_bin(struct cursor *cursor, size_t max);
/* Text into out (zero-terminated, cap bytes); fails if it does not fit or holds a zero byte. */
void mp_read_cstr(struct cursor *cursor, char *out, size_t cap);
/* Steps over one item of any kind. */
void mp_skip(struct cursor *cursor);

#endif
