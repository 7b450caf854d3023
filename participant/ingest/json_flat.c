/* SPDX-License-Identifier: Apache-2.0 */
/* Keys by words, values by eight bytes at a time. */
#include "participant/ingest/json_flat.h"

#include <stdlib.h>

#include "common/base/endian.h"

#define ONES UINT64_C(0x0101010101010101)
#define TOPS UINT64_C(0x8080808080808080)

void json_flat_close(struct json_flat *flat)
{
    buf_close(&flat->texts);
    free(flat->keys);
    *flat = (struct json_flat){0};
}

/* ---- learning ---- */

void json_flat_learn_begin(struct json_flat *flat)
{
    flat->count = 0;
    buf_clear(&flat->texts);
}

static bool is_plain(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] < ' ' || name.data[i] >= 0x7F || name.data[i] == '"' ||
            name.data[i] == '\\')
            return false;
    return true;
}

static bool has_room(struct json_flat *flat)
{
    if (flat->count < flat->capacity)
        return true;
    uint32_t capacity = flat->capacity == 0 ? FLAT_KEYS_FIRST : flat->capacity * 2;
    if (capacity > FLAT_KEYS_MAX)
        return false;
    struct flat_key *keys = realloc(flat->keys, capacity * sizeof *keys);
    if (keys == NULL)
        return false;
    flat->keys = keys;
    flat->capacity = capacity;
    return true;
}

void json_flat_learn(struct json_flat *flat, struct slice name, int32_t field)
{
    uint8_t first[FLAT_KEY_WORD_BYTES] = {0};
    uint8_t mask[FLAT_KEY_WORD_BYTES] = {0};

    if (flat->texts.err == 0 && (!is_plain(name) || !has_room(flat)))
        flat->texts.err = TG_LIMIT;
    if (flat->texts.err != 0)
        return;
    struct flat_key *key = &flat->keys[flat->count++];
    key->at = (uint32_t)flat->texts.len;
    key->field = field;
    buf_append_u8(&flat->texts, '"');
    buf_append(&flat->texts, name.data, name.len);
    buf_append(&flat->texts, "\":", 2);
    if (flat->texts.err != 0)
        return;
    key->len = (uint32_t)(flat->texts.len - key->at);
    uint32_t len = key->len < FLAT_KEY_WORD_BYTES ? key->len : FLAT_KEY_WORD_BYTES;
    memcpy(first, flat->texts.data + key->at, len);
    memset(mask, 0xFF, len);
    for (int i = 0; i < 2; i++) {
        key->words[i] = load_u64le(first + 8 * i);
        key->masks[i] = load_u64le(mask + 8 * i);
    }
}

void json_flat_learn_end(struct json_flat *flat)
{
    if (flat->texts.err == 0)
        return;
    flat->count = 0;
    buf_clear(&flat->texts);
}

bool json_flat_should_try(struct json_flat *flat)
{
    if (flat->rest == 0)
        return flat->count > 0;
    flat->rest--;
    return false;
}

void json_flat_tried(struct json_flat *flat, bool good)
{
    if (good) {
        flat->failures = 0;
        return;
    }
    /* The first failure may be an odd row; the row behind it is tried at once. */
    flat->rest = flat->failures;
    flat->failures = flat->failures * 2 + 1;
    if (flat->failures > FLAT_REST_MAX)
        flat->failures = FLAT_REST_MAX;
}

/* ---- reading ---- */

const uint8_t *json_flat_key(const struct json_flat *flat, const struct flat_key *key,
                             const uint8_t *p, const uint8_t *end)
{
    if (p > end || (size_t)(end - p) < key->len)
        return NULL;
    uint64_t difference = ((load_u64le(p) ^ key->words[0]) & key->masks[0]) |
                          ((load_u64le(p + 8) ^ key->words[1]) & key->masks[1]);

    if (difference != 0)
        return NULL;
    if (key->len > FLAT_KEY_WORD_BYTES &&
        memcmp(p + FLAT_KEY_WORD_BYTES, flat->texts.data + key->at + FLAT_KEY_WORD_BYTES,
               key->len - FLAT_KEY_WORD_BYTES) != 0)
        return NULL;
    return p + key->len;
}

/* Top bits of bytes that end a plain string: the quote, or what only the real parser may judge. The
 * lowest mark is right; behind it there may be wrong ones. */
static inline uint64_t mark_special(uint64_t word)
{
    uint64_t quote = word ^ ONES * '"';
    uint64_t slash = word ^ ONES * '\\';

    return (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((word - ONES * ' ') & ~word) |
            word) &
           TOPS;
}

static const uint8_t *read_string(const uint8_t *p, const uint8_t *end, struct flat_value *value)
{
    const uint8_t *at = p + 1;
    uint64_t marks = 0;

    for (; at < end; at += 8) {
        marks = mark_special(load_u64le(at));
        if (marks != 0)
            break;
    }
    if (marks == 0)
        return NULL;
    at += (unsigned)__builtin_ctzll(marks) / 8;
    if (*at != '"')
        return NULL;
    value->kind = JSON_STRING;
    value->text = p + 1;
    value->len = (uint32_t)(at - p - 1);
    return at + 1;
}

/* Behind the digits that begin at p; not far behind the end if there is no end of them. */
static inline const uint8_t *skip_digits(const uint8_t *p, const uint8_t *end)
{
    for (;;) {
        uint64_t w = load_u64le(p) ^ ONES * '0';
        uint64_t marks = (w | (w + ONES * 0x76)) & TOPS; /* not 0..9: the lowest mark is right */

        if (marks != 0)
            return p + (unsigned)__builtin_ctzll(marks) / 8;
        p += 8;
        if (p >= end)
            return p;
    }
}

/* Without exponent. */
static const uint8_t *read_number(const uint8_t *p, const uint8_t *end, struct flat_value *value)
{
    const uint8_t *whole = p + (*p == '-');
    const uint8_t *at = skip_digits(whole, end);

    if (at == whole || (*whole == '0' && at - whole > 1) || at >= end)
        return NULL;
    if (*at == '.') {
        const uint8_t *fraction = at + 1;

        at = skip_digits(fraction, end);
        if (at == fraction)
            return NULL;
    }
    value->kind = JSON_NUMBER;
    value->text = p;
    value->len = (uint32_t)(at - p);
    return at;
}

const uint8_t *json_flat_value(const uint8_t *p, const uint8_t *end, struct flat_value *value)
{
    if (p >= end)
        return NULL;
    switch (*p) {
    case '"':
        return read_string(p, end, value);
    case 't':
        value->kind = JSON_BOOL;
        value->truth = true;
        return memcmp(p, "true", 4) == 0 ? p + 4 : NULL;
    case 'f':
        value->kind = JSON_BOOL;
        value->truth = false;
        return memcmp(p, "false", 5) == 0 ? p + 5 : NULL;
    case 'n':
        value->kind = JSON_NULL;
        return memcmp(p, "null", 4) == 0 ? p + 4 : NULL;
    default:
        return read_number(p, end, value);
    }
}
