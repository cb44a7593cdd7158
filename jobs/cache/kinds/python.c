/*
 * Finds Python without running it: see python.h. Sources of outside facts: PEP 405 (pyvenv.cfg
 * beside the executable or one folder up), site.py (folders of packages), PEP 376 and 491 (names of
 * .dist-info folders), Debian's dist-packages, pip's long form of the #! line.
 */
#include "jobs/cache/kinds/python.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/python_shim.h"

#define HEAD_BYTES   512 /* bytes read from a script: its #! line and pip's second line */
#define SCRIPTS_MAX  4   /* #! lines followed: script, shim, … */
#define CONFIG_BYTES 65536

void python_clear(struct python *python)
{
	auto_free(&python->program);
	auto_free(&python->version);
	auto_strv(&python->folders);
}

/* True for "python", "python3", "python3.11", which may safely be run with -c. */
static bool is_python_name(const char *path)
{
	const char *name = fs_basename(path);

	if (!text_starts(name, "python"))
		return false;
	name += strlen("python");
	return name[strspn(name, "0123456789.")] == '\0';
}

static void add_folder(struct python *python, size_t *count, char *folder)
{
	python->folders = mem_grow(python->folders, *count + 2, sizeof *python->folders);
	python->folders[(*count)++] = folder;
	python->folders[*count] = NULL;
}

/* Adds the folder "<prefix>/<lib><version>/<leaf>", if it exists. */
static void add_below(struct python *python, size_t *count, const char *prefix, const char *lib,
		      const char *version, const char *leaf)
{
	AUTO(auto_free) char *path = mem_format("%s/%s%s/%s", prefix, lib, version, leaf);

	if (fs_is_dir(path))
		add_folder(python, count, TAKE(path));
}

/* The first bytes of a file as a string; empty if it cannot be read. */
static void read_head(const char *path, char head[HEAD_BYTES])
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t got = fd >= 0 ? read(fd, head, HEAD_BYTES - 1) : 0;

	head[got > 0 ? got : 0] = '\0';
}

/* The next blank-separated word of `*at`, without quotes; NULL at the end of the line. Modifies the
 * text. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t");
	char stop = *word == '"' || *word == '\'' ? *word : '\0';
	char *end;

	if (*word == '\0' || *word == '\n' || *word == '\r')
		return NULL;
	if (stop)
		word++;
	end = word + strcspn(word, stop ? (char[]){ stop, '\n', '\0' } : " \t\r\n");
	*at = *end && *end != '\n' ? end + 1 : end;
	*end = '\0';
	return word;
}

/* The interpreter that `#! … env [-S] [NAME=VALUE…] python3` asks for. */
static char *env_program(char *rest, const struct program_place *place)
{
	for (char *word = next_word(&rest); word; word = next_word(&rest)) {
		if (word[0] == '-' || strchr(word, '='))
			continue;
		return proc_find_program(word, place->cwd, place->path);
	}
	return NULL;
}

/* Path of the interpreter of a script; NULL if it names none that is known. */
static char *script_interpreter(char *head, const struct program_place *place)
{
	char *second = strchr(head, '\n');
	char *at = head + 2;
	char *program;

	if (second)
		second++;
	program = next_word(&at);
	if (!program)
		return NULL;
	if (strcmp(fs_basename(program), "env") == 0)
		return env_program(at, place);
	/* pip's form if the path is too long for a #! line: sh, then '''exec' "/long/path/python"
	 * "$0" "$@" */
	if (second && text_starts(second, "'''exec' ")) {
		at = second + strlen("'''exec' ");
		program = next_word(&at);
	}
	return program ? mem_copy(program) : NULL;
}

/* "3.11" from "3.11.7" or "python3.11"; NULL for other text. */
static char *short_version(const char *text)
{
	unsigned major, minor;

	text += strcspn(text, "0123456789");
	if (sscanf(text, "%3u.%3u", &major, &minor) != 2)
		return NULL;
	return mem_format("%u.%u", major, minor);
}

/* The highest python3.N below `prefix`/lib. */
static char *version_below(const char *prefix)
{
	AUTO(auto_free) char *lib = fs_join(prefix, "lib");
	DIR *dir = opendir(lib);
	unsigned best = 0, minor;
	bool found = false;

	if (!dir)
		return NULL;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (sscanf(entry->d_name, "python3.%3u", &minor) != 1)
			continue;
		if (!found || minor > best)
			best = minor;
		found = true;
	}
	closedir(dir);
	return found ? mem_format("3.%u", best) : NULL;
}

