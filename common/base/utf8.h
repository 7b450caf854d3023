/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef TG_COMMON_BASE_UTF8_H
#define TG_COMMON_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes (1..4) of the character at the start of `len` > 0 bytes; 0 if it is malformed. */
size_t utf8_char_len(const void *text, size_t len);
bool utf8_valid(const void *text, size_t len);
/* Number of characters; a byte that is malformed counts as one. */
size_t utf8_count(const void *text, size_t len);

#endif
