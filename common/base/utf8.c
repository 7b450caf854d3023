/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 checks, eight ASCII bytes at a time. */
#include "common/base/utf8.h"

#include <stdint.h>
#include <string.h>

static bool is_tail(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t utf8_char_len(const void *text, size_t len)
{
    const uint8_t *s = text;
    uint8_t lead = s[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2) /* a tail byte, or the lead of an overlong pair */
        return 0;
    if (lead < 0xE0)
        return len >= 2 && is_tail(s[1]) ? 2 : 0;
    if (lead < 0xF0) {
        if (len < 3 || !is_tail(s[1]) || !is_tail(s[2]))
            return 0;
        if (lead == 0xE0 && s[1] < 0xA0) /* overlong */
            return 0;
        if (lead == 0xED && s[1] >= 0xA0) /* surrogate */
            return 0;
        return 3;
    }
    if (lead > 0xF4 || len < 4 || !is_tail(s[1]) || !is_tail(s[2]) || !is_tail(s[3]))
        return 0;
    if (lead == 0xF0 && s[1] < 0x90) /* overlong */
        return 0;
    if (lead == 0xF4 && s[1] >= 0x90) /* above U+10FFFF */
        return 0;
    return 4;
}

/* How many bytes at the start are surely ASCII: a multiple of eight. */
static size_t ascii_run(const uint8_t *text, size_t len)
{
    size_t at = 0;
    while (len - at >= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, text + at, sizeof word);
        if ((word & 0x8080808080808080U) != 0)
            break;
        at += sizeof word;
    }
    return at;
}

bool utf8_valid(const void *text, size_t len)
{
    const uint8_t *s = text;
    size_t at = 0;
    while (at < len) {
        at += ascii_run(s + at, len - at);
        if (at == len)
            break;
        size_t n = utf8_char_len(s + at, len - at);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

size_t utf8_count(const void *text, size_t len)
{
    const uint8_t *s = text;
    size_t count = 0;
    for (size_t at = 0; at < len; count++) {
        size_t n = utf8_char_len(s + at, len - at);
        at += n == 0 ? 1 : n;
    }
    return count;
}
