/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, with padding): strict, so that one text has one spelling. */
#ifndef TG_COMMON_BASE_BASE64_H
#define TG_COMMON_BASE_BASE64_H

#include "common/base/buf.h"

/* Appends the text of `bytes` to out. */
void base64_encode(struct slice bytes, struct buf *out);
/* Appends the bytes of `text` to out. TG_INVALID for strangers, blanks, a length that is not a
 * multiple of four or bits behind the end, with out as it was; TG_NOMEM. */
int base64_decode(struct slice text, struct buf *out);

#endif
