/*
 * Identity of this machine's processor as far as it affects compiled code: XLA's CPU compiler uses
 * every instruction set that it finds, so code from another processor may be slow here, or fail
 * with an illegal instruction.
 */
#ifndef STK_CACHE_KINDS_MACHINE_H
#define STK_CACHE_KINDS_MACHINE_H

/* "Intel(R) Xeon(R) … 3f2a9c01": model and a digest of the instruction sets; the name of the
 * machine's architecture if nothing is known. The caller frees it. */
char *machine_cpu(void);

/* The same from the text of a /proc/cpuinfo: its first processor. */
char *machine_cpu_from(const char *cpuinfo);

#endif
