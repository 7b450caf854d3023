/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs: random ones (version 4) and their text of 8-4-4-4-12 lower-case hex digits. */
#ifndef TG_COMMON_BASE_UUID_H
#define TG_COMMON_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

enum { UUID_TEXT_SIZE = 37 }; /* with the zero byte */

struct uuid {
    uint8_t bytes[16];
};

/* Sixteen random bytes with the bits of version 4 set. */
struct uuid uuid_v4(const uint8_t random[16]);
void uuid_print(const struct uuid *uuid, char out[UUID_TEXT_SIZE]);
/* Any version, either case, nothing before or behind. TG_INVALID. */
int uuid_parse(const char *text, struct uuid *uuid);
bool uuid_equal(const struct uuid *a, const struct uuid *b);

#endif
