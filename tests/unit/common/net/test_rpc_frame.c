/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the RPC frame codec: round trips, every cut, every damaged byte, every cap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/net/rpc.h"
#include "common/net/rpc_frame.h"

struct seen {
    unsigned count;
    struct rpc_frame last;
    uint8_t *body;
    unsigned stop_after;
};

static bool seen_frame(void *data, const struct rpc_frame *frame, uint8_t *body)
{
    struct seen *seen = data;
    free(seen->body);
    seen->last = *frame;
    seen->body = body;
    return ++seen->count != seen->stop_after;
}

static void append_frame(struct buf *out, const struct rpc_frame *frame)
{
    uint8_t header[RPC_FRAME_HEADER_BYTES];
    rpc_frame_encode(frame, header);
    buf_append(out, header, sizeof header);
    buf_append(out, frame->text.data, frame->text.len);
    buf_append(out, frame->head.data, frame->head.len);
    buf_append(out, frame->payload.data, frame->payload.len);
}

static const struct rpc_frame sample = {.flags = RPC_FRAME_REPLY,
                                        .type = 0xbeef,
                                        .id = 0x0123456789abcdef,
                                        .err = TG_NOT_LEADER,
                                        .text = {(const uint8_t *)"try node 2", 10},
                                        .head = {(const uint8_t *)"\x93\x01\x02\x03", 4},
                                        .payload = {(const uint8_t *)"payload bytes", 13}};

static void assert_sample(const struct rpc_frame *frame)
{
    assert_int_equal(frame->flags, sample.flags);
    assert_int_equal(frame->type, sample.type);
    assert_true(frame->id == sample.id);
    assert_int_equal(frame->err, sample.err);
    assert_true(slice_equal(frame->text, sample.text));
    assert_true(slice_equal(frame->head, sample.head));
    assert_true(slice_equal(frame->payload, sample.payload));
}

static void test_a_frame_comes_out_whole_wherever_it_is_cut(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    append_frame(&bytes, &sample);
    append_frame(&bytes, &sample);
    for (size_t cut = 0; cut <= bytes.len; cut++) {
        struct rpc_reader reader;
        struct seen seen = {0};
        rpc_reader_init(&reader);
        assert_int_equal(rpc_reader_feed(&reader, bytes.data, cut, seen_frame, &seen), 0);
        assert_int_equal(
            rpc_reader_feed(&reader, bytes.data + cut, bytes.len - cut, seen_frame, &seen), 0);
        assert_int_equal(seen.count, 2);
        assert_sample(&seen.last);
        free(seen.body);
        rpc_reader_close(&reader);
    }
    struct rpc_reader reader;
    struct seen seen = {0};
    rpc_reader_init(&reader);
    for (size_t i = 0; i < bytes.len; i++)
        assert_int_equal(rpc_reader_feed(&reader, bytes.data + i, 1, seen_frame, &seen), 0);
    assert_int_equal(seen.count, 2);
    free(seen.body);
    rpc_reader_close(&reader);
    buf_close(&bytes);
}

static void test_a_frame_without_body_is_a_frame(void **state)
{
    (void)state;
    struct rpc_frame empty = {.type = 7, .id = 1};
    struct buf bytes = BUF_INIT;
    append_frame(&bytes, &empty);
    append_frame(&bytes, &empty);
    assert_int_equal(bytes.len, 2 * RPC_FRAME_HEADER_BYTES);
    struct rpc_reader reader;
    struct seen seen = {0};
    rpc_reader_init(&reader);
    assert_int_equal(rpc_reader_feed(&reader, bytes.data, bytes.len, seen_frame, &seen), 0);
    assert_int_equal(seen.count, 2);
    assert_null(seen.body);
    assert_int_equal(seen.last.payload.len, 0);
    buf_close(&bytes);
}

static void test_any_flipped_bit_is_noticed(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    append_frame(&bytes, &sample);
    for (size_t bit = 0; bit < bytes.len * 8; bit++) {
        struct rpc_reader reader;
        struct seen seen = {0};
        rpc_reader_init(&reader);
        bytes.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        int err = rpc_reader_feed(&reader, bytes.data, bytes.len, seen_frame, &seen);
        bytes.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_true(err == TG_CORRUPT || err == TG_UNSUPPORTED);
        assert_non_null(reader.why);
        assert_int_equal(seen.count, 0);
        rpc_reader_close(&reader);
    }
    buf_close(&bytes);
}

