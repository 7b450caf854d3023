/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV splitter: owns the chunk, chooses how to look at it, and makes rows.
 *
 * Three ways, each right for all that it accepts, the fast ones first:
 *   masks       one-byte separators; quotes by toggling (csv_scan_plain, csv_scan_quoted)
 *   places      longer separators: where they may begin, then a walk over these places
 *   row by row  csv_row_split: whatever the others refuse
 * The chunk: [0, len) text, padding, [side, side + capacity) rewritten fields, padding. */
#include "participant/ingest/csv_splitter.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "participant/ingest/csv_row.h"
#include "participant/ingest/csv_scan.h"

enum {
    POSITIONS_MAX = 64 * 1024, /* separators of one split */
    POSITION_BYTES = 4,        /* of text for one of them: small bodies get small arrays */
    BAD_MAX = 4096,            /* bad rows of one split */
    BAD_BYTES = 64,            /* the same of a bad row */
    BAD_LINE_MAX = 64 * 1024   /* bytes of a too long row that are shown */
};

struct csv_splitter {
    struct csv_format format;
    size_t chunk_bytes;
    uint8_t *data;
    size_t capacity; /* of the text; the allocation has more behind it */
    size_t len;
    size_t from; /* where the first row that was not given out begins */
    bool may_rewrite;
    bool at_start; /* nothing was looked at yet: a BOM may stand here */
    bool skipping; /* inside a row that is too long */
    uint32_t skip_lines;
    uint32_t positions; /* capacity of the arrays */
    uint32_t bad_max;   /* and of the list of bad rows */
    uint32_t *begins;
    uint32_t *ends;
    uint32_t *column_places; /* for separators of several bytes */
    uint32_t *line_places;
    struct slice *lines;
    uint32_t row_capacity;
    struct field_bad *bad;
    uint32_t bad_count;
    struct field_literal *literals;
    uint32_t literal_count;
    uint32_t literal_capacity;
    size_t side; /* end of the rewritten fields */
    uint32_t rows;
};

static bool is_wide(const struct csv_format *format)
{
    return format->column.len > 1 || format->line.len > 1;
}

static size_t data_bytes(const struct csv_splitter *s, size_t capacity)
{
    size_t one = capacity + CSV_SCAN_PADDING;
    return s->may_rewrite ? 2 * one : one;
}

int csv_splitter_open(const struct csv_format *format, size_t chunk_bytes,
                      struct csv_splitter **splitter)
{
    struct csv_splitter *s = calloc(1, sizeof *s);
    if (s == NULL)
        return TG_NOMEM;
    if (chunk_bytes < CSV_CHUNK_BYTES_MIN)
        chunk_bytes = CSV_CHUNK_BYTES_MIN;
    s->format = *format;
    /* A '\r' that separates columns does not belong to the line's end. */
    if (memchr(format->column.bytes, '\r', format->column.len) != NULL)
        s->format.strip_cr = false;
    s->chunk_bytes = chunk_bytes;
    s->capacity = chunk_bytes;
    s->skip_lines = format->skip_lines;
    s->at_start = true;
    s->may_rewrite = format->enclose >= 0 || format->escape >= 0;
    size_t most = chunk_bytes / POSITION_BYTES + CSV_SCAN_SLACK;
    s->positions = most < POSITIONS_MAX ? (uint32_t)most : POSITIONS_MAX;
    most = chunk_bytes / BAD_BYTES + 1;
    s->bad_max = most < BAD_MAX ? (uint32_t)most : BAD_MAX;
    if (s->positions < format->columns + CSV_SCAN_SLACK)
        s->positions = format->columns + CSV_SCAN_SLACK;
    s->row_capacity = s->positions / format->columns + 1;
    size_t entries = (size_t)s->positions + CSV_SCAN_SLACK + 1;
    s->begins = malloc(entries * sizeof *s->begins);
    s->ends = malloc(entries * sizeof *s->ends);
    s->lines = malloc(s->row_capacity * sizeof *s->lines);
    s->bad = malloc(s->bad_max * sizeof *s->bad);
    s->data = malloc(data_bytes(s, s->capacity));
    if (is_wide(format)) {
        s->column_places = malloc(entries * sizeof *s->column_places);
        s->line_places = malloc(entries * sizeof *s->line_places);
    }
    if (s->begins == NULL || s->ends == NULL || s->lines == NULL || s->bad == NULL ||
        s->data == NULL ||
        (is_wide(format) && (s->column_places == NULL || s->line_places == NULL))) {
        csv_splitter_close(s);
        return TG_NOMEM;
    }
    memset(s->data + s->capacity, 0, CSV_SCAN_PADDING);
    *splitter = s;
    return 0;
}

