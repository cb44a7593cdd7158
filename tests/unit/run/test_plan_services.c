/* What a plan asks of AWS: the digest and environment of its image, its account and region, and
 * secrets; and what it says where the answer is none. The services are a peer on loopback. */
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/plan/preflight.h"
#include "jobs/run/plan/secret.h"
#include "tests/unit/aws/peer.h"
#include "tests/unit/aws/world.h"

#define REGISTRY      "123456789012.dkr.ecr.eu-west-1.amazonaws.com/"
#define DIGEST        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER         "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FOUND(digest) "{\"images\":[{\"imageId\":{\"imageDigest\":\"" digest "\"}}]}"
#define ABSENT        "{\"failures\":[{\"failureCode\":\"ImageNotFound\"}]}"
#define IDENTITY(account)                                                                          \
	"<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"          \
	"<GetCallerIdentityResult><Account>" account "</Account></GetCallerIdentityResult>"        \
	"</GetCallerIdentityResponse>"
#define DENIED                                                                                     \
	"<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error>"        \
	"</ErrorResponse>"

static void use(const struct peer *peer)
{
	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("AWS_ENDPOINT_URL", peer->url, 1);
	aws_settings_forget();
}

/* Returns a plan of jobs in that image that compile; the graph key holds its digest. */
static json_t *plan_in(const char *image)
{
	json_t *plan = json_pack("{s:s, s:{s:s}, s:{s:s, s:{s:s}}}", "engine", "batch", "spec",
				 "image", image, "compile", "kind", "neuron", "ingredients",
				 "resources.nodes", "1");

	assert_true(image_plan_name(plan));
	image_plan_compute_key(plan);
	return plan;
}

static const json_t *image_of(const json_t *plan)
{
	return json_object_get(plan, "image");
}

/* ---- the image ---- */

static void an_engine_without_containers_has_no_image(void **state)
{
	json_auto_t *plan = json_pack("{s:s, s:{s:s}, s:{s:{}}}", "engine", "local", "spec",
				      "image", "job:1", "compile", "ingredients");
	json_auto_t *identity = json_copy(plan);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_false(image_plan_name(plan));
	image_plan_compute_key(plan);
	assert_non_null(plan_graph_key(plan));
	image_plan_left_out(identity);
	assert_true(json_equal(identity, plan));
	assert_int_equal(image_plan_resolve(plan, &err), 0);
	assert_null(image_plan_moved(plan));
}

static void a_digest_in_the_spec_is_taken_as_it_is(void **state)
{
	json_auto_t *plan = plan_in(REGISTRY "job:1@" DIGEST);

	(void)state;
	assert_string_equal(js_str(image_of(plan), "digest"), DIGEST);
	assert_string_equal(js_str(image_of(plan), "pinned"), REGISTRY "job:1@" DIGEST);
	assert_non_null(plan_graph_key(plan));
	assert_null(image_plan_moved(plan)); /* nobody is asked */
}

static void a_tag_is_resolved_and_the_key_is_known_then(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = FOUND(DIGEST) });
	json_auto_t *plan = plan_in(REGISTRY "job:1"), *identity = NULL, *before = NULL;

	(void)state;
	use(peer);
	before = json_deep_copy(plan);
	assert_null(plan_graph_key(plan));
	image_plan_try(plan);
	assert_string_equal(js_str(image_of(plan), "digest"), DIGEST);
	assert_string_equal(js_str(image_of(plan), "pinned"), REGISTRY "job@" DIGEST);
	assert_non_null(plan_graph_key(plan));
	assert_true(json_equal(js_path(plan, "compile.ingredients.image"),
			       json_object_get(image_of(plan), "digest")));
	/* The identity of a plan is that of the spec: the tag may move. */
	identity = json_copy(plan);
	image_plan_left_out(identity);
	image_plan_left_out(before);
	assert_true(json_equal(identity, before));
	assert_non_null(plan_graph_key(plan));
}

