/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes for writing, and a bounded cursor for reading. Both have a sticky error, so a
 * codec is a straight line whose outcome is looked at once, at its end. */
#ifndef TG_COMMON_BASE_BUF_H
#define TG_COMMON_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t len;
    size_t capacity;
    int err; /* 0, or TG_NOMEM once an append failed: then all later appends do nothing */
};

#define BUF_INIT \
    {            \
        0        \
    }

void buf_init(struct buf *buf);
void buf_close(struct buf *buf); /* frees; the buf is empty and usable again afterwards */
void buf_clear(struct buf *buf); /* len = 0, err = 0; keeps the memory */

/* Makes room for `extra` more bytes. Returns 0 or TG_NOMEM (also sticky). */
int buf_reserve(struct buf *buf, size_t extra);
/* Appends n undefined bytes and returns where they start, NULL on TG_NOMEM. */
uint8_t *buf_extend(struct buf *buf, size_t n);
void buf_append(struct buf *buf, const void *bytes, size_t n);
void buf_append_str(struct buf *buf, const char *text);
void buf_append_u8(struct buf *buf, uint8_t value);
/* Little-endian fixed width (our formats on disk and wire), big-endian for keys that must sort. */
void buf_append_u16le(struct buf *buf, uint16_t value);
void buf_append_u32le(struct buf *buf, uint32_t value);
void buf_append_u64le(struct buf *buf, uint64_t value);
void buf_append_u32be(struct buf *buf, uint32_t value);
void buf_append_u64be(struct buf *buf, uint64_t value);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* A zero byte behind the content (not counted in len); "" when empty. NULL on TG_NOMEM. */
const char *buf_cstr(struct buf *buf);
/* Moves the memory out: the caller frees it with free(); buf is empty afterwards. */
uint8_t *buf_take(struct buf *buf, size_t *len);
/* Removes the first n bytes (n ≤ len). */
void buf_consume(struct buf *buf, size_t n);

/* Bytes that somebody else owns. */
struct slice {
    const uint8_t *data;
    size_t len;
};

static inline struct slice slice_of(const void *data, size_t len)
{
    return (struct slice){(const uint8_t *)data, len};
}
struct slice slice_str(const char *text);
bool slice_equal(struct slice a, struct slice b);
bool slice_equal_str(struct slice a, const char *text);
/* memcmp order, shorter first on a common prefix. */
int slice_compare(struct slice a, struct slice b);

/* A read cursor: after the first failure err is TG_CORRUPT and every read gives 0 or an empty
 * slice. */
struct cursor {
    const uint8_t *data;
    size_t len;
    size_t at;
    int err;
};

void cursor_init(struct cursor *cursor, const void *data, size_t len);
size_t cursor_left(const struct cursor *cursor);
uint8_t cursor_u8(struct cursor *cursor);
uint16_t cursor_u16le(struct cursor *cursor);
uint32_t cursor_u32le(struct cursor *cursor);
uint64_t cursor_u64le(struct cursor *cursor);
uint32_t cursor_u32be(struct cursor *cursor);
uint64_t cursor_u64be(struct cursor *cursor);
/* The next n bytes, inside the cursor's memory. */
struct slice cursor_bytes(struct cursor *cursor, size_t n);
void cursor_fail(struct cursor *cursor, int err);
/* 0 if no read failed and all bytes were used, else TG_CORRUPT (or the sticky error). */
int cursor_finish(const struct cursor *cursor);

#endif
