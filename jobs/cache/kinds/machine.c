/* The processor's identity: see machine.h. */
#include "jobs/cache/kinds/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/sb.h"

/* Enough for one processor's block; the kernel generates the rest only on demand, which takes
 * milliseconds on a large machine. */
#define CPUINFO_BYTES 8192

/* Reading it again, where it failed: pauses of twice the length each time, 150 ms in all. */
#define AGAIN    4
#define AGAIN_MS 10

/* Flags for instructions that a compiler may use, by prefix. The others (mitigations, power,
 * topology) change with the kernel and would make caches cold without need. */
static const char *const instruction_sets[] = {
	"3dnow", "abm",    "adx",     "aes", "amx",     "asimd", "avx",     "bmi",
	"cmov",  "crc",    "f16c",    "fma", "gfni",    "i8mm",  "lzcnt",   "mmx",
	"movbe", "pclmul", "pmull",   "pni", "popcnt",  "rdrnd", "rdseed",  "sha",
	"sm4",   "sse",    "ssse3",   "sve", "tbm",     "vaes",  "vpclmul", "xop",
	"bf16",  "fp",     "atomics", "lse", "dotprod", "cx16",
};

static bool is_instruction_set(const char *flag, size_t len)
{
	for (size_t i = 0; i < STK_LENGTH(instruction_sets); i++) {
		size_t want = strlen(instruction_sets[i]);

		if (len >= want && memcmp(flag, instruction_sets[i], want) == 0)
			return true;
	}
	return false;
}

/* The value of "name : value" in the first block; false if not found. */
static bool line_value(const char *text, const char *name, struct sb *ret)
{
	size_t len = strlen(name);

	while (*text && *text != '\n') {
		const char *end = strchrnul(text, '\n');
		const char *colon = memchr(text, ':', (size_t)(end - text));

		if (colon && strncmp(text, name, len) == 0 && strchr(" \t:", text[len])) {
			colon++;
			colon += strspn(colon, " \t");
			if (colon < end)
				sb_add(ret, colon, (size_t)(end - colon));
			return true;
		}
		text = *end ? end + 1 : end;
	}
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Eight digits over the instruction sets, whatever their order. */
static void digest_flags(struct sb *flags, char digest[9])
{
	AUTO(auto_free) char **names = NULL;
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	char hex[SHA256_HEX];
	char *rest = NULL;
	size_t count = 0;

	for (char *flag = strtok_r(flags->text, " \t", &rest); flag;
	     flag = strtok_r(NULL, " \t", &rest)) {
		if (!is_instruction_set(flag, strlen(flag)))
			continue;
		names = mem_grow(names, count + 1, sizeof *names);
		names[count++] = flag;
	}
	if (count > 0)
		qsort(names, count, sizeof *names, by_text);
	for (size_t i = 0; i < count; i++)
		hash_sha256_add(sha, names[i], strlen(names[i]) + 1);
	hash_sha256_end(TAKE(sha), hex);
	snprintf(digest, 9, "%.8s", hex);
}

char *machine_cpu_from(const char *cpuinfo)
{
	AUTO(sb_release) struct sb model = SB_INIT_MAX(256);
	AUTO(sb_release) struct sb flags = SB_INIT_MAX(CPUINFO_BYTES);
	struct utsname system;
	char digest[9];

	/* x86 names its model; ARM has numbers for the implementer and the part. */
	if (!line_value(cpuinfo, "model name", &model) &&
	    line_value(cpuinfo, "CPU implementer", &model)) {
		sb_addc(&model, ' ');
		line_value(cpuinfo, "CPU part", &model);
	}
	if (model.len == 0)
		sb_adds(&model, uname(&system) == 0 ? system.machine : "unknown");
	if (!line_value(cpuinfo, "flags", &flags) && !line_value(cpuinfo, "Features", &flags))
		return sb_take(&model);
	sb_addc(&flags, ' '); /* allocates the buffer even if it is empty */
	digest_flags(&flags, digest);
	sb_addf(&model, " %s", digest);
	return sb_take(&model);
}

/* Reads the begin of /proc/cpuinfo. Returns an errno, or 0. */
static int read_cpuinfo(char text[CPUINFO_BYTES + 1])
{
	AUTO(auto_close) int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 1;

	text[0] = '\0';
	if (fd < 0)
		return errno;
	while (got > 0 && len < CPUINFO_BYTES) {
		got = read(fd, text + len, CPUINFO_BYTES - len);
		if (got < 0)
			return errno;
		len += (size_t)got;
	}
	text[len] = '\0';
	return 0;
}

char *machine_cpu(void)
{
	char text[CPUINFO_BYTES + 1];
	int failed = read_cpuinfo(text);

	/* Without /proc/cpuinfo the processor has another name, and a cache that it filled looks
	 * like another processor's: an attempt would be lost to a moment without descriptors or
	 * memory. */
	for (int i = 0; failed && failed != ENOENT && i < AGAIN; i++) {
		cancel_pause_briefly(AGAIN_MS << i);
		failed = read_cpuinfo(text);
	}
	return machine_cpu_from(failed ? "" : text);
}
