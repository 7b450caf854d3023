/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as CSV with any separators: nothing is read out of bounds, and the rows are the same
 * however the body is cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "participant/ingest/csv_splitter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPTION_BYTES = 8 };

/* A digest of all rows, and how many rows there were. */
static struct digest split(const struct csv_format *format, const uint8_t *body, size_t len,
                           size_t chunk, uint64_t *count)
{
    struct csv_splitter *splitter;
    struct digest_stream *digest = digest_stream_open();
    size_t at = 0;
    bool final = false;

    *count = 0;
    TG_CHECK(digest != NULL && csv_splitter_open(format, chunk, &splitter) == 0);
    while (!final) {
        uint8_t *to;
        size_t room;
        TG_CHECK(csv_splitter_room(splitter, &to, &room) == 0);
        size_t n = len - at < room ? len - at : room;
        if (n > 0)
            memcpy(to, body + at, n);
        csv_splitter_filled(splitter, n);
        at += n;
        final = at == len;
        struct field_rows rows;
        do {
            TG_CHECK(csv_splitter_split(splitter, final, &rows) == 0);
            *count += rows.rows;
            for (uint32_t i = 0; i < rows.rows * rows.columns; i++) {
                TG_CHECK(rows.begins[i] <= rows.ends[i]);
                digest_stream_add(digest, rows.text + rows.begins[i],
                                  rows.ends[i] - rows.begins[i]);
                digest_stream_add(digest, ">", 1);
            }
        } while (!rows.done);
    }
    struct digest value = digest_stream_value(digest);
    digest_stream_close(digest);
    csv_splitter_close(splitter);
    return value;
}

static void fill(struct load_separator *separator, uint8_t length, const uint8_t *bytes)
{
    separator->len = 1 + length % 3;
    memcpy(separator->bytes, bytes, separator->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csv_format format = {.enclose = -1, .escape = -1};
    uint64_t rows[2];

    if (size < OPTION_BYTES)
        return 0;
    fill(&format.column, data[0], data + 1);
    fill(&format.line, data[0] >> 4, data + 4);
    if (data[7] & 1) /* the common ones */
        format.column = (struct load_separator){.bytes = {','}, .len = 1};
    if (data[7] & 2)
        format.line = (struct load_separator){.bytes = {'\n'}, .len = 1};
    format.strip_cr = format.line.len == 1 && format.line.bytes[0] == '\n';
    if ((data[7] & 4) && memchr(format.column.bytes, '"', format.column.len) == NULL &&
        memchr(format.line.bytes, '"', format.line.len) == NULL) /* load_options refuses that */
        format.enclose = '"';
    if (data[7] & 8)
        format.escape = '\\';
    format.trim_double_quotes = (data[7] & 16) != 0;
    format.columns = 1 + (data[7] >> 5) % 4;
    format.skip_lines = data[7] >> 7;
    data += OPTION_BYTES;
    size -= OPTION_BYTES;
    struct digest whole = split(&format, data, size, CSV_CHUNK_BYTES, &rows[0]);
    struct digest pieces = split(&format, data, size, 16 + size % 50, &rows[1]);
    TG_CHECK(rows[0] == rows[1] && digest_equal(&whole, &pieces));
    return 0;
}