/* Adds the package folders of an interpreter with its own prefix. */
static void add_prefix(struct python *python, size_t *count, const char *prefix)
{
	const char *v = python->version;

	add_below(python, count, prefix, "local/lib/python", v, "dist-packages");
	add_below(python, count, prefix, "lib/python", v, "site-packages");
	add_below(python, count, prefix, "lib64/python", v, "site-packages");
	add_below(python, count, prefix, "lib/python", v, "dist-packages");
	if (v[0] == '3')
		add_below(python, count, prefix, "lib/python", "3", "dist-packages");
}

static void add_python_path(struct python *python, size_t *count, const struct program_place *place)
{
	const char *at = place->python_path;

	while (at && *at) {
		size_t len = strcspn(at, ":");
		AUTO(auto_free) char *part = mem_copy_n(at, len);
		AUTO(auto_free) char *folder = fs_join(place->cwd ? place->cwd : ".", part);

		if (len > 0 && fs_is_dir(folder))
			add_folder(python, count, TAKE(folder));
		at += len + (at[len] == ':');
	}
}

static void add_user_folder(struct python *python, size_t *count, const char *home)
{
	if (home && *home)
		add_below(python, count, home, ".local/lib/python", python->version,
			  "site-packages");
}

/* The value of "name = value" in a pyvenv.cfg; NULL if absent. The caller frees it. */
static char *config_value(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + strspn(line, " \t");
		size_t value;

		if (strncasecmp(at, name, len) != 0)
			continue;
		at += len + strspn(at + len, " \t");
		if (*at++ != '=')
			continue;
		at += strspn(at, " \t");
		value = strcspn(at, "\r\n");
		while (value > 0 && isspace((unsigned char)at[value - 1]))
			value--;
		return mem_copy_n(at, value);
	}
	return NULL;
}

/* Adds the folders of the virtual environment at `venv` with this configuration. */
static void use_venv(struct python *python, size_t *count, const char *venv, const char *config,
		     const struct program_place *place)
{
	AUTO(auto_free) char *version = config_value(config, "version");
	AUTO(auto_free) char *home = config_value(config, "home");
	AUTO(auto_free) char *system = config_value(config, "include-system-site-packages");

	if (!version)
		version = config_value(config, "version_info");
	python->version = version ? short_version(version) : NULL;
	if (!python->version)
		python->version = version_below(venv);
	if (!python->version)
		return;
	add_python_path(python, count, place);
	add_below(python, count, venv, "lib/python", python->version, "site-packages");
	add_below(python, count, venv, "lib64/python", python->version, "site-packages");
	if (system && strcasecmp(system, "true") == 0 && home) {
		AUTO(auto_free) char *prefix = fs_dirname(home);

		add_user_folder(python, count, place->home);
		add_prefix(python, count, prefix);
	}
}

/* Uses a pyvenv.cfg beside the executable as it was called, or one folder up; like Python, does not
 * follow links. Returns 1 if used, 0 if not found, -1 with an error. */
static int try_venv(struct python *python, size_t *count, const char *executable,
		    const struct program_place *place, struct err **err)
{
	AUTO(auto_free) char *bin = fs_dirname(executable);
	AUTO(auto_free) char *up = fs_dirname(bin);
	const char *const folders[] = { bin, up };

	for (size_t i = 0; i < STK_LENGTH(folders); i++) {
		AUTO(auto_free) char *path = fs_join(folders[i], "pyvenv.cfg");
		AUTO(sb_release) struct sb config = SB_INIT;

		if (!fs_exists(path))
			continue;
		if (fs_read(path, CONFIG_BYTES, &config, err) < 0)
			return err_wrap(err, "cannot tell the versions of Python's packages");
		use_venv(python, count, folders[i], config.text, place);
		return 1;
	}
	return 0;
}

