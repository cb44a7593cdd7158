/* Policies that are made of a plan: which rows, things and statements. */
#include "jobs/run/rights/rights.h"

#include <string.h>

#include "tests/unit/base/unit.h"

static bool none(const json_t *plan, enum aws_operation operation)
{
	(void)plan;
	(void)operation;
	return false;
}

static bool identity_and_queues(const json_t *plan, enum aws_operation operation)
{
	(void)plan;
	return operation == AWS_GET_CALLER_IDENTITY || operation == AWS_DESCRIBE_JOB_QUEUES ||
	       operation == AWS_HEAD_BUCKET;
}

/* Jansson reads no quotes of this kind: they keep the texts legible. */
static json_t *plan_of(const char *text)
{
	AUTO(auto_free) char *plan = mem_copy(text);
	json_t *ret;

	for (char *at = plan; *at; at++)
		if (*at == '\'')
			*at = '"';
	ret = json_loads(plan, 0, NULL);
	assert_non_null(ret);
	return ret;
}

static json_t *policy(const char *text, enum rights_role role, const char *region)
{
	json_auto_t *plan = plan_of(text);
	AUTO(err_freep) struct err *err = NULL;
	const struct rights_where where = { .region = region, .calls = none };
	json_t *ret = NULL;

	assert_int_equal(rights_policy(plan, role, &where, &ret, &err), 0);
	assert_true(js_is(ret, "Version", "2012-10-17"));
	return ret;
}

/* The statement of this Sid in one line, without the Sid; "": there is none. */
static char *statement(const json_t *made, const char *sid)
{
	json_t *each;
	size_t i;

	json_array_foreach (json_object_get(made, "Statement"), i, each) {
		json_auto_t *bare = json_copy(each);

		if (!js_is(each, "Sid", sid))
			continue;
		json_object_del(bare, "Sid");
		json_object_del(bare, "Effect");
		return js_line(bare);
	}
	return mem_copy("");
}

static void assert_statement(const json_t *made, const char *sid, const char *want)
{
	AUTO(auto_free) char *is = statement(made, sid);

	assert_string_equal(is, want);
}

#define LOCAL "{'engine':'local','name':'m5','workspace':'s3://bbb/w','spec':{}}"

static void places_are_prefixes_and_what_lies_within_has_no_statement(void **state)
{
	json_auto_t *made =
		policy("{'engine':'local','workspace':'s3://bbb/w','spec':{},"
		       "'compile':{'cache':'s3://bbb/w/cache','preload':['s3://ooo/c']},"
		       "'checkpoint':{'url':'s3://ccc'}}",
		       RIGHTS_SUBMITTER, NULL);

	(void)state;
	assert_statement(made, "ReadAndWriteBucket",
			 "{\"Action\":\"s3:ListBucket\",\"Resource\":\"arn:aws:s3:::bbb\","
			 "\"Condition\":{\"StringLikeIfExists\":{\"s3:prefix\":\"w/*\"}}}");
	assert_statement(
		made, "ReadAndWriteObject",
		"{\"Action\":[\"s3:GetObject\",\"s3:PutObject\",\"s3:AbortMultipartUpload\","
		"\"s3:ListMultipartUploadParts\",\"s3:DeleteObject\"],"
		"\"Resource\":[\"arn:aws:s3:::bbb/w/*\",\"arn:aws:s3:::ccc/*\"]}");
	/* All of a bucket has no prefix. */
	assert_statement(made, "ReadAndWriteBucket3",
			 "{\"Action\":[\"s3:ListBucket\",\"s3:ListBucketMultipartUploads\"],"
			 "\"Resource\":\"arn:aws:s3:::ccc\"}");
	assert_statement(made, "ReadObject",
			 "{\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::ooo/c/*\"}");
}