void csv_splitter_close(struct csv_splitter *splitter)
{
    if (splitter == NULL)
        return;
    free(splitter->begins);
    free(splitter->ends);
    free(splitter->column_places);
    free(splitter->line_places);
    free(splitter->lines);
    free(splitter->bad);
    free(splitter->literals);
    free(splitter->data);
    free(splitter);
}

/* Twice the room; the old text moves to the front of it. */
static int grow(struct csv_splitter *s)
{
    size_t capacity = s->capacity * 2;
    uint8_t *data = malloc(data_bytes(s, capacity));
    if (data == NULL)
        return TG_NOMEM;
    memcpy(data, s->data + s->from, s->len - s->from);
    free(s->data);
    s->data = data;
    s->len -= s->from;
    s->from = 0;
    s->capacity = capacity;
    memset(s->data + capacity, 0, CSV_SCAN_PADDING);
    return 0;
}

int csv_splitter_room(struct csv_splitter *splitter, uint8_t **at, size_t *len)
{
    struct csv_splitter *s = splitter;

    if (s->len - s->from > s->capacity / 2 && s->capacity < CSV_ROW_BYTES_MAX) {
        int err = grow(s);
        if (err != 0)
            return err;
    } else if (s->from > 0) {
        memmove(s->data, s->data + s->from, s->len - s->from);
        s->len -= s->from;
        s->from = 0;
    }
    *at = s->data + s->len;
    *len = s->capacity - s->len;
    return 0;
}

size_t csv_splitter_memory(const struct csv_splitter *splitter)
{
    return data_bytes(splitter, splitter->capacity) + 2 * (size_t)splitter->positions * 4 +
           splitter->row_capacity * sizeof *splitter->lines;
}

void csv_splitter_filled(struct csv_splitter *splitter, size_t n)
{
    TG_CHECK(n <= splitter->capacity - splitter->len);
    splitter->len += n;
}

/* ---- rows out of positions ---- */

static void add_bad(struct csv_splitter *s, enum field_bad_kind kind, uint32_t found, size_t begin,
                    size_t end)
{
    s->bad[s->bad_count++] = (struct field_bad){
        .kind = kind, .found = found, .line = slice_of(s->data + begin, end - begin)};
}

/* The end of a row's text without the '\r' that may go. */
static size_t without_cr(const struct csv_splitter *s, size_t begin, size_t end)
{
    return s->format.strip_cr && end > begin && s->data[end - 1] == '\r' ? end - 1 : end;
}

/* Takes the row whose `found` fields stand at begins[at], ends[at] (only format.columns of them
 * need to): into its place in the table, or into the list of bad rows. */