static void a_tag_that_has_moved_is_noticed(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = FOUND(DIGEST) }, { .body = FOUND(DIGEST) },
				 { .body = FOUND(OTHER) }, { .body = ABSENT });
	json_auto_t *plan = plan_in(REGISTRY "job:1");
	AUTO(auto_free) char *moved = NULL;

	(void)state;
	use(peer);
	image_plan_try(plan);
	assert_null(image_plan_moved(plan));
	moved = image_plan_moved(plan);
	assert_non_null(moved);
	assert_string_equal(moved, OTHER);
	assert_null(image_plan_moved(plan)); /* cannot be found out */
}

static void an_image_that_is_not_there_is_refused_with_a_way_out(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = ABSENT });
	json_auto_t *plan = plan_in(REGISTRY "job:1");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };

	(void)state;
	use(peer);
	assert_int_equal(image_plan_resolve(plan, &err), -1);
	assert_error(err, EXIT_REFUSED, "cannot resolve image '" REGISTRY "job:1' to its digest");
	assert_contains(err->hint, "name the digest in the spec: image: " REGISTRY "job@sha256:");
	assert_string_equal(err->field, "image");
	image_plan_try(plan);
	assert_contains(js_str(image_of(plan), "unknown"), "cannot resolve image");
	err_freep(&err);
	assert_int_equal(cache_view_try(plan, &view, &err), 0);
	assert_int_equal(view.verdict, CACHE_UNKNOWN);
	assert_contains(view.reason, "not known: cannot resolve image");
	assert_string_equal(view.hint, js_str(image_of(plan), "hint"));
}

/* The variables that steer the compiler, and no others. */
static void a_run_learns_what_of_the_compiler_the_image_sets(void **state)
{
	static const char config[] =
		"{\"config\":{\"Env\":[\"NEURON_CC_FLAGS=-O1\",\"PATH=/bin\",\"HOME=/root\"]}}";
	char hex[SHA256_HEX];
	AUTO(auto_free) char *manifest = NULL;
	AUTO(auto_free) char *link = NULL;
	struct peer_reply replies[4] = { { .body = FOUND(DIGEST) } };
	AUTO(peer_freep) struct peer *peer = peer_new(replies, 4);
	json_auto_t *plan = plan_in(REGISTRY "job:1"), *wanted = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	hash_sha256_hex(config, strlen(config), hex);
	manifest = mem_format("{\"images\":[{\"imageManifest\":"
			      "\"{\\\"config\\\":{\\\"digest\\\":\\\"sha256:%s\\\"}}\"}]}",
			      hex);
	link = mem_format("{\"downloadUrl\":\"%s/blob\"}", peer->url);
	replies[1].body = manifest;
	replies[2].body = link;
	replies[3].body = config;
	use(peer);
	assert_int_equal(image_plan_resolve(plan, &err), 0);
	wanted = json_pack("{s:s}", "NEURON_CC_FLAGS", "-O1");
	assert_true(json_equal(json_object_get(image_of(plan), "env"), wanted));
	assert_int_equal(image_plan_resolve(plan, &err), 0); /* asks no more */
	assert_int_equal(peer->request_count, 4);
}

static void a_run_goes_on_where_the_environment_of_its_image_is_not_known(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = FOUND(DIGEST) }, { .body = ABSENT });
	json_auto_t *plan = plan_in(REGISTRY "job:1");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	assert_int_equal(image_plan_resolve(plan, &err), 0);
	assert_null(json_object_get(image_of(plan), "env"));
	assert_non_null(js_str(image_of(plan), "env_unknown"));
}

/* ---- account and region ---- */

static json_t *plan_of(const char *engine, const char *workspace, const char *account)
{
	json_t *plan = json_pack("{s:s, s:s, s:{s:{}}}", "engine", engine, "workspace", workspace,
				 "spec", "aws");

	if (account)
		js_put_str(js_path(plan, "spec.aws"), "account", account);
	return plan;
}

