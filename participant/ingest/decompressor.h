/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed body read as if it were not: a load_source around another one. Streams; what is cut
 * off or damaged is an error, never a shorter body. */
#ifndef TG_PARTICIPANT_INGEST_DECOMPRESSOR_H
#define TG_PARTICIPANT_INGEST_DECOMPRESSOR_H

#include "participant/ingest/load_options.h"
#include "participant/ingest/load_source.h"

enum { DECOMPRESSOR_INPUT_BYTES = 64 * 1024 };
/* What one body may become. */
#define DECOMPRESSOR_OUTPUT_MAX (UINT64_C(1) << 40)

struct decompressor;

/* kind: not LOAD_PLAIN. inner must outlive it. TG_NOMEM, TG_UNSUPPORTED. */
int decompressor_open(enum load_compression kind, struct load_source *inner,
                      struct decompressor **decompressor);
void decompressor_close(struct decompressor *decompressor);
struct load_source *decompressor_source(struct decompressor *decompressor);

#endif