static void take_row(struct csv_splitter *s, uint32_t at, uint32_t found, size_t begin, size_t end,
                     bool check_utf8)
{
    const uint32_t columns = s->format.columns;

    end = without_cr(s, begin, end);
    if (end == begin)
        return; /* a blank line is no row */
    if (found != columns) {
        add_bad(s, FIELD_BAD_COUNT, found, begin, end);
        return;
    }
    if (check_utf8 && !utf8_valid(s->data + begin, end - begin)) {
        add_bad(s, FIELD_BAD_UTF8, 0, begin, end);
        return;
    }
    uint32_t to = s->rows * columns;
    if (to != at) {
        memmove(s->begins + to, s->begins + at, columns * sizeof *s->begins);
        memmove(s->ends + to, s->ends + at, columns * sizeof *s->ends);
    }
    s->ends[to + columns - 1] = (uint32_t)end;
    s->lines[s->rows++] = slice_of(s->data + begin, end - begin);
}

/* All rows have the right number of fields and good bytes: only '\r' and blanks are left to see. */
static void take_regular(struct csv_splitter *s, uint32_t rows)
{
    const uint32_t columns = s->format.columns;
    size_t begin = s->from;

    for (uint32_t r = 0; r < rows; r++) {
        uint32_t *last = &s->ends[r * columns + columns - 1];
        size_t end = *last;
        *last = (uint32_t)without_cr(s, begin, end);
        s->lines[r] = slice_of(s->data + begin, *last - begin);
        begin = end + 1;
    }
    s->rows = rows;
    s->from = begin;
}

/* Whether `rows` rows of `columns` fields each are all that was found. */
static bool is_regular(const struct csv_splitter *s, const struct csv_found *found)
{
    const uint32_t columns = s->format.columns;

    if (columns == 1 || (uint64_t)found->lines * columns > found->count)
        return false;
    for (uint32_t r = 0; r < found->lines; r++)
        if (s->data[s->ends[r * columns + columns - 1]] != s->format.line.bytes[0])
            return false;
    return true;
}

/* Rows from positions of one-byte separators, each row judged by itself. Stops when the list of bad
 * rows is full. */
static void take_irregular(struct csv_splitter *s, const struct csv_found *found, bool check_utf8)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < found->count && s->bad_count < s->bad_max; i++) {
        if (s->data[s->ends[i]] != s->format.line.bytes[0])
            continue;
        size_t next = (size_t)s->ends[i] + 1; /* take_row may write there */
        take_row(s, first, i + 1 - first, s->from, s->ends[i], check_utf8);
        s->from = next;
        first = i + 1;
    }
}

/* False: quotes stand where toggling cannot judge them; nothing was taken. */
static bool split_by_masks(struct csv_splitter *s)
{
    const struct csv_format *f = &s->format;
    struct csv_found found;

    if (f->enclose < 0)
        csv_scan_plain(s->data, s->from, s->len, f->column.bytes[0], f->line.bytes[0], s->begins,
                       s->ends, s->positions, &found);
    else
        csv_scan_quoted(s->data, s->from, s->len, f->column.bytes[0], f->line.bytes[0],
                        (uint8_t)f->enclose, s->begins, s->ends, s->positions, &found);
    if (found.irregular)
        return false;
    bool check_utf8 = found.high && !utf8_valid(s->data + s->from, found.scanned - s->from);
    if (!check_utf8 && is_regular(s, &found))
        take_regular(s, found.lines);
    else
        take_irregular(s, &found, check_utf8);
    return true;
}

/* Longer separators, no enclose: the lines' places cut rows, the columns' places inside them cut
 * fields. */