static void a_list_is_read_and_a_parent_with_its_mark(void **state)
{
	json_auto_t *made = policy("{'engine':'local','spec':{},'data':{'url':'s3://ddd/l.jsonl'},"
				   "'parent':{'from':'s3://ddd/m/base/'}}",
				   RIGHTS_SUBMITTER, NULL);

	(void)state;
	assert_statement(made, "ReadObject",
			 "{\"Action\":\"s3:GetObject\",\"Resource\":[\"arn:aws:s3:::ddd/l.jsonl\","
			 "\"arn:aws:s3:::ddd/m/base/*\",\"arn:aws:s3:::ddd/m/base\","
			 "\"arn:aws:s3:::ddd/m/marks/base.stoker.json\"]}");
}

#define SAGEMAKER                                                                                  \
	"{'engine':'sagemaker','name':'m5','workspace':'s3://bbb/w','spec':{"                      \
	"'image':'763104351884.dkr.ecr.us-west-2.amazonaws.com/p:1',"                              \
	"'sagemaker':{'role':'arn:aws:iam::123456789012:role/x','launcher':'node',"                \
	"'warm_pool':'0s','vpc':{'subnets':['s-1'],'security_groups':['sg-1']},"                   \
	"'kms':{'volume':'alias/v','output':'arn:aws:kms:us-west-2:1:key/o'}}}}"

static void a_role_of_sagemaker_pulls_writes_and_connects(void **state)
{
	json_auto_t *made = policy(SAGEMAKER, RIGHTS_JOB, "us-west-2");

	(void)state;
	assert_statement(made, "Image",
			 "{\"Action\":\"ecr:GetAuthorizationToken\",\"Resource\":\"*\"}");
	assert_statement(made, "ImageRepository",
			 "{\"Action\":[\"ecr:BatchCheckLayerAvailability\",\"ecr:BatchGetImage\","
			 "\"ecr:GetDownloadUrlForLayer\"],\"Resource\":"
			 "\"arn:aws:ecr:us-west-2:763104351884:repository/p\"}");
	assert_statement(made, "NetworkSubnet",
			 "{\"Action\":\"ec2:CreateNetworkInterface\",\"Resource\":"
			 "\"arn:aws:ec2:us-west-2:123456789012:subnet/s-1\"}");
	assert_statement(made, "VolumeKeyKey",
			 "{\"Action\":\"kms:CreateGrant\",\"Resource\":"
			 "\"arn:aws:kms:us-west-2:123456789012:key/*\",\"Condition\":"
			 "{\"ForAnyValue:StringEquals\":{\"kms:ResourceAliases\":\"alias/v\"}}}");
	assert_statement(made, "OutputKeyKey",
			 "{\"Action\":[\"kms:GenerateDataKey\",\"kms:Decrypt\",\"kms:Encrypt\"],"
			 "\"Resource\":\"arn:aws:kms:us-west-2:1:key/o\"}");
}

static void keys_of_kms_are_for_whoever_reads_and_writes(void **state)
{
	static const char plan[] =
		"{'engine':'batch','workspace':'s3://bbb/w','spec':{'aws':{'kms_keys':"
		"['1-2','alias/v','arn:aws:kms:eu-west-1:9:key/o']},"
		"'batch':{'job_role':'arn:aws:iam::123456789012:role/x'}}}";
	static const enum rights_role roles[] = { RIGHTS_SUBMITTER, RIGHTS_JOB };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(roles); i++) {
		json_auto_t *made = policy(plan, roles[i], "us-west-2");

		assert_statement(
			made, "EncryptedKey",
			"{\"Action\":[\"kms:GenerateDataKey\",\"kms:Decrypt\"],\"Resource\":"
			"[\"arn:aws:kms:us-west-2:123456789012:key/1-2\","
			"\"arn:aws:kms:eu-west-1:9:key/o\"]}");
		assert_statement(
			made, "EncryptedKey2",
			"{\"Action\":[\"kms:GenerateDataKey\",\"kms:Decrypt\"],\"Resource\":"
			"\"arn:aws:kms:us-west-2:123456789012:key/*\",\"Condition\":"
			"{\"ForAnyValue:StringEquals\":{\"kms:ResourceAliases\":\"alias/v\"}}}");
	}
}

