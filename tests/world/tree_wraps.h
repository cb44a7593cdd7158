/* Declares the wrappers of calls about files, for -Wl,--wrap: see call.h. Each has the type of what
 * it wraps. */
#ifndef STK_TESTS_WORLD_TREE_WRAPS_H
#define STK_TESTS_WORLD_TREE_WRAPS_H

#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/world/tree_internal.h"

CALL_WRAPS(access);
CALL_WRAPS(faccessat);
CALL_WRAPS(stat);
CALL_WRAPS(lstat);
CALL_WRAPS(fstat);
CALL_WRAPS(fstatat);
CALL_WRAPS(statx);
CALL_WRAPS(statfs);
CALL_WRAPS(statvfs);
CALL_WRAPS(readlink);
CALL_WRAPS(readlinkat);
CALL_WRAPS(realpath);
CALL_WRAPS(getcwd);
CALL_WRAPS(open);
CALL_WRAPS(openat);
CALL_WRAPS(fopen);
CALL_WRAPS(mkostemp);
CALL_WRAPS(mkdtemp);
CALL_WRAPS(memfd_create);
CALL_WRAPS(mkdir);
CALL_WRAPS(mkdirat);
CALL_WRAPS(rmdir);
CALL_WRAPS(unlink);
CALL_WRAPS(unlinkat);
CALL_WRAPS(remove);
CALL_WRAPS(rename);
CALL_WRAPS(renameat);
CALL_WRAPS(renameat2);
CALL_WRAPS(linkat);
CALL_WRAPS(symlink);
CALL_WRAPS(symlinkat);
CALL_WRAPS(chmod);
CALL_WRAPS(fchmod);
CALL_WRAPS(fchmodat);
CALL_WRAPS(futimens);
CALL_WRAPS(opendir);
CALL_WRAPS(fdopendir);
CALL_WRAPS(readdir);
CALL_WRAPS(rewinddir);
CALL_WRAPS(dirfd);
CALL_WRAPS(closedir);
CALL_WRAPS(scandir);
CALL_WRAPS(fts_open);
CALL_WRAPS(fts_read);
CALL_WRAPS(fts_close);
CALL_WRAPS(read);
CALL_WRAPS(write);
CALL_WRAPS(close);
CALL_WRAPS(pread);
CALL_WRAPS(pwrite);
CALL_WRAPS(lseek);
CALL_WRAPS(ftruncate);
CALL_WRAPS(posix_fallocate);
CALL_WRAPS(fsync);
CALL_WRAPS(syncfs);
CALL_WRAPS(sync_file_range);
CALL_WRAPS(copy_file_range);
CALL_WRAPS(sendfile);
CALL_WRAPS(ioctl);
CALL_WRAPS(flock);

/* A call that was not carried out, for its fault. */
#define REFUSED(call) ((call).error && !(call).done)

/* A new description as a descriptor, or the error; the call may say that there is none. */
int wrap_opened(const struct call *call, int failed, struct file *file, int flags);

#endif
