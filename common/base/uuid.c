/* SPDX-License-Identifier: Apache-2.0 */
/* UUID bytes and text. */
#include "common/base/uuid.h"

#include <stddef.h>
#include <string.h>

#include "common/base/err.h"

struct uuid uuid_v4(const uint8_t random[16])
{
    struct uuid uuid;
    memcpy(uuid.bytes, random, sizeof uuid.bytes);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0F) | 0x40); /* version 4 */
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3F) | 0x80); /* the variant of RFC 9562 */
    return uuid;
}

static bool dash_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uuid_print(const struct uuid *uuid, char out[UUID_TEXT_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        if (dash_before(i))
            *out++ = '-';
        *out++ = hex[uuid->bytes[i] >> 4];
        *out++ = hex[uuid->bytes[i] & 15];
    }
    *out = '\0';
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int uuid_parse(const char *text, struct uuid *uuid)
{
    struct uuid parsed;
    for (size_t i = 0; i < sizeof parsed.bytes; i++) {
        if (dash_before(i) && *text++ != '-')
            return TG_INVALID;
        int high = digit_of(text[0]);
        int low = high < 0 ? -1 : digit_of(text[1]);
        if (low < 0)
            return TG_INVALID;
        parsed.bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    if (*text != '\0')
        return TG_INVALID;
    *uuid = parsed;
    return 0;
}

bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
