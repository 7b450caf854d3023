/* SPDX-License-Identifier: Apache-2.0 */
/* What every message's codec must pass: it comes back as it went, and no cut, lengthened or damaged
 * head is taken for a whole one or breaks anything. */
#ifndef TG_TESTS_UNIT_COMMON_PROTO_CODEC_CHECK_H
#define TG_TESTS_UNIT_COMMON_PROTO_CODEC_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/proto/message.h"

/* The codec of one message as function pointers on void. */
struct codec {
    size_t message_bytes;
    void (*encode)(const void *message, struct buf *out);
    int (*decode)(struct slice head, void *message);
    void (*close)(void *message);
};

#define CODEC_CLOSES(name)                                                            \
    static void name##_encode_any(const void *m, struct buf *out)                     \
    {                                                                                 \
        name##_encode(m, out);                                                        \
    }                                                                                 \
    static int name##_decode_any(struct slice head, void *m)                          \
    {                                                                                 \
        return name##_decode(head, m);                                                \
    }                                                                                 \
    static void name##_close_any(void *m)                                             \
    {                                                                                 \
        name##_close(m);                                                              \
    }                                                                                 \
    static const struct codec name##_codec = {sizeof(struct name), name##_encode_any, \
                                              name##_decode_any, name##_close_any};

#define CODEC_PLAIN(name)                                                             \
    static void name##_encode_any(const void *m, struct buf *out)                     \
    {                                                                                 \
        name##_encode(m, out);                                                        \
    }                                                                                 \
    static int name##_decode_any(struct slice head, void *m)                          \
    {                                                                                 \
        return name##_decode(head, m);                                                \
    }                                                                                 \
    static const struct codec name##_codec = {sizeof(struct name), name##_encode_any, \
                                              name##_decode_any, NULL};

/* Decodes a copy that ends where its memory ends, so that a sanitizer sees every read beyond. What
 * failed is not closed: a leak checker sees if something was left. */
static int codec_try(const struct codec *codec, const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len == 0 ? 1 : len);
    void *message = malloc(codec->message_bytes);
    assert_non_null(copy);
    assert_non_null(message);
    if (len > 0)
        memcpy(copy, data, len);
    int err = codec->decode(slice_of(copy, len), message);
    if (err == 0 && codec->close != NULL)
        codec->close(message);
    free(message);
    free(copy);
    return err;
}

static void codec_check(const struct codec *codec, const void *original)
{
    struct buf bytes = BUF_INIT;
    codec->encode(original, &bytes);
    assert_int_equal(bytes.err, 0);

    /* Back and out again: the same bytes. */
    void *message = malloc(codec->message_bytes);
    assert_non_null(message);
    assert_int_equal(codec->decode(slice_of(bytes.data, bytes.len), message), 0);
    struct buf again = BUF_INIT;
    codec->encode(message, &again);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.data, bytes.data, bytes.len);
    if (codec->close != NULL)
        codec->close(message);
    free(message);
    buf_close(&again);

    for (size_t len = 0; len < bytes.len; len++)
        assert_int_not_equal(codec_try(codec, bytes.data, len), 0);

    buf_append_u8(&bytes, 0);
    assert_int_not_equal(codec_try(codec, bytes.data, bytes.len), 0);
    bytes.len--;

    /* The version is the first element, one byte behind the array's head. */
    size_t version_at = bytes.data[0] == 0xdc ? 3 : 1;
    assert_int_equal(bytes.data[version_at], MESSAGE_VERSION);
    bytes.data[version_at] = MESSAGE_VERSION + 1;
    assert_int_equal(codec_try(codec, bytes.data, bytes.len), TG_UNSUPPORTED);
    bytes.data[version_at] = MESSAGE_VERSION;

    /* Damage: any verdict, but no crash, no leak, no giant allocation. 0xdd, 0xc6 and 0xdb begin
     * arrays, bytes and texts with 32-bit lengths. */
    static const uint8_t evil[] = {0x00, 0x7f, 0x90, 0x9f, 0xc0, 0xc6, 0xcf, 0xdb, 0xdd, 0xff};
    for (size_t at = 0; at < bytes.len; at++) {
        uint8_t before = bytes.data[at];
        for (size_t i = 0; i < sizeof evil; i++) {
            bytes.data[at] = evil[i];
            (void)codec_try(codec, bytes.data, bytes.len);
        }
        bytes.data[at] = before;
    }
    buf_close(&bytes);
}

#endif
