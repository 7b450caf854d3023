/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a block: opened and decoded, or refused. The magic, length, version and checksum are
 * put right first, so that the fuzzer spends its time behind them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/model/block_format.h"
#include "common/model/rowset_block.h"
#include "common/model/vector.h"

/* More than this is not decoded: a short block may rightly stand for a very long column. */
enum { DECODED_MAX = 1024 * 1024, FUZZ_COLUMNS_MAX = 64 };

static void put_frame(uint8_t *bytes, size_t size)
{
    memcpy(bytes + BLOCK_AT_MAGIC, BLOCK_MAGIC, 4);
    store_u16le(bytes + BLOCK_AT_VERSION, BLOCK_VERSION);
    store_u16le(bytes + BLOCK_AT_RESERVED, 0);
    store_u32le(bytes + BLOCK_AT_LENGTH, (uint32_t)size);
    store_u32le(bytes + BLOCK_AT_RESERVED2, 0);
    size_t sum_at = size - BLOCK_TRAILER_BYTES;
    store_u64le(bytes + sum_at, checksum64(bytes, sum_at));
}

/* A window of a column that decodes as a whole holds what the whole holds there. */
static void decode_window(struct block_decoder *decoder, const struct block *block, uint32_t index,
                          const struct vector *whole)
{
    uint32_t begin = block->rows / 2 / BLOCK_WINDOW_ROWS * BLOCK_WINDOW_ROWS;
    uint32_t end =
        block->rows - begin > BLOCK_WINDOW_ROWS ? begin + BLOCK_WINDOW_ROWS : block->rows;
    struct vector out;
    vector_init(&out, whole->type);
    int err = block_decode_rows(decoder, block, index, begin, end, &out, NULL);
    TG_CHECK(whole->rows == 0 || err == 0);
    for (uint32_t row = 0; whole->rows > 0 && row < out.rows; row++) {
        TG_CHECK(vector_is_null(&out, row) == vector_is_null(whole, begin + row));
        if (out.width > 0)
            TG_CHECK(memcmp(vector_fixed(&out, row), vector_fixed(whole, begin + row), out.width) ==
                     0);
        else
            TG_CHECK(slice_equal(vector_bytes(&out, row), vector_bytes(whole, begin + row)));
    }
    vector_close(&out);
}

static void decode_columns(struct block_decoder *decoder, const struct block *block)
{
    size_t decoded = 0;
    for (uint32_t i = 0; i < block->column_count && i < FUZZ_COLUMNS_MAX; i++) {
        struct block_column column;
        block_column_at(block, i, &column);
        union type_value min;
        union type_value max;
        (void)block_column_range(block, i, &min, &max);
        struct vector out;
        vector_init(&out, column.type);
        int err = block_decode_column(decoder, block, i, &out, NULL);
        TG_CHECK(out.rows == (err == 0 ? block->rows : 0));
        if (err == 0 && out.width == 0) {
            for (uint32_t row = 1; row < out.rows; row++)
                TG_CHECK(out.ends[row - 1] <= out.ends[row]);
            TG_CHECK(out.ends[out.rows - 1] == out.bytes_len);
        }
        decode_window(decoder, block, i, &out);
        decoded += vector_memory(&out);
        vector_close(&out);
        if (decoded > DECODED_MAX)
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct block block;
    (void)block_open(&block, data, size, NULL);
    if (size < BLOCK_HEADER_BYTES + BLOCK_TRAILER_BYTES)
        return 0;
    uint8_t *bytes = malloc(size);
    struct block_decoder *decoder = block_decoder_open();
    TG_CHECK(bytes != NULL && decoder != NULL);
    memcpy(bytes, data, size);
    put_frame(bytes, size);
    if (block_open(&block, bytes, size, NULL) == 0)
        decode_columns(decoder, &block);
    block_decoder_close(decoder);
    free(bytes);
    return 0;
}