static void a_submitter_to_sagemaker_names_jobs_and_passes_the_role(void **state)
{
	json_auto_t *made = policy(SAGEMAKER, RIGHTS_SUBMITTER, "us-west-2");

	(void)state;
	/* No tags, no warm machines. */
	assert_statement(
		made, "JobsTrainingJob",
		"{\"Action\":[\"sagemaker:CreateTrainingJob\",\"sagemaker:DescribeTrainingJob\","
		"\"sagemaker:StopTrainingJob\"],\"Resource\":"
		"\"arn:aws:sagemaker:us-west-2:123456789012:training-job/stk-*\"}");
	assert_statement(
		made, "JobsRole",
		"{\"Action\":\"iam:PassRole\",\"Resource\":\"arn:aws:iam::123456789012:role/x\","
		"\"Condition\":{\"StringEquals\":{\"iam:PassedToService\":"
		"\"sagemaker.amazonaws.com\"}}}");
	/* The key and the image's layers are the role's. */
	assert_statement(made, "VolumeKeyKey", "");
	assert_statement(made, "ImageRepository",
			 "{\"Action\":\"ecr:BatchGetImage\",\"Resource\":"
			 "\"arn:aws:ecr:us-west-2:763104351884:repository/p\"}");
}

#define BATCH                                                                                      \
	"{'engine':'batch','name':'m5','workspace':'s3://bbb/w','secrets':{'A':"                   \
	"'secretsmanager:team/a#k','B':'ssm:/x/y:3','C':'env:C'},'spec':{'image':'debian:12',"     \
	"'batch':{'job_queue':'q'},'driver':{'role':'arn:aws-cn:iam::1:role/d','job_queue':'dq',"  \
	"'scheduler_role':'arn:aws-cn:iam::1:role/s'}}}"

static void partition_and_account_are_those_of_region_and_roles(void **state)
{
	json_auto_t *job = policy(BATCH, RIGHTS_JOB, "cn-north-1");
	json_auto_t *submitter = policy(BATCH, RIGHTS_SUBMITTER, "us-gov-west-1");
	json_auto_t *scheduler = policy(BATCH, RIGHTS_SCHEDULER, NULL);

	(void)state;
	assert_statement(job, "SecretsSecret",
			 "{\"Action\":\"secretsmanager:GetSecretValue\",\"Resource\":"
			 "\"arn:aws-cn:secretsmanager:cn-north-1:1:secret:team/a-??????\"}");
	assert_statement(job, "ParametersParameter",
			 "{\"Action\":\"ssm:GetParameter\",\"Resource\":"
			 "\"arn:aws-cn:ssm:cn-north-1:1:parameter/x/y\"}");
	assert_statement(submitter, "JobsQueue",
			 "{\"Action\":\"batch:SubmitJob\",\"Resource\":"
			 "\"arn:aws-us-gov:batch:us-gov-west-1:1:job-queue/q\"}");
	assert_statement(
		submitter, "SchedulesSchedule",
		"{\"Action\":[\"scheduler:CreateSchedule\",\"scheduler:GetSchedule\","
		"\"scheduler:UpdateSchedule\",\"scheduler:DeleteSchedule\"],\"Resource\":"
		"\"arn:aws-us-gov:scheduler:us-gov-west-1:1:schedule/default/stoker-m5-*\"}");
	assert_statement(submitter, "DriverRole",
			 "{\"Action\":\"iam:PassRole\",\"Resource\":\"arn:aws-cn:iam::1:role/d\","
			 "\"Condition\":{\"StringEquals\":{\"iam:PassedToService\":"
			 "\"ecs-tasks.amazonaws.com\"}}}");
	/* The roles' partition has to do if there is no region. */
	assert_statement(scheduler, "DriverDefinition",
			 "{\"Action\":\"batch:SubmitJob\",\"Resource\":"
			 "\"arn:aws-cn:batch:*:1:job-definition/stoker-*\"}");
}