/* Uses an interpreter with its own prefix; does nothing if it is not Python. */
static void use_interpreter(struct python *python, size_t *count, const char *executable,
			    const struct program_place *place)
{
	AUTO(auto_free) char *real = realpath(executable, NULL);
	AUTO(auto_free) char *bin = NULL;
	AUTO(auto_free) char *prefix = NULL;

	if (!real || (!is_python_name(real) && !is_python_name(executable)))
		return;
	bin = fs_dirname(real);
	prefix = fs_dirname(bin);
	python->version = short_version(fs_basename(real));
	if (!python->version)
		python->version = version_below(prefix);
	if (!python->version)
		return;
	add_python_path(python, count, place);
	add_user_folder(python, count, place->home);
	add_prefix(python, count, prefix);
}

/* The shim to ask: `script` itself if it is a `python`, or the `python` beside another program's
 * shim (torchrun). NULL if `script` is not a shim. */
static char *shim_to_ask(const char *script)
{
	AUTO(auto_free) char *folder = fs_dirname(script);
	AUTO(auto_free) char *python = fs_join(folder, "python");

	if (is_python_name(script))
		return mem_copy(script);
	if (strcmp(fs_basename(folder), "shims") == 0 && access(python, X_OK) == 0)
		return TAKE(python);
	return NULL;
}

int python_find(const struct program_place *place, struct python *ret, struct err **err)
{
	AUTO(auto_free) char *at = NULL;
	char head[HEAD_BYTES];
	size_t count = 0;
	int used;

	*ret = (struct python){ 0 };
	ret->program = proc_find_program(place->program, place->cwd, place->path);
	if (!ret->program)
		return errno == ENOENT
			       ? 0
			       : fs_error(err, errno, "cannot look for '%s'", place->program);
	at = mem_copy(ret->program);
	for (int scripts = 0; at && scripts <= SCRIPTS_MAX; scripts++) {
		AUTO(auto_free) char *next = NULL;
		AUTO(auto_free) char *shim = NULL;

		read_head(at, head);
		if (head[0] != '#' || head[1] != '!')
			break;
		next = script_interpreter(head, place);
		if (next && !is_python_name(next))
			shim = shim_to_ask(at);
		if (shim)
			return python_ask_shim(shim, place, ret);
		free(at);
		at = TAKE(next);
	}
	if (!at || !is_python_name(at))
		return 0;
	used = try_venv(ret, &count, at, place, err);
	if (used < 0) {
		python_clear(ret);
		return -1;
	}
	if (used == 0)
		use_interpreter(ret, &count, at, place);
	return 0;
}

/* "Foo_Bar-1.2.dist-info", "foo-1.2-py3.11.egg-info" → "foo-bar", "1.2". */
static bool split_distribution(const char *file, char name[NAME_MAX + 1],
			       char version[NAME_MAX + 1])
{
	static const char *const suffixes[] = { ".dist-info", ".egg-info" };
	size_t len = strlen(file), dash = strcspn(file, "-"), end;

	for (size_t i = 0; i < STK_LENGTH(suffixes); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (len <= suffix || strcmp(file + len - suffix, suffixes[i]) != 0)
			continue;
		end = len - suffix;
		if (dash == 0 || dash + 1 >= end || !isalnum((unsigned char)file[0]))
			return false;
		for (size_t n = 0; n < dash; n++) {
			unsigned char c = (unsigned char)file[n];

			name[n] = c == '_' || c == '.' ? '-' : (char)tolower(c);
		}
		name[dash] = '\0';
		snprintf(version, NAME_MAX + 1, "%.*s", (int)(end - dash - 1), file + dash + 1);
		version[strcspn(version, "-")] = '\0';
		return true;
	}
	return false;
}

/* Returns -1 with errno if the folder could not be read to its end; one that is absent is empty. */
static int list_packages(const char *folder, python_package_fn fn, void *arg)
{
	DIR *dir = opendir(folder);
	char name[NAME_MAX + 1], version[NAME_MAX + 1];
	const struct dirent *entry;
	int failed;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	while ((errno = 0, entry = readdir(dir)))
		if (split_distribution(entry->d_name, name, version))
			fn(arg, name, version);
	failed = errno;
	closedir(dir);
	errno = failed;
	return failed ? -1 : 0;
}

int python_packages(const struct python *python, python_package_fn fn, void *arg, struct err **err)
{
	for (char **folder = python->folders; folder && *folder; folder++) {
		int failures = 0;

		/* A package that is named again is the same one. */
		while (list_packages(*folder, fn, arg) < 0)
			if (!err_try_again(&failures))
				return fs_error(err, errno, "cannot read '%s'", *folder);
	}
	return 0;
}
