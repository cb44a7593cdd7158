/*
 * The mutable statics of the boxes, and `environ` and `stderr`, for each process.
 *
 * The boxes are linked with .data and .bss renamed to world_data (CMakeLists.txt). Which variables
 * lie there is read from the symbols of the program itself: a few hundred bytes. The rest of the
 * section, which can be a megabyte, is what the sanitizers wrote down about the code.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"

#define SECTION "world_data"

extern __typeof__(open) __real_open;
extern __typeof__(lseek) __real_lseek;
extern __typeof__(close) __real_close;

struct variable {
	char *at;
	size_t size, offset; /* offset within an image */
};

static struct variable *variables;
static size_t variable_count, image_size;
static char *pristine;
static struct coroutine *owner; /* whose image is in place */
static struct statics host;     /* of the test program itself */

#if defined(__clang__)
#define UNCHECKED __attribute__((no_sanitize("address", "undefined"), noinline))
#else
#define UNCHECKED __attribute__((no_sanitize_address, no_sanitize_undefined, noinline))
#endif

/* ---- which variables there are ---- */

static const char *map_own_program(void)
{
	int fd = __real_open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : __real_lseek(fd, 0, SEEK_END);
	void *map =
		size <= 0 ? MAP_FAILED : mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		world_broken("cannot read the program's own symbols");
	__real_close(fd);
	return map;
}

/* The first object is the program. */
static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1;
}

static int by_address(const void *a, const void *b)
{
	const struct variable *left = a, *right = b;

	return left->at < right->at ? -1 : left->at > right->at;
}

static void add_variable(char *at, size_t size)
{
	variables = realloc(variables, (variable_count + 1) * sizeof *variables);
	if (!variables)
		world_broken("there is no memory left");
	variables[variable_count++] = (struct variable){ .at = at, .size = size };
}

static void read_symbols(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *symbols,
			 unsigned wanted)
{
	const Elf64_Sym *symbol = (const void *)(file + symbols->sh_offset);
	const char *names = file + sections[symbols->sh_link].sh_offset;
	uintptr_t base = 0;

	dl_iterate_phdr(find_base, &base);
	for (size_t i = 0; i < symbols->sh_size / sizeof *symbol; i++, symbol++)
		if (symbol->st_shndx == wanted && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
		    strncmp(names + symbol->st_name, "__odr_asan", 10) != 0)
			add_variable((char *)(base + symbol->st_value), symbol->st_size);
}

static void find_variables(void)
{
	const char *file = map_own_program();
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
	const char *names = file + sections[header->e_shstrndx].sh_offset;
	unsigned wanted = 0;

	for (unsigned i = 1; i < header->e_shnum; i++)
		if (strcmp(names + sections[i].sh_name, SECTION) == 0)
			wanted = i;
	for (unsigned i = 1; wanted && i < header->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			read_symbols(file, sections, &sections[i], wanted);
	if (variable_count == 0)
		world_broken("the program has no statics of the boxes in " SECTION);
	qsort(variables, variable_count, sizeof *variables, by_address);
	for (size_t i = 0; i < variable_count; i++) {
		variables[i].offset = image_size;
		image_size += variables[i].size;
	}
}

/* ---- images ---- */

/* With a sanitizer memcpy() would be intercepted, and check more than the variable. */
UNCHECKED static void copy(char *to, const char *from, size_t len)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
	memcpy(to, from, len);
	return;
#endif
	for (size_t i = 0; i < len; i++)
		((volatile char *)to)[i] = from[i];
}

static void save_image(char *image)
{
	for (size_t i = 0; i < variable_count; i++)
		copy(image + variables[i].offset, variables[i].at, variables[i].size);
}

static void load_image(const char *image)
{
	for (size_t i = 0; i < variable_count; i++)
		copy(variables[i].at, image + variables[i].offset, variables[i].size);
}

static char *image_of_now(void)
{
	char *image = world_zero(image_size);

	save_image(image);
	return image;
}

static void remember_host(void)
{
	find_variables();
	pristine = image_of_now();
	host.environ = environ;
	host.err = stderr;
}

void statics_enter(struct coroutine *coroutine)
{
	if (!pristine)
		remember_host();
	if (owner != coroutine) {
		if (owner && !owner->statics.image)
			owner->statics.image = image_of_now();
		else if (owner)
			save_image(owner->statics.image);
		load_image(coroutine->statics.image ? coroutine->statics.image : pristine);
		owner = coroutine;
	}
	environ = coroutine->statics.environ;
	if (!coroutine->statics.err)
		coroutine->statics.err = stderr_new();
	stderr = coroutine->statics.err;
}

void statics_leave(struct coroutine *coroutine)
{
	if (coroutine)
		coroutine->statics.environ = environ;
	environ = host.environ;
	stderr = host.err;
}

void statics_copy(struct statics *ret)
{
	*ret = (struct statics){ .image = image_of_now(), .environ = environ };
}

void statics_free(struct statics *statics)
{
	free(statics->image);
	statics->image = NULL;
}

void statics_forget(const struct coroutine *coroutine)
{
	if (owner == coroutine)
		owner = NULL;
}
