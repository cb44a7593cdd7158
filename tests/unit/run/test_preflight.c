/* Which requests try the places of a run before it begins, and which places need none: see
 * jobs/run/plan/preflight.h. The service is a peer on loopback that keeps all conditions. */
#include "jobs/run/plan/preflight.h"

#include "tests/unit/aws/peer.h"
#include "tests/unit/aws/world.h"

#define EMPTY                                                                                      \
	{                                                                                          \
		.body = "<ListBucketResult><Name>b</Name><KeyCount>0</KeyCount><IsTruncated>false" \
			"</IsTruncated></ListBucketResult>"                                        \
	}
#define DONE                                                                                       \
	{                                                                                          \
		.headers = "ETag: \"0\"\r\n"                                                       \
	}
#define GONE                                                                                       \
	{                                                                                          \
		.status = 204                                                                      \
	}
#define REFUSED                                                                                    \
	{                                                                                          \
		.status = 412, .body = "<Error><Code>PreconditionFailed</Code></Error>"            \
	}
#define READS(text, tag)                                                                           \
	{                                                                                          \
		.headers = "ETag: \"" tag "\"\r\n", .body = text                                   \
	}
/* The answers of a bucket. */
#define RIGHTS EMPTY, DONE, READS("", "0"), GONE
#define CONDITIONS                                                                                 \
	DONE, REFUSED, READS("first", "1"), DONE, READS("second", "2"), REFUSED,                   \
		READS("second", "2"), GONE
#define RIGHTS_COUNT     4
#define CONDITIONS_COUNT 8

static void use(const struct peer *peer)
{
	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("AWS_ENDPOINT_URL", peer->url, 1);
	aws_settings_forget();
}

static json_t *plan_at(const char *workspace, const char *cache, const char *checkpoints)
{
	return json_pack("{s:s*, s:{s:s*}, s:{s:s*}}", "workspace", workspace, "compile", "cache",
			 cache, "checkpoint", "url", checkpoints);
}

static void assert_asks(const struct peer *peer, size_t number, const char *words)
{
	if (!strstr(peer->requests[number].text, words))
		fail_msg("'%s' is not in request %zu: %.200s", words, number,
			 peer->requests[number].text);
}

/* Rights beneath each prefix, conditions of each bucket, and nothing of a folder. */
static void each_prefix_and_each_bucket_is_tried_once(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER(RIGHTS, CONDITIONS, RIGHTS, RIGHTS, CONDITIONS);
	json_auto_t *plan = plan_at("s3://one/w", "s3://one/c", "s3://two/k");
	AUTO(preflight_release) struct preflight probe = { .count = 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	if (preflight_places(&probe, plan, NULL, &err) < 0)
		fail_msg("%s", err->message);
	assert_int_equal(probe.count, 2);
	assert_string_equal(probe.buckets[0], "s3://one");
	assert_string_equal(probe.buckets[1], "s3://two");
	assert_int_equal(peer->request_count, 3 * RIGHTS_COUNT + 2 * CONDITIONS_COUNT);
	assert_asks(peer, 0, "GET ");
	assert_asks(peer, 0, "stoker-probe-");
	assert_asks(peer, 1, "PUT ");
	assert_asks(peer, 2, "GET ");
	assert_asks(peer, 3, "DELETE ");
	assert_asks(peer, 4, "PUT ");
	assert_asks(peer, 4, "/w/stoker-probe-");
	assert_asks(peer, RIGHTS_COUNT + CONDITIONS_COUNT - 1, "DELETE ");
	assert_asks(peer, RIGHTS_COUNT + CONDITIONS_COUNT + 1, "/c/stoker-probe-");
	assert_asks(peer, 2 * RIGHTS_COUNT + CONDITIONS_COUNT + 1, "/k/stoker-probe-");
}

static void what_was_tried_is_not_tried_again(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(CONDITIONS, CONDITIONS, RIGHTS);
	json_auto_t *plan = plan_at("s3://one/w", "s3://two/c", "s3://one/w");
	json_auto_t *folders = plan_at("/w", NULL, "/k");
	AUTO(preflight_release) struct preflight probe = { .count = 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	/* a driver that takes over tries the conditions alone */
	assert_int_equal(preflight_conditions(&probe, plan, &err), 0);
	assert_int_equal(peer->request_count, 2 * CONDITIONS_COUNT);
	assert_int_equal(probe.count, 2);
	assert_int_equal(preflight_conditions(&probe, plan, &err), 0);
	assert_int_equal(peer->request_count, 2 * CONDITIONS_COUNT);
	assert_int_equal(preflight_places(&probe, folders, NULL, &err), 0);
	assert_int_equal(preflight_conditions(&probe, folders, &err), 0);
	assert_int_equal(peer->request_count, 2 * CONDITIONS_COUNT);
	assert_int_equal(probe.count, 2);
}

static void a_place_that_two_share_is_tried_once(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(RIGHTS, CONDITIONS, RIGHTS);
	json_auto_t *plan = plan_at("s3://one/w", "s3://one/w", "s3://one/w/k");
	AUTO(preflight_release) struct preflight probe = { .count = 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	assert_int_equal(preflight_places(&probe, plan, NULL, &err), 0);
	assert_int_equal(peer->request_count, 2 * RIGHTS_COUNT + CONDITIONS_COUNT);
	assert_int_equal(probe.count, 1);
}

/* The first that fails ends it. */
static void a_bucket_that_does_not_keep_them_is_refused(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER(DONE, DONE, GONE);
	json_auto_t *plan = plan_at("s3://one/w", "s3://two/c", NULL);
	AUTO(preflight_release) struct preflight probe = { .count = 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	assert_int_equal(preflight_conditions(&probe, plan, &err), -1);
	assert_error(err, EXIT_REFUSED, "cannot be trusted with the workspace");
	assert_int_equal(probe.count, 0);
	assert_int_equal(peer->request_count, 3);
}

/* Objects of killed probes are removed only if they cannot be under way any more. */
static void what_is_left_of_old_probes_is_removed(void **state)
{
	static const char lists[] =
		"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>"
		"<Contents><Key>w/stoker-probe-new</Key><LastModified>2999-01-01T00:00:00.000Z"
		"</LastModified><ETag>&quot;0&quot;</ETag><Size>0</Size></Contents>"
		"<Contents><Key>w/stoker-probe-old</Key><LastModified>2020-01-01T00:00:00.000Z"
		"</LastModified><ETag>&quot;0&quot;</ETag><Size>0</Size></Contents>"
		"</ListBucketResult>";
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = lists }, DONE, READS("", "0"), GONE, GONE, CONDITIONS);
	json_auto_t *plan = plan_at("s3://one/w", NULL, NULL);
	AUTO(preflight_release) struct preflight probe = { .count = 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	assert_int_equal(preflight_places(&probe, plan, NULL, &err), 0);
	assert_int_equal(peer->request_count, RIGHTS_COUNT + 1 + CONDITIONS_COUNT);
	assert_asks(peer, 3, "DELETE ");
	assert_asks(peer, 3, "stoker-probe-old");
	assert_asks(peer, 4, "DELETE ");
	assert_null(strstr(peer->requests[4].text, "stoker-probe-new"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_world(each_prefix_and_each_bucket_is_tried_once),
		test_in_world(what_was_tried_is_not_tried_again),
		test_in_world(a_place_that_two_share_is_tried_once),
		test_in_world(a_bucket_that_does_not_keep_them_is_refused),
		test_in_world(what_is_left_of_old_probes_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