static void only_what_names_aws_needs_its_account(void **state)
{
	static const struct {
		const char *plan;
		bool needed;
	} rows[] = {
		{ "{\"workspace\":\"/srv/work\",\"secrets\":{\"A\":\"env:A\"}}", false },
		{ "{\"workspace\":\"s3://bucket/work\"}", true },
		{ "{\"phases\":[{\"command\":[\"a\",\"s3://bucket/x\"]}]}", true },
		{ "{\"secrets\":{\"A\":\"env:A\",\"B\":\"ssm:name\"}}", true },
		{ "{\"secrets\":{\"A\":\"secretsmanager:name\"}}", true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = json_loads(rows[i].plan, 0, NULL);

		assert_non_null(plan);
		assert_int_equal(aws_account_is_needed(plan), rows[i].needed);
	}
}

static void a_run_keeps_the_region_and_account_that_it_began_in(void **state)
{
	AUTO(peer_freep)
	struct peer *peer =
		PEER({ .body = IDENTITY("123456789012") }, { .body = IDENTITY("123456789012") },
		     { .body = IDENTITY("999999999999") });
	json_auto_t *plan = plan_of("batch", "s3://bucket/work", NULL);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	assert_int_equal(aws_account_pin(plan, &err), 0);
	assert_string_equal(js_str(json_object_get(plan, "aws"), "region"), "eu-west-1");
	assert_string_equal(js_str(json_object_get(plan, "aws"), "account"), "123456789012");
	assert_int_equal(aws_account_enter(plan, &err), 0);
	assert_int_equal(aws_account_enter(plan, &err), -1);
	assert_error(err, EXIT_REFUSED, "the jobs of this run are in account 123456789012");
	assert_contains(err->hint, "choose a profile of account 123456789012 with --profile");
}

static void an_option_does_not_move_a_run_to_another_region(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = IDENTITY("123456789012") });
	json_auto_t *plan = plan_of("batch", "s3://bucket/work", NULL);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	js_put(plan, "aws", json_pack("{s:s}", "region", "us-east-1"));
	aws_settings_option(NULL, "eu-west-1");
	assert_int_equal(aws_account_enter(plan, &err), -1);
	assert_error(err, EXIT_REFUSED, "in region us-east-1, not in eu-west-1 as --region says");
	err_freep(&err);
	aws_settings_option(NULL, NULL);
	assert_int_equal(aws_account_enter_region(plan, &err), 0);
	assert_string_equal(aws_region(&err), "us-east-1");
	aws_settings_spec(NULL);
}

static void an_account_that_cannot_be_asked_for_counts_where_the_spec_names_it(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .status = 403, .body = DENIED });
	json_auto_t *named = plan_of("batch", "s3://bucket/work", "123456789012");
	json_auto_t *plan = plan_of("batch", "s3://bucket/work", NULL);
	json_auto_t *local = plan_of("local", "/srv/work", "123456789012");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	use(peer);
	assert_int_equal(aws_account_enter(local, &err), 0); /* does not use AWS */
	assert_int_equal(aws_account_pin(local, &err), 0);
	assert_null(json_object_get(local, "aws"));
	assert_int_equal(aws_account_pin(plan, &err), 0); /* the region has to do */
	assert_null(js_str(json_object_get(plan, "aws"), "account"));
	js_put_str(json_object_get(plan, "aws"), "account", "123456789012");
	assert_int_equal(aws_account_enter(plan, &err), 0);
	assert_int_equal(aws_account_enter(named, &err), -1);
	assert_error(err, EXIT_REFUSED, "not you");
	err_freep(&err);
	unsetenv("AWS_REGION");
	aws_settings_forget();
	json_object_del(named, "aws");
	assert_int_equal(aws_account_pin(named, &err), -1);
	assert_error(err, EXIT_REFUSED, "region");
}

/* ---- places ---- */

#define EMPTY_LIST                                                                                 \
	"<ListBucketResult><Name>b</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>"   \
	"</ListBucketResult>"
