/* Trials of rights in a store: see store_right.h. */
#include "jobs/store/store_right.h"

#include <stdlib.h>

static int stop_at_once(void *arg, const struct store_object *object, struct err **err)
{
	(void)arg, (void)object, (void)err;
	return 1;
}

static int try_list(struct store *store, const char *key, struct err **err)
{
	return store_list(store, key, stop_at_once, NULL, err);
}

static int try_put(struct store *store, const char *key, struct err **err)
{
	return store_put(store, key, "", 0, err);
}

static int try_get(struct store *store, const char *key, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	int there = store_get(store, key, 64, &text, NULL, err);

	if (there == 0)
		return err_set(err, EXIT_REFUSED, "the written object is missing");
	return there;
}

static const struct {
	const char *doing, *right;
	int (*attempt)(struct store *store, const char *key, struct err **err);
} tries[] = {
	[STORE_RIGHT_LIST] = { "list", "s3:ListBucket", try_list },
	[STORE_RIGHT_PUT] = { "write to", "s3:PutObject", try_put },
	[STORE_RIGHT_GET] = { "read from", "s3:GetObject", try_get },
	[STORE_RIGHT_DELETE] = { "delete from", "s3:DeleteObject", store_delete },
};

int store_right_denied(const struct store *store, const char *what, const char *doing,
		       const char *right, struct err **err)
{
	bool silent = (*err)->code == EXIT_UNREACHABLE;

	err_wrap(err, "cannot %s the %s '%s', which takes %s", doing, what, store_url(store),
		 right);
	if (!(*err)->hint && silent)
		err_hint(err, "check the network, and AWS_ENDPOINT_URL and the proxy if there are "
			      "any");
	else if (!(*err)->hint)
		err_hint(err, "allow %s on it, or name another %s", right, what);
	return -1;
}

static int denied(const struct store *store, enum store_right right, const char *what,
		  struct err **err)
{
	return store_right_denied(store, what, tries[right].doing, tries[right].right, err);
}

int store_right_try(struct store *store, enum store_right right, const char *key, const char *what,
		    struct err **err)
{
	return tries[right].attempt(store, key, err) >= 0 ? 0 : denied(store, right, what, err);
}

int store_right_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		     const char *what, struct err **err)
{
	return store_list(store, prefix, fn, arg, err) >= 0
		       ? 0
		       : denied(store, STORE_RIGHT_LIST, what, err);
}

int store_right_try_parts(const struct store *store, const char *key, bool finds,
			  struct s3_parts_trial *ret, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(auto_free) char *bucket = NULL, *prefix = NULL, *all = NULL, *full = NULL;

	if (s3_parse_url(store_url(store), &bucket, &prefix, err) < 0 || aws_open(&aws, err) < 0)
		return -1;
	all = mem_format("%s%s", prefix, *prefix ? "/" : "");
	full = mem_format("%s%s", all, key);
	aws_set_place(aws, bucket, all);
	s3_parts_try(aws, &(struct s3_place){ bucket, full }, finds, ret);
	return 0;
}
