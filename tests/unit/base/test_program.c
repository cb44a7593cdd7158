/* The promises of program.h, with this program itself, started in both ways. */
#include "jobs/base/process/program.h"

#include <errno.h>
#include <link.h>
#include <sys/prctl.h>

#include "tests/unit/base/unit.h"

#define ASK "what is the program"

static int find_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
	char **ret = arg;
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	if (!name || strncmp(name, "/ld-linux", 9) != 0)
		return 0;
	*ret = mem_copy(info->dlpi_name);
	return 1;
}

/* Prints, in a process of its own, its name, its program, and the folder of that. */
static int answer(void)
{
	AUTO(auto_free) char *path = NULL, *folder = NULL;
	char name[17] = "";

	program_begin();
	path = program_path();
	folder = program_file(".");
	(void)prctl(PR_GET_NAME, name);
	printf("%s %s %s\n", name, path ? path : "none", folder ? folder : "none");
	return 0;
}

static char *answer_to(const char *command)
{
	FILE *out = popen(command, "r");
	char line[4096] = "";

	assert_non_null(out);
	assert_non_null(fgets(line, sizeof line, out));
	assert_int_equal(pclose(out), 0);
	line[strcspn(line, "\n")] = '\0';
	return mem_copy(line);
}

static char *own_path(void)
{
	char path[4096] = "";

	assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
	return mem_copy(path);
}

static void a_program_is_the_file_that_runs(void **state)
{
	AUTO(auto_free) char *own = own_path(), *program = program_path();

	(void)state;
	program_begin();
	assert_string_equal(program, own);
}

static void in_a_bundle_it_is_what_the_loader_was_told(void **state)
{
	AUTO(auto_free) char *own = own_path(), *loader = NULL, *told = NULL, *named = NULL;
	AUTO(auto_free) char *command = NULL, *plain = NULL;

	assert_int_equal(dl_iterate_phdr(find_loader, &loader), 1);
	command = mem_format("cp -L '%s' '%s/loader' && '%s/loader' --argv0 /opt/s/bin/stoker '%s' "
			     "'" ASK "'",
			     loader, (char *)*state, (char *)*state, own);
	told = answer_to(command);
	assert_string_equal(told, "stoker /opt/s/bin/stoker none");
	free(command);
	command = mem_format("'%s/loader' --argv0 nowhere '%s' '" ASK "'", (char *)*state, own);
	named = answer_to(command);
	assert_string_equal(named, "nowhere none none"); /* not the working directory */
	free(command);
	/* A loader of another name is not that of a bundle. */
	command =
		mem_format("cp '%s/loader' '%s/ld.so' && '%s/ld.so' --argv0 /opt/s/bin/stoker '%s' "
			   "'" ASK "'",
			   (char *)*state, (char *)*state, (char *)*state, own);
	plain = answer_to(command);
	assert_contains(plain, "/ld.so ");
}

static void a_file_beside_the_program_is_found(void **state)
{
	AUTO(auto_free) char *own = own_path(), *none = program_file("no-such-file");
	AUTO(auto_free) char *this = program_file(strrchr(own, '/') + 1);

	(void)state;
	assert_null(none);
	assert_non_null(this);
	assert_true(this[0] == '/');
	assert_true(fs_exists(this));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_the_file_that_runs),
		test_in_scratch(in_a_bundle_it_is_what_the_loader_was_told),
		cmocka_unit_test(a_file_beside_the_program_is_found),
	};

	if (argc == 2 && strcmp(argv[1], ASK) == 0)
		return answer();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
