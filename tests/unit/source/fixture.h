/*
 * For the tests of source_pin: a scratch folder with a source in it, a
 * workspace, shell commands, and ways to ask for a pin.
 */
#ifndef STK_TESTS_SOURCE_FIXTURE_H
#define STK_TESTS_SOURCE_FIXTURE_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/source/archive.h"
#include "jobs/source/source.h"

struct fixture {
	char scratch[64];
	char *root; /* of the source */
	struct store *store;
};

static inline void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static inline int setup(void **state)
{
	struct fixture *f = mem_zero(1, sizeof *f);
	AUTO(auto_free) char *workspace = NULL;
	struct err *err = NULL;

	strcpy(f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	f->root = fs_join(f->scratch, "src");
	workspace = fs_join(f->scratch, "workspace");
	must(fs_mkdirs(f->root, &err), err);
	must(store_open(workspace, &f->store, &err), err);
	/* Only what a test writes counts, on any machine. */
	setenv("HOME", f->scratch, 1);
	unsetenv("XDG_CONFIG_HOME");
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_AUTHOR_NAME", "a", 1);
	setenv("GIT_AUTHOR_EMAIL", "a@example.com", 1);
	setenv("GIT_COMMITTER_NAME", "a", 1);
	setenv("GIT_COMMITTER_EMAIL", "a@example.com", 1);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	store_freep(&f->store);
	must(fs_remove_tree(f->scratch, &err), err);
	free(f->root);
	free(f);
	return 0;
}

/* Run a shell command in the source folder. */
static inline void sh(struct fixture *f, const char *command)
{
	AUTO(auto_free) char *whole = mem_format("cd '%s' && { %s\n}", f->root, command);

	if (system(whole) != 0)
		fail_msg("failed: %s", command);
}

static inline void file(struct fixture *f, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(f->root, name);
	AUTO(auto_free) char *dir = fs_dirname(path);
	AUTO(auto_close) int fd = -1;
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(dir, &err), err);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		  0644); /* in place, as editors do */
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* A small repository, committed and clean. */
static inline void repository(struct fixture *f)
{
	file(f, ".gitignore", "*.log\nbuild/\n");
	file(f, "train.py", "print(1)\n");
	file(f, "pkg/a.py", "a\n");
	file(f, "pkg/b.py", "b\n");
	sh(f, "git init -q -b main . && git add -A && git commit -q -m one");
}

static inline struct source_request request_of(struct fixture *f)
{
	return (struct source_request){ .root = f->root };
}

static inline struct source_pin *pin_request(const struct source_request *request)
{
	struct source_pin *pin = NULL;
	AUTO(err_freep) struct err *err = NULL;

	must(source_pin(request, &pin, &err), err);
	return pin;
}

static inline void assert_files(const struct source_pin *pin, const char *want)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	for (size_t i = 0; i < pin->count; i++)
		sb_addf(&text, "%s ", pin->files[i].path);
	assert_string_equal(text.text, want);
}

static inline const struct source_file *file_of(const struct source_pin *pin, const char *path)
{
	for (size_t i = 0; i < pin->count; i++)
		if (strcmp(pin->files[i].path, path) == 0)
			return &pin->files[i];
	fail_msg("'%s' is not pinned", path);
	return NULL;
}

/* Pin and compare the list of paths. */
static inline void assert_pins(const struct source_request *request, const char *want)
{
	AUTO(source_pin_freep) struct source_pin *pin = pin_request(request);

	assert_files(pin, want);
}

/* Pin, expecting an error of this code whose message has this text. */
static inline void assert_refused(const struct source_request *request, enum exit_code code,
				  const char *text, const char *field)
{
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(source_pin(request, &pin, &err), -1);
	if (!strstr(err->message, text))
		fail_msg("'%s' instead of '%s'", err->message, text);
	assert_int_equal(err->code, code);
	if (field)
		assert_string_equal(err->field, field);
}

static inline char *digest_of(const struct source_request *request)
{
	AUTO(source_pin_freep) struct source_pin *pin = pin_request(request);

	return mem_copy(pin->digest);
}

#endif
