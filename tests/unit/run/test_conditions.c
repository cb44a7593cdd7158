/* Servers that keep the conditions of writes, and those that do not, each in its own way: see
 * jobs/run/plan/conditions.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/run/plan/conditions.h"
#include "jobs/store/store_backend.h"
#include "jobs/store/store_right.h"

enum lie {
	LIE_NONE,
	LIE_ABSENT_IGNORED, /* overwrites what is there */
	LIE_ABSENT_REFUSED, /* 412 though nothing is there */
	LIE_ABSENT_WRITES,  /* 412, and overwrites */
	LIE_SAME_REFUSED,   /* 412 to the right tag, as radosgw does */
	LIE_SAME_NOTHING,   /* 200, and writes nothing */
	LIE_SAME_IGNORED,   /* overwrites whatever the tag */
	LIE_SAME_WRITES,    /* 412 to a wrong tag, and overwrites */
	LIE_ONE_TAG,        /* two contents have the same */
	LIE_LOSES,          /* 200, and nothing is there */
	ERROR_OF_CONDITION, /* a write without a condition works */
	ERROR_OF_WRITES,    /* none is allowed */
	ERROR_OF_READS,     /* no read is allowed */
	ERROR_NO_TAG,       /* a read with its tag is not answered */
	ERROR_FIRST_READ,   /* is not answered, the others are */
	ERROR_NO_ANSWER,
};

/* A server with one object. */
struct server {
	struct store base; /* first: a store is one of these */
	enum lie lie;
	char text[16];
	int version; /* 0: it is not there */
	int asked;   /* to write it if absent */
	int removed, reads, gets, puts;
};

static struct server *server_of(struct store *store)
{
	return (struct server *)(void *)store;
}

static void put_text(struct server *s, const void *bytes, size_t len)
{
	s->puts++;
	if (s->lie == LIE_LOSES)
		return;
	memcpy(s->text, bytes, len);
	s->text[len] = '\0';
	s->version++;
	assert_true(strcmp(s->text, "first") == 0 || strcmp(s->text, "another") == 0 ||
		    strcmp(s->text, "second") == 0 || strcmp(s->text, "third") == 0 || len == 0);
}

static int refuse(const struct server *s, struct err **err)
{
	return err_set(err, s->lie == ERROR_NO_ANSWER ? EXIT_UNREACHABLE : EXIT_REFUSED,
		       "not like this");
}

static int put(struct store *store, const char *key, const void *bytes, size_t len,
	       struct err **err)
{
	struct server *s = server_of(store);

	(void)key;
	if (s->lie == ERROR_OF_WRITES)
		return refuse(s, err);
	put_text(s, bytes, len);
	return 0;
}

static int put_if_absent(struct store *store, const char *key, const void *bytes, size_t len,
			 struct err **err)
{
	struct server *s = server_of(store);
	bool there = s->asked++ > 0;

	(void)key;
	if (s->lie == ERROR_OF_CONDITION || s->lie == ERROR_OF_WRITES || s->lie == ERROR_NO_ANSWER)
		return refuse(s, err);
	if (s->lie == LIE_ABSENT_REFUSED)
		return 0;
	if (!there || s->lie == LIE_ABSENT_IGNORED || s->lie == LIE_ABSENT_WRITES)
		put_text(s, bytes, len);
	return !there || s->lie == LIE_ABSENT_IGNORED;
}

static void tag_of(const struct server *s, char ret[STORE_TAG])
{
	snprintf(ret, STORE_TAG, "%d", s->lie == LIE_ONE_TAG ? 1 : s->version);
}

static int replace(struct store *store, const char *key, const char *tag, const void *bytes,
		   size_t len, struct err **err)
{
	struct server *s = server_of(store);
	char now[STORE_TAG];
	bool same;

	(void)key;
	(void)err;
	tag_of(s, now);
	same = strcmp(now, tag) == 0;
	if (s->lie == LIE_SAME_REFUSED)
		return 0;
	if (s->lie == LIE_SAME_NOTHING)
		return 1;
	if (same || s->lie == LIE_SAME_IGNORED || s->lie == LIE_SAME_WRITES)
		put_text(s, bytes, len);
	return same || s->lie == LIE_SAME_IGNORED;
}

static int get(struct store *store, const char *key, size_t max, struct sb *ret,
	       char ret_tag[STORE_TAG], struct err **err)
{
	struct server *s = server_of(store);

	assert_int_equal(strncmp(key, PREFLIGHT_KEY, strlen(PREFLIGHT_KEY)), 0);
	assert_int_equal(strlen(key), strlen(PREFLIGHT_KEY) + 16);
	assert_int_equal(max, 64);
	s->gets++;
	if (s->lie == ERROR_OF_READS)
		return refuse(s, err);
	if ((s->lie == ERROR_NO_TAG && ret_tag) || (s->lie == ERROR_FIRST_READ && s->reads++ == 0))
		return err_set(err, EXIT_UNREACHABLE, "a reply without an ETag");
	if (s->version == 0)
		return 0;
	sb_clear(ret);
	sb_adds(ret, s->text);
	if (ret_tag)
		tag_of(s, ret_tag);
	return 1;
}

static int delete (struct store *store, const char *key, struct err **err)
{
	(void)key;
	(void)err;
	server_of(store)->version = 0;
	server_of(store)->removed++;
	return 0;
}

static const struct store_backend backend = { .put = put,
					      .put_if_absent = put_if_absent,
					      .replace_if_same = replace,
					      .get = get,
					      .remove = delete };