static void the_doctor_has_what_its_checks_call(void **state)
{
	json_auto_t *plan = plan_of(BATCH), *made = NULL;
	AUTO(err_freep) struct err *err = NULL;
	const struct rights_where where = { .region = "eu-west-1",
					    .state = "s3://ttt/state",
					    .calls = identity_and_queues };

	(void)state;
	assert_int_equal(rights_policy(plan, RIGHTS_DOCTOR, &where, &made, &err), 0);
	assert_int_equal(json_array_size(json_object_get(made, "Statement")), 3);
	assert_statement(made, "Look",
			 "{\"Action\":\"batch:DescribeJobQueues\",\"Resource\":\"*\"}");
	assert_statement(made, "ProbeBucket",
			 "{\"Action\":\"s3:ListBucket\",\"Resource\":\"arn:aws:s3:::ttt\","
			 "\"Condition\":{\"StringLikeIfExists\":{\"s3:prefix\":\"state/*\"}}}");
}

static void assert_missed(const char *text, const char *words, const char *want)
{
	json_auto_t *plan = plan_of(text);
	AUTO(auto_free)
	char *message = mem_format("ClientError: arn:aws:iam::1:role/x is not "
				   "authorized to perform: %s",
				   words);
	AUTO(auto_free) char *line = rights_missed(plan, message);
	json_auto_t *made = line ? json_loads(line, 0, NULL) : NULL;
	AUTO(auto_free) char *sid = NULL, *is = NULL;

	if (!want) {
		assert_null(line);
		return;
	}
	assert_non_null(made);
	sid = mem_copy(js_str(made, "Sid"));
	made = json_pack("{s:[o]}", "Statement", made);
	is = statement(made, sid);
	assert_string_equal(is, want);
}

static void what_a_service_misses_is_found_in_the_policies(void **state)
{
	(void)state;
	/* Only the action and the resources that it is about; the condition stays. */
	assert_missed(SAGEMAKER,
		      "s3:ListBucket on resource: \"arn:aws:s3:::bbb\" because no identity-based "
		      "policy allows the s3:ListBucket action",
		      "{\"Action\":\"s3:ListBucket\",\"Resource\":\"arn:aws:s3:::bbb\","
		      "\"Condition\":{\"StringLikeIfExists\":{\"s3:prefix\":\"w/*\"}}}");
	assert_missed(SAGEMAKER, "S3:putobject on resource: arn:aws:s3:::bbb/w/runs/one/x",
		      "{\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::bbb/w/*\"}");
	assert_missed(SAGEMAKER, "ecr:GetAuthorizationToken on resource: * because",
		      "{\"Action\":\"ecr:GetAuthorizationToken\",\"Resource\":\"*\"}");
	/* EC2 names no resource where an action has none. */
	assert_missed(SAGEMAKER, "ec2:DescribeSubnets because no identity-based policy allows it",
		      "{\"Action\":\"ec2:DescribeSubnets\",\"Resource\":\"*\"}");
	assert_missed(BATCH,
		      "secretsmanager:GetSecretValue on resource: "
		      "arn:aws-cn:secretsmanager:cn-north-1:1:secret:team/a-a1B2c3",
		      "{\"Action\":\"secretsmanager:GetSecretValue\",\"Resource\":"
		      "\"arn:aws-cn:secretsmanager:*:1:secret:team/a-??????\"}");
	/* Of one's own machine it is the right of whoever types. */
	assert_missed(LOCAL, "s3:DeleteObject on resource: arn:aws:s3:::bbb/w/x",
		      "{\"Action\":\"s3:DeleteObject\",\"Resource\":\"arn:aws:s3:::bbb/w/*\"}");
	/* A key that no spec names, by the message alone. */
	assert_missed(SAGEMAKER,
		      "kms:Decrypt on resource: arn:aws:kms:us-west-2:1:key/of-a-bucket because",
		      "{\"Action\":\"kms:Decrypt\",\"Resource\":"
		      "\"arn:aws:kms:us-west-2:1:key/of-a-bucket\"}");
	assert_missed(BATCH, "kms:Decrypt because no identity-based policy allows it", NULL);
	assert_missed(SAGEMAKER, "kms:ScheduleKeyDeletion on resource: arn:aws:kms:x:1:key/y",
		      NULL);
	/* What no policy gives, and what none could. */
	assert_missed(SAGEMAKER, "s3:PutObject on resource: arn:aws:s3:::bbb/other", NULL);
	assert_missed(SAGEMAKER, "s3:PutBucketPolicy on resource: arn:aws:s3:::bbb", NULL);
	assert_missed(SAGEMAKER,
		      "s3:PutObject on resource: arn:aws:s3:::bbb/w/x with an explicit deny in a "
		      "service control policy",
		      NULL);
	assert_missed(SAGEMAKER, "", NULL);
}