#define OLD_PROBE                                                                                  \
	"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated><Contents><Key>w/"        \
	"stoker-probe-old</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><ETag>"        \
	"&quot;0&quot;</ETag><Size>0</Size></Contents></ListBucketResult>"
#define NO_KEY "<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
#define NO_WAY "<Error><Code>AccessDenied</Code><Message>not you</Message></Error>"

static void a_place_is_refused(const char *url, const char *words, const char *right)
{
	json_auto_t *plan = json_pack("{s:s}", "workspace", url);
	AUTO(preflight_release) struct preflight probe = { .count = 0 };
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(preflight_places(&probe, plan, NULL, &err), -1);
	assert_error(err, EXIT_REFUSED, words);
	if (right)
		assert_contains(err->message, right);
	assert_int_equal(probe.count, 0);
}

static void a_place_that_cannot_be_opened_is_named_before_a_run_begins(void **state)
{
	(void)state;
	a_place_is_refused("s3://b", "'s3://b' names no bucket", NULL);
}

/* A later reader would find nothing. */
static void a_place_that_does_not_keep_what_is_written_is_refused(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = EMPTY_LIST }, { .headers = "ETag: \"0\"\r\n" },
				 { .status = 404, .body = NO_KEY });

	(void)state;
	use(peer);
	a_place_is_refused("s3://bucket/w", "the written object is missing",
			   "cannot read from the workspace 's3://bucket/w', which takes "
			   "s3:GetObject");
}

/* Objects that killed probes have left are removed with the right that is tried. */
static void a_place_where_nothing_may_be_deleted_is_refused(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = OLD_PROBE }, { .headers = "ETag: \"0\"\r\n" },
				 { .headers = "ETag: \"0\"\r\n" },
				 { .status = 403, .body = NO_WAY }, { .status = 204 });

	(void)state;
	use(peer);
	a_place_is_refused("s3://bucket/w", "not you",
			   "cannot delete from the workspace 's3://bucket/w', which takes "
			   "s3:DeleteObject");
	assert_contains(peer->requests[3].text, "stoker-probe-old");
}

/* ---- secrets ---- */

static void a_secret_that_aws_does_not_give_is_named_with_its_source(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER(
		{ .body = "{\"Parameter\":{\"Value\":\"s3cret\"}}" },
		{ .status = 400, .body = "{\"__type\":\"ParameterNotFound\",\"message\":\"\"}" });
	AUTO(auto_free) char *value = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *plan = json_object();

	(void)state;
	use(peer);
	assert_int_equal(secret_value(plan, "KEY", "ssm:key", &value, &err), 0);
	assert_string_equal(value, "s3cret");
	free(value);
	value = NULL;
	assert_int_equal(secret_value(plan, "KEY", "ssm:key", &value, &err), -1);
	assert_contains(err->message, "secret 'KEY' ('ssm:key')");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_world(an_engine_without_containers_has_no_image),
		test_in_world(a_digest_in_the_spec_is_taken_as_it_is),
		test_in_world(a_tag_is_resolved_and_the_key_is_known_then),
		test_in_world(a_tag_that_has_moved_is_noticed),
		test_in_world(an_image_that_is_not_there_is_refused_with_a_way_out),
		test_in_world(a_run_learns_what_of_the_compiler_the_image_sets),
		test_in_world(a_run_goes_on_where_the_environment_of_its_image_is_not_known),
		test_in_world(only_what_names_aws_needs_its_account),
		test_in_world(a_run_keeps_the_region_and_account_that_it_began_in),
		test_in_world(an_option_does_not_move_a_run_to_another_region),
		test_in_world(an_account_that_cannot_be_asked_for_counts_where_the_spec_names_it),
		test_in_world(a_place_that_cannot_be_opened_is_named_before_a_run_begins),
		test_in_world(a_place_that_does_not_keep_what_is_written_is_refused),
		test_in_world(a_place_where_nothing_may_be_deleted_is_refused),
		test_in_world(a_secret_that_aws_does_not_give_is_named_with_its_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