static int decode_with(size_t offset, uint32_t value)
{
    uint8_t header[RPC_FRAME_HEADER_BYTES];
    struct rpc_frame empty = {.type = 7, .id = 1};
    rpc_frame_encode(&empty, header);
    store_u32le(header + offset, value);
    store_u64le(header + 48, checksum64(header, 48)); /* a liar that knows how to sum */
    struct rpc_frame_header out;
    const char *why = NULL;
    int err = rpc_frame_decode(header, &out, &why);
    assert_true((err == 0) == (why == NULL));
    return err;
}

static void test_lengths_over_their_caps_take_no_memory(void **state)
{
    (void)state;
    assert_int_equal(decode_with(20, RPC_FRAME_TEXT_BYTES_MAX), 0);
    assert_int_equal(decode_with(20, RPC_FRAME_TEXT_BYTES_MAX + 1), TG_TOO_LARGE);
    assert_int_equal(decode_with(24, RPC_HEAD_BYTES_MAX), 0);
    assert_int_equal(decode_with(24, RPC_HEAD_BYTES_MAX + 1), TG_TOO_LARGE);
    assert_int_equal(decode_with(28, RPC_PAYLOAD_BYTES_MAX), 0);
    assert_int_equal(decode_with(28, RPC_PAYLOAD_BYTES_MAX + 1), TG_TOO_LARGE);
    assert_int_equal(decode_with(28, UINT32_MAX), TG_TOO_LARGE);
    assert_int_equal(decode_with(16, (uint32_t)-5), TG_CORRUPT); /* an error on a request */
    assert_int_equal(decode_with(16, 5), TG_CORRUPT);
    assert_int_equal(decode_with(4, 0x00070002), TG_UNSUPPORTED); /* version 2 */
    assert_int_equal(decode_with(4, 0x00078001), TG_UNSUPPORTED); /* a flag of tomorrow */
}

static void test_a_large_body_is_read_to_its_place(void **state)
{
    (void)state;
    size_t len = 1024 * 1024;
    uint8_t *payload = malloc(len);
    for (size_t i = 0; i < len; i++)
        payload[i] = (uint8_t)(i * 31);
    struct rpc_frame frame = {.type = 1, .id = 2, .payload = slice_of(payload, len)};
    uint8_t header[RPC_FRAME_HEADER_BYTES];
    rpc_frame_encode(&frame, header);
    struct rpc_reader reader;
    struct seen seen = {0};
    rpc_reader_init(&reader);
    size_t space = 0;
    assert_null(rpc_reader_space(&reader, &space));
    assert_int_equal(rpc_reader_feed(&reader, header, sizeof header, seen_frame, &seen), 0);
    size_t sent = 0;
    while (sent < len) {
        uint8_t *to = rpc_reader_space(&reader, &space);
        size_t n = len - sent < 100000 ? len - sent : 100000;
        if (to != NULL) {
            assert_int_equal(space, len - sent);
            memcpy(to, payload + sent, n);
        }
        assert_int_equal(
            rpc_reader_feed(&reader, to != NULL ? to : payload + sent, n, seen_frame, &seen), 0);
        sent += n;
    }
    assert_int_equal(seen.count, 1);
    assert_memory_equal(seen.last.payload.data, payload, len);
    free(seen.body);
    free(payload);
    rpc_reader_close(&reader);
}

static void test_the_callee_may_stop_between_frames(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    for (size_t i = 0; i < 3; i++)
        append_frame(&bytes, &sample);
    struct rpc_reader reader;
    struct seen seen = {.stop_after = 2};
    rpc_reader_init(&reader);
    assert_int_equal(rpc_reader_feed(&reader, bytes.data, bytes.len, seen_frame, &seen), 0);
    assert_int_equal(seen.count, 2);
    free(seen.body);
    rpc_reader_close(&reader);
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_frame_comes_out_whole_wherever_it_is_cut),
        cmocka_unit_test(test_a_frame_without_body_is_a_frame),
        cmocka_unit_test(test_any_flipped_bit_is_noticed),
        cmocka_unit_test(test_lengths_over_their_caps_take_no_memory),
        cmocka_unit_test(test_a_large_body_is_read_to_its_place),
        cmocka_unit_test(test_the_callee_may_stop_between_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
