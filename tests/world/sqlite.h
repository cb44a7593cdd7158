/*
 * SQLite in the world: its calls about files, time and chance are the world's, so that a journal.db
 * lies on the world's disks, can be refused, killed and cut off like everything else.
 */
#ifndef STK_TESTS_WORLD_SQLITE_H
#define STK_TESTS_WORLD_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

/* Before SQLite is used in the program; once. */
void sqlite_register(void);
/* When a schedule begins: SQLite draws anew from the world's chance. */
void sqlite_reset(void);
/* Another program holds the lock of all writers until then. */
void sqlite_hold(int64_t until_ns);
/* True meanwhile. */
bool sqlite_is_held(void);

#endif
