/*
 * The fixture of the tests that hold for every kind of store. Which kind it is this time,
 * the environment says: STOKER_TEST_STORE is the URL of a place where each test makes
 * itself a fresh store (tests/aws starts them so, with a bucket); without it they are
 * directories. What kinds differ in is a flag of struct kind.
 */
#ifndef STK_TESTS_STORE_CONTRACT_H
#define STK_TESTS_STORE_CONTRACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/store/store.h"

#define GET_MAX 4096

/* The differences between kinds of stores. */
struct kind {
	/* The same bytes written again have the same tag. */
	bool tag_is_content;
	/* `a` and `a/b` can both be objects. */
	bool nests;
	/* A file that is coming down has no name until it is whole, where /tmp can do that. */
	bool comes_down_nameless;
	int many; /* objects of a listing that takes more than one reading */
};

static const struct kind directory = { .many = 9000 };
static const struct kind bucket = {
	.tag_is_content = true,
	.nests = true,
	.comes_down_nameless = true,
	.many = 2100,
};

struct fixture {
	char scratch[64]; /* a folder of this test's own */
	char *url;
	const struct kind *kind;
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
	struct err *err = NULL;

	strcpy(f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	if (getenv("STOKER_TEST_STORE"))
		f->url = mem_format("%s/%s", getenv("STOKER_TEST_STORE"),
				    f->scratch + strlen("/tmp/"));
	else
		f->url = mem_format("dir:%s/store", f->scratch);
	f->kind = strncmp(f->url, "s3:", 3) == 0 ? &bucket : &directory;
	must(store_open(f->url, &f->store, &err), err);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	store_freep(&f->store);
	must(fs_remove_tree(f->scratch, &err), err);
	free(f->url);
	free(f);
	return 0;
}

static inline void put(struct fixture *f, const char *key, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;

	must(store_put(f->store, key, text, strlen(text), &err), err);
}

static inline void assert_holds(struct fixture *f, const char *key, const char *text)
{
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	must(store_get(f->store, key, GET_MAX, &got, NULL, &err), err);
	assert_string_equal(got.text, text);
}

static inline int add_key(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	sb_addf(arg, "%s ", object->key);
	return 0;
}

static inline void assert_lists(struct fixture *f, const char *prefix, const char *want)
{
	AUTO(sb_release) struct sb keys = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	must(store_list(f->store, prefix, add_key, &keys, &err), err);
	assert_string_equal(keys.text, want);
}

#endif
