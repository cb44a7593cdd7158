/* Versions of a program's packages: see fingerprint.h. */
#include "jobs/cache/graphs/fingerprint.h"

#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/base/sb.h"
#include "jobs/cache/graphs/graph_key.h"
#include "jobs/cache/kinds/python.h"

struct package_search {
	const char *const *packages;
	json_t *fingerprint;
};

static bool is_named(const char *const *packages, const char *name)
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
	const struct package_search *package_search = arg;

	if (is_named(package_search->packages, name) &&
	    !json_object_get(package_search->fingerprint, name))
		js_put_str(package_search->fingerprint, name, version);
}

/* A program that is not known to be Python is identified by its content. */
static int add_program(json_t *fingerprint, const char *program, struct err **err)
{
	char hex[SHA256_HEX];
	uint64_t size = 0;

	if (hash_sha256_file(program, hex, &size, err) < 0)
		return err_wrap(err, "cannot tell the version of '%s'", program);
	js_put_str(fingerprint, "program", program);
	js_put(fingerprint, "size", json_integer((json_int_t)size));
	js_put_str(fingerprint, "sha256", hex);
	return 0;
}

/* Adds Python and the packages; it is known to be Python. */
static int add_packages(json_t *fingerprint, const struct python *python,
			const char *const *packages, struct err **err)
{
	struct package_search package_search = { packages, fingerprint };

	js_put_str(fingerprint, "python", python->version);
	return python_packages(python, add_package, &package_search, err);
}

int fingerprint_packages(const struct program_place *place, const char *const *packages,
			 json_t **ret, struct err **err)
{
	AUTO(python_clear) struct python python = { 0 };
	json_auto_t *fingerprint = json_object();

	*ret = NULL;
	if (python_find(place, &python, err) < 0)
		return -1;
	if (!python.version)
		return 0;
	if (add_packages(fingerprint, &python, packages, err) < 0)
		return -1;
	*ret = TAKE(fingerprint);
	return 0;
}

int fingerprint_python(const struct program_place *place, const char *const *packages, json_t **ret,
		       struct err **err)
{
	AUTO(python_clear) struct python python = { 0 };
	json_auto_t *fingerprint = json_object();

	if (python_find(place, &python, err) < 0)
		return -1;
	if (!python.program) {
		js_put_str(fingerprint, "program", place->program);
		js_put(fingerprint, "found", json_false());
	} else if (python.version) {
		if (add_packages(fingerprint, &python, packages, err) < 0)
			return -1;
	} else if (add_program(fingerprint, python.program, err) < 0) {
		return -1;
	}
	*ret = TAKE(fingerprint);
	return 0;
}

static bool is_python(const json_t *fingerprint)
{
	return js_str(fingerprint, "python") != NULL;
}

/* The packages that the manifest names and that are not installed. */
static char *missing_words(const json_t *locked, const json_t *found)
{
	struct sb words = SB_INIT_MAX(400);
	const char *name;
	json_t *version;
	size_t count = 0;

	json_object_foreach ((json_t *)locked, name, version) {
		if (json_object_get(found, name))
			continue;
		sb_addf(&words, "%s%s", count ? ", " : "", name);
		count++;
	}
	if (count == 0) {
		sb_release(&words);
		return NULL;
	}
	sb_adds(&words, count == 1 ? " is not installed" : " are not installed");
	return sb_take(&words);
}

bool fingerprint_tells(const json_t *fingerprint)
{
	return is_python(fingerprint) || js_str(fingerprint, "sha256");
}

/* Programs that are not known to be Python can only be compared for equality. */
static json_t *compare_programs(const char *locked, const char *found)
{
	if (strcmp(locked, found) == 0)
		return json_array();
	return json_pack("[{s:s, s:s, s:s}]", "field", "program", "old", locked, "new", found);
}

json_t *fingerprint_compare(const json_t *locked, const json_t *found, char **ret_unknown)
{
	const char *program = js_str(locked, "sha256"), *other = js_str(found, "sha256");
	json_t *changed;
	size_t i;

	*ret_unknown = NULL;
	if (program && other && !is_python(locked) && !is_python(found))
		return compare_programs(program, other);
	if (!is_python(locked) || !is_python(found)) {
		*ret_unknown = mem_copy(is_python(locked) ? "no Python found for the command"
							  : "the compile manifest names no Python");
		return json_array();
	}
	*ret_unknown = json_object_size(found) == 1 && json_object_size(locked) == 1
			       ? mem_copy("no package of the compiler is installed")
			       : missing_words(locked, found);
	changed = graph_key_ingredients_diff(locked, found);
	for (i = json_array_size(changed); i-- > 0;)
		if (json_is_null(json_object_get(json_array_get(changed, i), "new")))
			json_array_remove(changed, i);
	return changed;
}

/* Names of compilers: other differences beside a compiler's are seldom the cause. */
static const char *const compilers[] = { "neuronx-cc", "jaxlib" };

static const json_t *foremost(const json_t *changed)
{
	const json_t *row;
	size_t n;

	for (size_t i = 0; i < STK_LENGTH(compilers); i++)
		json_array_foreach ((json_t *)changed, n, row)
			if (js_is(row, "field", compilers[i]))
				return row;
	return json_array_get(changed, 0);
}

char *fingerprint_words(const json_t *changed)
{
	const json_t *row = foremost(changed);
	const char *old = js_str(row, "old");
	size_t more = json_array_size(changed) - 1;
	AUTO(auto_free) char *others = more ? mem_format(" (and %zu more)", more) : mem_copy("");

	return mem_format("%.80s %.80s in place of %.80s%s", js_str(row, "field"),
			  js_str(row, "new"), old ? old : "none", others);
}

char *fingerprint_pair(const json_t *changed)
{
	char hex[SHA256_HEX];

	js_digest(changed, hex);
	return mem_format("compiler/%.32s", hex);
}