static void split_by_places(struct csv_splitter *s)
{
    const struct csv_format *f = &s->format;
    size_t scanned;
    size_t columns_scanned;
    uint32_t lines = csv_scan_places(s->data, s->from, s->len, f->line.bytes, f->line.len,
                                     s->line_places, s->positions, &scanned);
    uint32_t columns = csv_scan_places(s->data, s->from, s->len, f->column.bytes, f->column.len,
                                       s->column_places, s->positions, &columns_scanned);
    bool high = csv_scan_high(s->data + s->from, s->len - s->from);
    uint32_t c = 0;

    for (uint32_t l = 0; l < lines && s->bad_count < s->bad_max; l++) {
        size_t end = s->line_places[l];
        if (end < s->from || memcmp(s->data + end, f->line.bytes, f->line.len) != 0)
            continue;
        /* A line whose columns were not all found has to wait; so has one that may find no room. */
        uint32_t at = s->rows * f->columns;
        if (end + f->line.len > columns_scanned || at + f->columns > s->positions)
            break;
        uint32_t found = 0;
        size_t begin = s->from;
        for (; c < columns && s->column_places[c] < end; c++) {
            size_t place = s->column_places[c];
            if (place < begin || place + f->column.len > end ||
                memcmp(s->data + place, f->column.bytes, f->column.len) != 0)
                continue;
            if (found < f->columns) {
                s->begins[at + found] = (uint32_t)begin;
                s->ends[at + found] = (uint32_t)place;
            }
            found++;
            begin = place + f->column.len;
        }
        if (found < f->columns) {
            s->begins[at + found] = (uint32_t)begin;
            s->ends[at + found] = (uint32_t)end;
        }
        take_row(s, at, found + 1, s->from, end, high);
        s->from = end + f->line.len;
    }
}

static void split_row_by_row(struct csv_splitter *s, bool final, uint32_t most)
{
    const uint32_t columns = s->format.columns;
    struct csv_row row;
    bool high = csv_scan_high(s->data + s->from, s->len - s->from);

    for (; most > 0 && s->bad_count < s->bad_max; most--) {
        uint32_t at = s->rows * columns;
        if (at + columns > s->positions ||
            !csv_row_split(&s->format, s->data, s->from, s->len, final, s->begins + at,
                           s->ends + at, &row))
            return;
        if (row.open)
            add_bad(s, FIELD_BAD_OPEN, 0, s->from, row.end);
        else
            take_row(s, at, row.found, s->from, row.end, high);
        s->from = row.next;
    }
}

/* ---- what is done once around the rows ---- */

static int add_literal(struct csv_splitter *s, uint32_t row, uint32_t field)
{
    if (s->literal_count == s->literal_capacity) {
        uint32_t capacity = s->literal_capacity == 0 ? 64 : s->literal_capacity * 2;
        struct field_literal *grown = realloc(s->literals, capacity * sizeof *grown);
        if (grown == NULL)
            return TG_NOMEM;
        s->literals = grown;
        s->literal_capacity = capacity;
    }
    s->literals[s->literal_count++] = (struct field_literal){row, field};
    return 0;
}

/* Quotes off and escapes undone, in the rows at hand. */
static int finish_fields(struct csv_splitter *s)
{
    const struct csv_format *f = &s->format;

    if (s->rows == 0 || (f->enclose < 0 && f->escape < 0 && !f->trim_double_quotes))
        return 0;
    const uint8_t *first = s->lines[0].data;
    size_t len = (size_t)(s->lines[s->rows - 1].data - first) + s->lines[s->rows - 1].len;
    bool escapes = f->escape >= 0 && memchr(first, f->escape, len) != NULL;
    if (!escapes && (f->enclose < 0 || memchr(first, f->enclose, len) == NULL) &&
        (!f->trim_double_quotes || memchr(first, '"', len) == NULL))
        return 0;
    for (uint32_t r = 0; r < s->rows; r++) {
        for (uint32_t c = 0; c < f->columns; c++) {
            uint32_t i = r * f->columns + c;
            struct csv_field field = {.begin = s->begins[i], .end = s->ends[i]};
            uint8_t byte = s->data[field.begin];
            if (!escapes && byte != f->enclose && (!f->trim_double_quotes || byte != '"'))
                continue;
            csv_field_finish(f, s->data, &s->side, &field);
            s->begins[i] = field.begin;
            s->ends[i] = field.end;
            if (field.literal && add_literal(s, r, c) != 0)
                return TG_NOMEM;
        }
    }
    return 0;
}

