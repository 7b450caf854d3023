/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums are the published XXH3 values and do not depend on how the bytes were cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/checksum.h"

static void checksums_are_the_published_values(void **state)
{
    (void)state;
    /* XXH3_64bits("") and XXH3_128bits("") with seed 0, from the algorithm's test vectors. */
    assert_true(checksum64("", 0) == UINT64_C(0x2D06800538D394C2));
    const uint8_t empty[] = {0x99, 0xAA, 0x06, 0xD3, 0x01, 0x47, 0x98, 0xD8,
                             0x60, 0x01, 0xC3, 0x24, 0x46, 0x8D, 0x49, 0x7F};
    struct digest digest = digest_of("", 0);
    assert_memory_equal(digest.bytes, empty, sizeof empty);
}

static void one_flipped_bit_changes_both(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    memset(bytes, 0x5A, sizeof bytes);
    uint64_t sum = checksum64(bytes, sizeof bytes);
    struct digest digest = digest_of(bytes, sizeof bytes);
    bytes[777] ^= 4;
    assert_true(checksum64(bytes, sizeof bytes) != sum);
    struct digest other = digest_of(bytes, sizeof bytes);
    assert_false(digest_equal(&digest, &other));
}

static void a_stream_gives_the_same_digest_for_every_cut(void **state)
{
    (void)state;
    uint8_t bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 31);
    struct digest whole = digest_of(bytes, sizeof bytes);
    const size_t steps[] = {1, 7, 64, 240, 256, 1024, 2999, 3000};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        struct digest_stream *stream = digest_stream_open();
        assert_non_null(stream);
        for (size_t at = 0; at < sizeof bytes; at += steps[s]) {
            size_t left = sizeof bytes - at;
            digest_stream_add(stream, bytes + at, left < steps[s] ? left : steps[s]);
            digest_stream_add(stream, NULL, 0);
        }
        struct digest value = digest_stream_value(stream);
        assert_true(digest_equal(&whole, &value));
        digest_stream_close(stream);
    }
    digest_stream_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_the_published_values),
        cmocka_unit_test(one_flipped_bit_changes_both),
        cmocka_unit_test(a_stream_gives_the_same_digest_for_every_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
