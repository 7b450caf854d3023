/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process when a sync fails, whoever in it asked for the sync. raft gives some of them up
 * without a word (of its metadata, of a folder); but after one that failed the kernel may have
 * dropped what was to be kept, so that nothing written later can be trusted. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_SYNC_H
#define TG_COORDINATOR_CONSENSUS_RAFT_SYNC_H

#include <uv.h>

enum { RAFT_SYNC_EXIT_STATUS = 70 };

/* What the program's calls of these functions become; it is linked so (CMakeLists.txt, --wrap). As
 * those, except that EIO is logged and ends the process. Those of libuv with a callback are left
 * alone: nobody here uses them. */
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_uv_fs_fsync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb cb);
int __wrap_uv_fs_fdatasync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb cb);

/* Whether this program is linked so. */
int raft_sync_is_watched(void);

#endif