static void skip_bom(struct csv_splitter *s)
{
    static const uint8_t BOM[] = {0xEF, 0xBB, 0xBF};

    if (s->format.skip_lines == 0 && s->len - s->from >= sizeof BOM &&
        memcmp(s->data + s->from, BOM, sizeof BOM) == 0)
        s->from += sizeof BOM;
    s->at_start = false;
}

/* Drops rows that are not wanted at the start. False: more bytes are needed. */
static bool skip_first_lines(struct csv_splitter *s, bool final)
{
    struct csv_row row;

    for (; s->skip_lines > 0; s->skip_lines--) {
        if (!csv_row_split(&s->format, s->data, s->from, s->len, final, s->begins, s->ends, &row))
            return false;
        s->from = row.next;
    }
    return true;
}

/* The rest of a row that is too long: to behind its delimiter. False: it goes on. */
static bool skip_long_row(struct csv_splitter *s, bool final)
{
    const struct load_separator *line = &s->format.line;
    const uint8_t *found = memmem(s->data + s->from, s->len - s->from, line->bytes, line->len);

    if (found != NULL) {
        s->from = (size_t)(found - s->data) + line->len;
        s->skipping = false;
        return true;
    }
    size_t keep = final ? 0 : line->len - 1;
    if (s->len - s->from > keep)
        s->from = s->len - keep;
    return final;
}

static void give(struct csv_splitter *s, bool done, struct field_rows *rows)
{
    *rows = (struct field_rows){.text = (const char *)s->data,
                                .rows = s->rows,
                                .columns = s->format.columns,
                                .begins = s->begins,
                                .ends = s->ends,
                                .lines = s->lines,
                                .bad = s->bad,
                                .bad_count = s->bad_count,
                                .literals = s->literals,
                                .literal_count = s->literal_count,
                                .done = done};
}

static void split_whole_rows(struct csv_splitter *s)
{
    const struct csv_format *f = &s->format;
    bool narrow = !is_wide(f);
    /* Toggling knows nothing of escapes. */
    bool escapes = f->enclose >= 0 && f->escape >= 0 && f->escape != f->enclose &&
                   memchr(s->data + s->from, f->escape, s->len - s->from) != NULL;

    if (narrow && !escapes && split_by_masks(s))
        return;
    if (!narrow && f->enclose < 0)
        split_by_places(s);
    else
        split_row_by_row(s, false, UINT32_MAX);
}

int csv_splitter_split(struct csv_splitter *splitter, bool final, struct field_rows *rows)
{
    struct csv_splitter *s = splitter;
    size_t before;

    s->rows = 0;
    s->bad_count = 0;
    s->literal_count = 0;
    s->side = s->capacity + CSV_SCAN_PADDING;
    memset(s->data + s->len, 0, CSV_SCAN_PADDING);
    if (s->at_start)
        skip_bom(s);
    if ((s->skipping && !skip_long_row(s, final)) || !skip_first_lines(s, final)) {
        if (final) {
            s->from = s->len;
        } else if (s->len - s->from >= CSV_ROW_BYTES_MAX) { /* a line to be skipped, too long */
            s->skip_lines--;
            s->skipping = true;
            s->from = s->len;
        }
        give(s, true, rows);
        return 0;
    }
    before = s->from;
    if (s->from < s->len)
        split_whole_rows(s);
    /* The ways above want to see a delimiter, and one of them found no room for a row of very many
     * fields: both are rare enough for the careful way. */
    if (s->from == before && s->from < s->len)
        split_row_by_row(s, final, 1);
    if (s->from == before && s->len - s->from >= CSV_ROW_BYTES_MAX && !final) {
        add_bad(s, FIELD_BAD_TOO_LONG, 0, s->from, s->from + BAD_LINE_MAX);
        s->from = s->len;
        s->skipping = true;
    }
    if (finish_fields(s) != 0)
        return TG_NOMEM;
    give(s, s->from == before || s->from == s->len, rows);
    return 0;
}
