/* Commands and environment by which the agent gets into containers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials.h"
#include "aws/credentials/secret.h"
#include "jobs/base/fs/fs.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/store/order.h"

#define PLACE        "s3://bucket/team/stoker"
#define OVERRIDE_MAX 8192 /* of ECS */

static json_t *plan_for(const char *engine, const char *field, const char *value)
{
	json_t *plan = json_pack("{s:s, s:{s:{}}}", "engine", engine, "spec", "batch");

	if (field)
		js_put_str(js_path(plan, "spec.batch"), field, value);
	return plan;
}

static const struct engine_job job = {
	.name = "stk-r1-train-1",
	.prefix = "runs/r1/train-1/",
	.agent_key = "agents/0123456789abcdef/",
};

static void the_spec_says_which_way(void **state)
{
	const struct {
		const char *engine, *field;
		enum agent_delivery_way way;
	} rows[] = {
		{ "batch", NULL, AGENT_DELIVERY_LINK },
		{ "batch", "agent", AGENT_DELIVERY_BAKED },
		{ "batch", "helper_image", AGENT_DELIVERY_HELPER },
		{ "sagemaker", "agent", AGENT_DELIVERY_CHANNEL },
		{ "local", "agent", AGENT_DELIVERY_NONE },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = plan_for(rows[i].engine, rows[i].field, "/opt/stoker");

		assert_int_equal(agent_delivery_way(plan), rows[i].way);
	}
}

static const char *word(const json_t *command, size_t i)
{
	const char *text = json_string_value(json_array_get(command, i));

	assert_non_null(text);
	return text;
}

static void a_command_names_no_job_and_no_link(void **state)
{
	json_auto_t *link = plan_for("batch", NULL, NULL);
	json_auto_t *baked = plan_for("batch", "agent", "/srv/agent");
	json_auto_t *channel = plan_for("sagemaker", NULL, NULL);
	json_auto_t *by_link = agent_delivery_command(link),
		    *by_image = agent_delivery_command(baked);
	json_auto_t *by_channel = agent_delivery_command(channel);
	AUTO(auto_free) char *text = js_line(by_link);

	(void)state;
	assert_string_equal(word(by_link, 0), "sh");
	assert_string_equal(word(by_link, 4), ORDER_RANK_BATCH);
	assert_null(strstr(word(by_link, 2), "\n#"));
	assert_null(strstr(text, "X-Amz"));
	assert_true(strlen(text) < 6000); /* of 24 KiB that a definition may have */
	assert_string_equal(word(by_image, 3), "/srv/agent");
	assert_string_equal(word(by_channel, 1), "/opt/ml/input/data/stoker/start");
	assert_string_equal(word(by_channel, 2), "-");
	assert_string_equal(word(by_channel, 3), ORDER_RANK_SAGEMAKER);
	for (size_t i = 0; i < json_array_size(by_channel); i++)
		assert_true(strlen(word(by_channel, i)) <= 256); /* of an argument there */
}

static void a_helper_shares_a_volume_with_the_job(void **state)
{
	json_auto_t *plan = plan_for("batch", "helper_image", "repo/stoker:1");
	json_auto_t *helper = agent_delivery_helper(plan),
		    *mounts = agent_delivery_helper_mounts(true);
	json_auto_t *volumes = agent_delivery_helper_volumes(),
		    *depends = agent_delivery_helper_depends();
	json_auto_t *command = agent_delivery_command(plan);

	(void)state;
	assert_string_equal(js_str(helper, "image"), "repo/stoker:1");
	assert_false(js_bool(helper, "essential", true));
	assert_string_equal(js_str(json_array_get(depends, 0), "containerName"),
			    js_str(helper, "name"));
	assert_string_equal(js_str(json_array_get(depends, 0), "condition"), "SUCCESS");
	assert_string_equal(js_str(json_array_get(volumes, 0), "name"),
			    js_str(json_array_get(mounts, 0), "sourceVolume"));
	assert_true(js_bool(json_array_get(mounts, 0), "readOnly", false));
	assert_string_equal(js_str(json_array_get(mounts, 0), "containerPath"), word(command, 3));
}

static void the_environment_names_the_order(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(secret_json_freep) json_t *env = NULL;
	json_auto_t *plan = plan_for("batch", "agent", "/opt/stoker");
	json_auto_t *link = plan_for("batch", NULL, NULL);
	json_auto_t *planned = agent_delivery_env_planned(link, PLACE, &job);
	AUTO(auto_free) char *uri = agent_delivery_channel_uri(PLACE "/", &job);
	struct utc ends = { 1 };

	(void)state;
	assert_int_equal(agent_delivery_env(plan, PLACE "/", &job, &env, &ends, &err), 0);
	assert_string_equal(js_str(env, AGENT_DELIVERY_ORDER), PLACE "/runs/r1/train-1/order.json");
	assert_int_equal(json_object_size(env), 1);
	assert_int_equal(ends.ms, 0);
	assert_string_equal(js_str(planned, AGENT_DELIVERY_LINK_URL), "<link>");
	assert_string_equal(uri, PLACE "/agents/0123456789abcdef/");
}

static void what_cannot_be_is_refused(void **state)
{
	AUTO(err_freep) struct err *none = NULL, *odd = NULL;
	AUTO(secret_json_freep) json_t *env = NULL;
	json_auto_t *plan = plan_for("batch", NULL, NULL);
	struct engine_job bad = job;

	(void)state;
	assert_int_equal(agent_delivery_env(plan, "/srv/work", &job, &env, NULL, &none), -1);
	assert_int_equal(none->code, EXIT_REFUSED);
	bad.agent_archive = "agents/0123.tar.gz";
	assert_int_equal(agent_delivery_env(plan, PLACE, &bad, &env, NULL, &odd), -1);
	assert_int_equal(odd->code, EXIT_DEFECT);
	assert_null(env);
}

static void people_are_told_when_a_link_ends(void **state)
{
	json_auto_t *plan = plan_for("batch", NULL, NULL);
	json_auto_t *baked = plan_for("batch", "agent", "/opt/stoker");
	AUTO(auto_free) char *there = agent_delivery_words(baked);
	AUTO(auto_free) char *lasting = NULL;
	AUTO(auto_free) char *passing = NULL;

	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	unsetenv("AWS_CREDENTIAL_EXPIRATION");
	credentials_forget();
	lasting = agent_delivery_words(plan);
	setenv("AWS_CREDENTIAL_EXPIRATION", "2199-11-22T12:00:00Z", 1);
	credentials_forget();
	assert_non_null(strstr(lasting, "7 days"));
	setenv("AWS_CREDENTIAL_EXPIRATION", "2001-11-22T12:00:00Z", 1);
	credentials_forget();
	passing = agent_delivery_words(plan);
	assert_non_null(strstr(passing, "cannot be made"));
	assert_non_null(strstr(there, "/opt/stoker"));
	credentials_forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_spec_says_which_way),
		cmocka_unit_test(a_command_names_no_job_and_no_link),
		cmocka_unit_test(a_helper_shares_a_volume_with_the_job),
		cmocka_unit_test(the_environment_names_the_order),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(people_are_told_when_a_link_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
