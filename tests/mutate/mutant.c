/*
 * Chooses a mutant for a process before anything of it runs: a shared library, so that it is one in
 * programs that link a box twice and calls the system itself where a program wraps such calls.
 *
 * The choice is the variable STOKER_MUTANT, "NUMBER" or "seen:FILE", of the process or of the
 * nearest ancestor that was started with it. It is not inherited as variables are, so that a test
 * that compares environments, or starts a program without one, is not disturbed and runs the mutant
 * all the same. confine.c holds it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUTANT_COUNT (1U << 20)
#define NAME         "STOKER_MUTANT="

/* The variable is not declared by mutant.h, where it is a constant: it is, once a process has
 * begun. */
unsigned mutant_chosen;

static unsigned char *seen; /* a byte for each mutant, shared by all processes of a test */

int mutants_record(unsigned first, unsigned count);

int mutants_record(unsigned first, unsigned count)
{
	memset(seen + first, 1, count);
	return 0;
}

/* Returns the number of bytes, terminated; -1 without the file. */
static ssize_t read_file(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, sum = 0;

	if (fd < 0)
		return -1;
	while ((size_t)sum < size - 1 && (n = read(fd, bytes + sum, size - 1 - (size_t)sum)) > 0)
		sum += n;
	close(fd);
	bytes[sum] = '\0';
	return sum;
}

static const char *find_choice(long pid, char *bytes, size_t size)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof path, "/proc/%ld/environ", pid);
	len = read_file(path, bytes, size);
	for (char *word = bytes; len > 0 && word < bytes + len; word += strlen(word) + 1)
		if (strncmp(word, NAME, strlen(NAME)) == 0)
			return word + strlen(NAME);
	return NULL;
}

static long parent_of(long pid)
{
	char path[64], stat[1024];
	const char *end;
	long parent = 0;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (read_file(path, stat, sizeof stat) < 0)
		return 0;
	end = strrchr(stat, ')');
	if (!end || sscanf(end, ") %*c %ld", &parent) != 1)
		return 0;
	return parent;
}

__attribute__((constructor(101))) static void choose(void)
{
	static char bytes[1 << 20];
	const char *choice = NULL;

	for (long pid = getpid(); pid > 0 && !choice; pid = parent_of(pid))
		choice = find_choice(pid, bytes, sizeof bytes);
	if (choice && strncmp(choice, "seen:", 5) == 0) {
		int fd = open(choice + 5, O_RDWR | O_CLOEXEC);
		void *map = mmap(NULL, MUTANT_COUNT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (map != MAP_FAILED) {
			seen = map;
			mutant_chosen = MUTANT_COUNT;
		}
		close(fd);
	} else if (choice) {
		mutant_chosen = (unsigned)strtoul(choice, NULL, 10);
	}
}
