/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 in groups of three bytes and four letters. */
#include "common/base/base64.h"

#include <string.h>

#include "common/base/err.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct slice bytes, struct buf *out)
{
    for (size_t at = 0; at < bytes.len; at += 3) {
        size_t n = bytes.len - at < 3 ? bytes.len - at : 3;
        uint32_t group = (uint32_t)bytes.data[at] << 16;
        if (n > 1)
            group |= (uint32_t)bytes.data[at + 1] << 8;
        if (n > 2)
            group |= bytes.data[at + 2];
        char text[4] = {letters[group >> 18], letters[group >> 12 & 63], letters[group >> 6 & 63],
                        letters[group & 63]};
        memset(text + n + 1, '=', 3 - n);
        buf_append(out, text, sizeof text);
    }
}

/* 0..63, or -1. */
static int value_of(uint8_t letter)
{
    const char *at = letter == 0 ? NULL : strchr(letters, letter);
    return at == NULL ? -1 : (int)(at - letters);
}

int base64_decode(struct slice text, struct buf *out)
{
    if (text.len % 4 != 0)
        return TG_INVALID;
    size_t before = out->len;
    for (size_t at = 0; at < text.len; at += 4) {
        const uint8_t *four = text.data + at;
        size_t n = 4; /* letters before the padding */
        if (at + 4 == text.len)
            n = four[3] != '=' ? 4 : four[2] != '=' ? 3 : 2;
        uint32_t group = 0;
        bool good = true;
        for (size_t i = 0; i < 4; i++) {
            int value = i < n ? value_of(four[i]) : 0;
            good = good && value >= 0;
            group = group << 6 | (uint32_t)(value < 0 ? 0 : value);
        }
        uint8_t bytes[3] = {(uint8_t)(group >> 16), (uint8_t)(group >> 8), (uint8_t)group};
        /* The bits behind the last byte must be zero, else two texts would mean the same. */
        good = good && (n > 2 || bytes[1] == 0) && (n > 3 || bytes[2] == 0);
        if (!good) {
            out->len = before;
            return TG_INVALID;
        }
        buf_append(out, bytes, n - 1);
    }
    return out->err;
}
