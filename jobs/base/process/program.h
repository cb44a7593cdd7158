/*
 * The program that this process runs.
 *
 * In a bundle (an agent's folder, the archive and the wheel of stoker) a program is started through
 * the bundle's own loader. /proc/self/exe names the loader then, and argv[0] what was started.
 */
#ifndef STK_BASE_PROCESS_PROGRAM_H
#define STK_BASE_PROCESS_PROGRAM_H

/* To be called first in main(). In a bundle it keeps the C library and OpenSSL from loading what
 * the machine's settings name, which was built for other libraries than the bundle's, and gives the
 * process the name of its program, not that of the loader. */
void program_begin(void);

/* Path of the file whose start runs this program again, or NULL if it cannot be told. The caller
 * frees it. */
char *program_path(void);

/* Path of a file that came with this program, from where it was built or where `install` puts it;
 * NULL if it is not there. The caller frees it. */
char *program_file(const char *name);

#endif
