/*
 * What of this machine's processor decides about compiled code: XLA's CPU
 * compiler uses every instruction set that it finds, so code from another
 * processor may be slow there, or an illegal instruction.
 */
#ifndef STK_CACHE_MACHINE_H
#define STK_CACHE_MACHINE_H

/* "Intel(R) Xeon(R) … 3f2a9c01": model and a digest of the instruction sets;
 * yours to free. The machine's name for its architecture if nothing is known. */
char *machine_cpu(void);

/* The same from the text of a /proc/cpuinfo: its first processor. */
char *machine_cpu_from(const char *cpuinfo);

#endif