static int try_server(struct server *s, enum lie lie, struct err **err)
{
	static char url[] = "s3://bucket/prefix";

	*s = (struct server){ .base = { .backend = &backend, .url = url }, .lie = lie };
	return conditions_try(&s->base, "state", err);
}

static void a_server_that_keeps_them_is_trusted_and_left_as_it_was(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct server s;

	(void)state;
	assert_int_equal(try_server(&s, LIE_NONE, &err), 0);
	assert_null(err);
	assert_int_equal(s.version, 0);
	assert_int_equal(s.removed, 1);
	assert_int_equal(s.puts, 2);
	assert_int_equal(s.gets, 3);
	assert_string_equal(s.text, "second");
}

static void a_server_that_lies_is_named_with_condition_and_answer(void **state)
{
	static const struct {
		enum lie lie;
		const char *condition, *answer;
	} rows[] = {
		{ LIE_ABSENT_IGNORED, "'If-None-Match: *' for an existing object",
		  "200, and the object is overwritten" },
		{ LIE_ABSENT_REFUSED, "'If-None-Match: *' for a missing object", "412" },
		{ LIE_ABSENT_WRITES, "'If-None-Match: *' for an existing object",
		  "412, but the object is overwritten" },
		{ LIE_SAME_REFUSED, "'If-Match' with the object's ETag",
		  "412, as if the ETag were another one" },
		{ LIE_SAME_NOTHING, "'If-Match' with the object's ETag",
		  "200, but the object is unchanged" },
		{ LIE_ONE_TAG, "'If-Match' with the object's ETag",
		  "200, and two contents have the same ETag" },
		{ LIE_SAME_IGNORED, "'If-Match' with an ETag that the object no longer has",
		  "200, and the object is overwritten" },
		{ LIE_SAME_WRITES, "'If-Match' with an ETag that the object no longer has",
		  "412, but the object is overwritten" },
		{ ERROR_OF_CONDITION, "'If-None-Match: *' for a missing object",
		  "an error: not like this" },
		{ ERROR_NO_TAG, "'If-None-Match: *' for an existing object",
		  "200, but gives the object no ETag" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *words = mem_format("in the bucket 'bucket' a write under the condition %s is "
					 "answered with %s",
					 rows[i].condition, rows[i].answer);
		AUTO(err_freep) struct err *err = NULL;
		struct server s;

		assert_int_equal(try_server(&s, rows[i].lie, &err), -1);
		if (!strstr(err->message, words))
			fail_msg("%s", err->message);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(strstr(err->hint, "put the state on a server with conditional"));
		assert_int_equal(s.version, 0); /* removed again */
	}
}

static void a_missing_right_is_named(void **state)
{
	static const struct {
		enum lie lie;
		const char *words, *hint;
	} rows[] = {
		{ ERROR_OF_WRITES, "cannot write to the state", "allow s3:PutObject" },
		{ ERROR_OF_READS, "cannot read from the state", "allow s3:GetObject" },
		{ LIE_LOSES, "the written object is missing", "allow s3:GetObject" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		struct server s;

		assert_int_equal(try_server(&s, rows[i].lie, &err), -1);
		assert_non_null(strstr(err->message, rows[i].words));
		assert_non_null(strstr(err->hint, rows[i].hint));
		assert_int_equal(err->code, EXIT_REFUSED);
	}
}

/* The answer looks like an object without an ETag. */
static void one_look_without_an_answer_is_no_verdict(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct server s;

	(void)state;
	assert_int_equal(try_server(&s, ERROR_FIRST_READ, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
}

static void without_an_answer_there_is_no_verdict(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct server s;

	(void)state;
	assert_int_equal(try_server(&s, ERROR_NO_ANSWER, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "cannot try the conditions of writes on the state"));
}

/* A place that is no URL of a bucket stays as it is; a bucket loses its path. */
static void a_bucket_is_what_is_before_its_prefix(void **state)
{
	static const char *const rows[][2] = { { "s3://b/p/q", "s3://b" },
					       { "s3://b", "s3://b" },
					       { "s3://b/", "s3://b" },
					       { "a/b", "a" } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *bucket = conditions_bucket(rows[i][0]);

		assert_string_equal(bucket, rows[i][1]);
	}
}

/* A hint of its own stays; else the error says which right is missing. */
static void what_is_denied_names_its_right(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct server s = { .base = { .backend = &backend, .url = (char[]){ "s3://b/p" } } };

	(void)state;
	err_set(&err, EXIT_REFUSED, "no");
	assert_int_equal(store_right_denied(&s.base, "state", "list", "s3:ListBucket", &err), -1);
	assert_string_equal(err->message,
			    "cannot list the state 's3://b/p', which takes s3:ListBucket: no");
	assert_string_equal(err->hint, "allow s3:ListBucket on it, or name another state");
	err_freep(&err);
	err_set(&err, EXIT_REFUSED, "no");
	err_hint(&err, "an own one");
	assert_int_equal(store_right_denied(&s.base, "state", "list", "s3:ListBucket", &err), -1);
	assert_string_equal(err->hint, "an own one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_keeps_them_is_trusted_and_left_as_it_was),
		cmocka_unit_test(a_server_that_lies_is_named_with_condition_and_answer),
		cmocka_unit_test(a_missing_right_is_named),
		cmocka_unit_test(one_look_without_an_answer_is_no_verdict),
		cmocka_unit_test(without_an_answer_there_is_no_verdict),
		cmocka_unit_test(a_bucket_is_what_is_before_its_prefix),
		cmocka_unit_test(what_is_denied_names_its_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