static void assert_refused(const char *text, enum rights_role role, const char *words)
{
	json_auto_t *plan = plan_of(text), *made = NULL;
	AUTO(err_freep) struct err *err = NULL;
	const struct rights_where where = { .calls = none };

	assert_int_equal(rights_policy(plan, role, &where, &made, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, words));
}

static void roles_that_are_not_there_are_refused(void **state)
{
	(void)state;
	assert_refused(LOCAL, RIGHTS_JOB, "no role");
	assert_refused(LOCAL, RIGHTS_EXECUTION, "no role");
	assert_refused(SAGEMAKER, RIGHTS_EXECUTION, "one role");
	assert_refused(SAGEMAKER, RIGHTS_SCHEDULER, "driver.scheduler_role");
	assert_refused("{'engine':'local','workspace':'/w','spec':{}}", RIGHTS_SUBMITTER,
		       "needs a right");
}

static void roles_are_taken_on_by_the_services_alone(void **state)
{
	json_auto_t *plan = plan_of(BATCH), *local = plan_of(LOCAL), *trust = NULL,
		    *none_made = NULL;
	AUTO(err_freep) struct err *err = NULL;
	const json_t *statement_of_job;

	(void)state;
	assert_int_equal(rights_trust(plan, &trust, &err), 0);
	assert_int_equal(json_object_size(trust), 4); /* job and execution have no name */
	statement_of_job = json_array_get(js_path(trust, "job.Statement"), 0);
	assert_true(js_is(json_object_get(statement_of_job, "Principal"), "Service",
			  "ecs-tasks.amazonaws.com"));
	assert_true(js_is(statement_of_job, "Action", "sts:AssumeRole"));
	assert_non_null(json_object_get(trust, "arn:aws-cn:iam::1:role/s"));
	assert_int_equal(rights_trust(local, &none_made, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_prefixes_and_what_lies_within_has_no_statement),
		cmocka_unit_test(a_list_is_read_and_a_parent_with_its_mark),
		cmocka_unit_test(a_role_of_sagemaker_pulls_writes_and_connects),
		cmocka_unit_test(keys_of_kms_are_for_whoever_reads_and_writes),
		cmocka_unit_test(a_submitter_to_sagemaker_names_jobs_and_passes_the_role),
		cmocka_unit_test(partition_and_account_are_those_of_region_and_roles),
		cmocka_unit_test(the_doctor_has_what_its_checks_call),
		cmocka_unit_test(what_a_service_misses_is_found_in_the_policies),
		cmocka_unit_test(roles_that_are_not_there_are_refused),
		cmocka_unit_test(roles_are_taken_on_by_the_services_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
