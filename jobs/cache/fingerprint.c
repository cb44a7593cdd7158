/* Versions of a program's packages: see fingerprint.h. */
#include "jobs/cache/fingerprint.h"

#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/cache/python.h"

struct wanted {
	const char *const *packages;
	json_t *fingerprint;
};

static bool is_wanted(const char *const *packages, const char *name)
{
	for (; *packages; packages++) {
		size_t len = strlen(*packages);
		bool prefix = (*packages)[len - 1] == '*';

		if (prefix ? strncmp(name, *packages, len - 1) == 0 : strcmp(name, *packages) == 0)
			return true;
	}
	return false;
}

static void add_package(void *arg, const char *name, const char *version)
{
	const struct wanted *wanted = arg;

	if (is_wanted(wanted->packages, name) && !json_object_get(wanted->fingerprint, name))
		js_put_str(wanted->fingerprint, name, version);
}

/* A program that is not known to be Python: its content stands for it. */
static int add_program(json_t *fingerprint, const char *program, struct err **err)
{
	char hex[SHA256_HEX];
	uint64_t size = 0;

	if (sha256_file(program, hex, &size, err) < 0)
		return err_wrap(err, "cannot tell the version of '%s'", program);
	js_put_str(fingerprint, "program", program);
	js_put(fingerprint, "size", json_integer((json_int_t)size));
	js_put_str(fingerprint, "sha256", hex);
	return 0;
}

int fingerprint_python(const struct program_place *place, const char *const *packages, json_t **ret,
		       struct err **err)
{
	AUTO(python_clear) struct python python = { 0 };
	json_auto_t *fingerprint = json_object();
	struct wanted wanted = { packages, fingerprint };

	if (python_find(place, &python, err) < 0)
		return -1;
	if (!python.program) {
		js_put_str(fingerprint, "program", place->program);
		js_put(fingerprint, "found", json_false());
	} else if (python.version) {
		js_put_str(fingerprint, "python", python.version);
		python_packages(&python, add_package, &wanted);
	} else if (add_program(fingerprint, python.program, err) < 0) {
		return -1;
	}
	*ret = TAKE(fingerprint);
	return 0;
}
