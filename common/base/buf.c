/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes and the read cursor. */
#include "common/base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"
#include "common/base/err.h"

enum { BUF_FIRST_CAPACITY = 64 }; /* bytes */

void buf_init(struct buf *buf)
{
    *buf = (struct buf)BUF_INIT;
}

void buf_close(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->err = 0;
}

int buf_reserve(struct buf *buf, size_t extra)
{
    if (buf->err != 0)
        return buf->err;
    if (extra <= buf->capacity - buf->len)
        return 0;
    if (extra > SIZE_MAX / 2 - buf->len)
        return buf->err = TG_NOMEM;
    size_t wanted = buf->len + extra;
    size_t capacity = buf->capacity < BUF_FIRST_CAPACITY ? BUF_FIRST_CAPACITY : buf->capacity;
    while (capacity < wanted)
        capacity *= 2; /* no overflow: wanted is at most half of SIZE_MAX */
    uint8_t *data = realloc(buf->data, capacity);
    if (data == NULL)
        return buf->err = TG_NOMEM;
    buf->data = data;
    buf->capacity = capacity;
    return 0;
}

uint8_t *buf_extend(struct buf *buf, size_t n)
{
    if (buf_reserve(buf, n) != 0)
        return NULL;
    if (buf->data == NULL && buf_reserve(buf, 1) != 0)
        return NULL; /* n is 0: still a pointer, so that NULL means only TG_NOMEM */
    uint8_t *at = buf->data + buf->len;
    buf->len += n;
    return at;
}

void buf_append(struct buf *buf, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    uint8_t *at = buf_extend(buf, n);
    if (at != NULL)
        memcpy(at, bytes, n);
}

void buf_append_str(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_append_u8(struct buf *buf, uint8_t value)
{
    uint8_t *at = buf_extend(buf, 1);
    if (at != NULL)
        *at = value;
}

void buf_append_u16le(struct buf *buf, uint16_t value)
{
    uint8_t *at = buf_extend(buf, sizeof value);
    if (at != NULL)
        store_u16le(at, value);
}

void buf_append_u32le(struct buf *buf, uint32_t value)
{
    uint8_t *at = buf_extend(buf, sizeof value);
    if (at != NULL)
        store_u32le(at, value);
}

void buf_append_u64le(struct buf *buf, uint64_t value)
{
    uint8_t *at = buf_extend(buf, sizeof value);
    if (at != NULL)
        store_u64le(at, value);
}

void buf_append_u32be(struct buf *buf, uint32_t value)
{
    uint8_t *at = buf_extend(buf, sizeof value);
    if (at != NULL)
        store_u32be(at, value);
}

void buf_append_u64be(struct buf *buf, uint64_t value)
{
    uint8_t *at = buf_extend(buf, sizeof value);
    if (at != NULL)
        store_u64be(at, value);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(buf, format, args);
    va_end(args);
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
    /* Mostly the text fits into what is there or into this first guess: one pass. */
    if (buf_reserve(buf, BUF_FIRST_CAPACITY) != 0)
        return;
    va_list again;
    va_copy(again, args);
    size_t room = buf->capacity - buf->len;
    int n = vsnprintf((char *)buf->data + buf->len, room, format, args);
    TG_CHECK(n >= 0);
    size_t len = (size_t)n;
    if (len >= room && buf_reserve(buf, len + 1) == 0)
        (void)vsnprintf((char *)buf->data + buf->len, len + 1, format, again);
    va_end(again);
    if (buf->err == 0)
        buf->len += len;
}

const char *buf_cstr(struct buf *buf)
{
    if (buf_reserve(buf, 1) != 0)
        return NULL;
    buf->data[buf->len] = 0;
    return (const char *)buf->data;
}

uint8_t *buf_take(struct buf *buf, size_t *len)
{
    uint8_t *data = buf->data;
    *len = buf->len;
    *buf = (struct buf)BUF_INIT;
    return data;
}

void buf_consume(struct buf *buf, size_t n)
{
    TG_CHECK(n <= buf->len);
    if (n == 0)
        return;
    memmove(buf->data, buf->data + n, buf->len - n);
    buf->len -= n;
}

struct slice slice_str(const char *text)
{
    return slice_of(text, strlen(text));
}

bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool slice_equal_str(struct slice a, const char *text)
{
    return slice_equal(a, slice_str(text));
}

int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

void cursor_init(struct cursor *cursor, const void *data, size_t len)
{
    *cursor = (struct cursor){.data = data, .len = len};
}

size_t cursor_left(const struct cursor *cursor)
{
    return cursor->err != 0 ? 0 : cursor->len - cursor->at;
}

/* The next n bytes, or NULL with the error set. n is not 0. */
static const uint8_t *cursor_take(struct cursor *cursor, size_t n)
{
    if (n > cursor_left(cursor)) {
        cursor_fail(cursor, TG_CORRUPT);
        return NULL;
    }
    const uint8_t *at = cursor->data + cursor->at;
    cursor->at += n;
    return at;
}

uint8_t cursor_u8(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, 1);
    return at == NULL ? 0 : *at;
}

uint16_t cursor_u16le(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, sizeof(uint16_t));
    return at == NULL ? 0 : load_u16le(at);
}

uint32_t cursor_u32le(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, sizeof(uint32_t));
    return at == NULL ? 0 : load_u32le(at);
}

uint64_t cursor_u64le(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, sizeof(uint64_t));
    return at == NULL ? 0 : load_u64le(at);
}

uint32_t cursor_u32be(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, sizeof(uint32_t));
    return at == NULL ? 0 : load_u32be(at);
}

uint64_t cursor_u64be(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, sizeof(uint64_t));
    return at == NULL ? 0 : load_u64be(at);
}

struct slice cursor_bytes(struct cursor *cursor, size_t n)
{
    if (n == 0)
        return slice_of(NULL, 0);
    const uint8_t *at = cursor_take(cursor, n);
    return slice_of(at, at == NULL ? 0 : n);
}

void cursor_fail(struct cursor *cursor, int err)
{
    if (cursor->err == 0)
        cursor->err = err;
}

int cursor_finish(const struct cursor *cursor)
{
    if (cursor->err != 0)
        return cursor->err;
    return cursor->at == cursor->len ? 0 : TG_CORRUPT;
}
