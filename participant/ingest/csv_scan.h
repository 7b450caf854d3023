/* SPDX-License-Identifier: Apache-2.0 */
/* Finds separators in CSV text, 64 bytes at a time: bit masks, then positions. Knows bytes, not
 * rows; csv_splitter.c makes rows of what is found here.
 *
 * All functions may read up to CSV_SCAN_PADDING bytes behind len. */
#ifndef TG_PARTICIPANT_INGEST_CSV_SCAN_H
#define TG_PARTICIPANT_INGEST_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CSV_SCAN_PADDING = 64, /* readable bytes behind the text */
    CSV_SCAN_SLACK = 64    /* entries behind the capacity that may be written */
};

struct csv_found {
    uint32_t count; /* separators found */
    uint32_t lines; /* of them line delimiters */
    size_t scanned; /* how far: len, or less when the capacity was reached */
    bool high;      /* a byte ≥ 0x80 was seen */
    bool quotes;    /* the enclose byte was seen … */
    bool irregular; /* … where it does not open or close a whole field */
};

/* One-byte separators: field i is text[begins[i], ends[i]); begins has one more. `from` is where
 * the first field begins. capacity: entries, plus CSV_SCAN_SLACK. */
void csv_scan_plain(const uint8_t *text, size_t from, size_t len, uint8_t column, uint8_t line,
                    uint32_t *begins, uint32_t *ends, uint32_t capacity, struct csv_found *found);

/* The same with an enclose byte: separators between a pair of them are data. If `irregular` comes
 * out true, what was found is worth nothing and the byte machine must decide. */
void csv_scan_quoted(const uint8_t *text, size_t from, size_t len, uint8_t column, uint8_t line,
                     uint8_t enclose, uint32_t *begins, uint32_t *ends, uint32_t capacity,
                     struct csv_found *found);

/* Where `pattern` (1 byte or more) may begin: its first two bytes fit, and it lies inside len.
 * Overlapping places are all listed. Returns how many; *scanned as above. */
uint32_t csv_scan_places(const uint8_t *text, size_t from, size_t len, const uint8_t *pattern,
                         uint32_t pattern_len, uint32_t *places, uint32_t capacity,
                         size_t *scanned);

/* Whether a byte ≥ 0x80 is in the text. */
bool csv_scan_high(const uint8_t *text, size_t len);

#endif
