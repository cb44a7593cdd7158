/* Rights of operations, the statements made from them, and the one that cures a refusal. */
#include "aws/policy/policy.h"

#include "aws/auth/endpoint.h"
#include "aws/aws.h"
#include "tests/unit/base/unit.h"

#define USER "User: arn:aws:iam::123456789012:user/u is not authorized to perform: "
#define ROLE "arn:aws:iam::123456789012:role/job"

static const struct policy_place nowhere = { "eu-west-1", NULL, NULL };

/* Returns the policy without its Sid, which is a digest. */
static json_t *cure(const struct aws_call *call, const struct policy_place *place,
		    const char *message, bool bare)
{
	AUTO(auto_free) char *line = policy_cure(call, place, message, bare);
	AUTO(err_freep) struct err *err = NULL;
	json_t *ret = NULL;

	assert_non_null(line);
	assert_null(strchr(line, '\n'));
	assert_int_equal(js_parse(line, strlen(line), "it", &ret, &err), 0);
	assert_true(json_string_length(json_object_get(ret, "Sid")) > 6);
	assert_int_equal(json_object_del(ret, "Sid"), 0);
	return ret;
}

static void assert_cure(const struct aws_call *call, const char *message, const char *want)
{
	json_auto_t *is = cure(call, &nowhere, message, false);
	AUTO(auto_free) char *line = js_line(is);

	assert_string_equal(line, want);
}

static void every_operation_has_its_rights(void **state)
{
	(void)state;
	for (int op = 0; op < AWS_OPERATION_COUNT; op++) {
		const struct operation_row *row = operation_row((enum aws_operation)op);
		struct policy_right rights[POLICY_RIGHTS_MAX];
		size_t count = policy_rights((enum aws_operation)op, rights);
		struct policy_names names = { 0 };

		assert_int_equal(count == 0, row->resource == POLICY_NONE);
		assert_int_equal(count == 0, row->action[0] == '\0');
		for (size_t i = 0; i < count; i++) {
			json_auto_t *made = policy_statement("a", &rights[i], 1, &names);
			const char *resource = js_str(made, "Resource");

			assert_non_null(strchr(rights[i].action, ':'));
			assert_null(strchr(rights[i].action, '*'));
			assert_true(js_is(made, "Action", rights[i].action));
			assert_true(js_is(made, "Sid", "a"));
			assert_null(strchr(resource, '{'));
			if (rights[i].resource != POLICY_ANY)
				assert_memory_equal(resource, "arn:*:", 6);
		}
	}
}

static void a_request_of_s3_names_bucket_and_key(void **state)
{
	struct aws_call call = AWS_CALL_INIT(PUT_OBJECT);
	const struct sigv4_pair match = { "if-match", "\"1\"" };
	const struct sigv4_pair source = { "x-amz-copy-source", "/other/a%20b" };

	(void)state;
	call.bucket = "b";
	call.key = "k/*$?";
	assert_cure(&call, "Access Denied",
		    "{\"Effect\":\"Allow\",\"Action\":\"s3:PutObject\",\"Resource\":"
		    "\"arn:aws:s3:::b/k/${*}${$}${?}\"}");
	call.key = "k";
	call.headers = &match;
	call.header_count = 1;
	assert_cure(&call, "",
		    "{\"Effect\":\"Allow\",\"Action\":[\"s3:PutObject\",\"s3:GetObject\"],"
		    "\"Resource\":\"arn:aws:s3:::b/k\"}");
	assert_cure(&call,
		    USER "s3:GetObject on resource: \"arn:aws:s3:::b/k\" because no "
			 "identity-based policy allows the s3:GetObject action",
		    "{\"Effect\":\"Allow\",\"Action\":\"s3:GetObject\",\"Resource\":"
		    "\"arn:aws:s3:::b/k\"}");
	call.operation = AWS_COPY_OBJECT;
	call.headers = &source;
	assert_cure(&call, "",
		    "{\"Effect\":\"Allow\",\"Action\":[\"s3:PutObject\",\"s3:GetObject\"],"
		    "\"Resource\":[\"arn:aws:s3:::b/k\",\"arn:aws:s3:::other/a b\"]}");
	assert_cure(&call,
		    USER "kms:Decrypt on resource: arn:aws:kms:eu-west-1:123456789012:key/1-2 "
			 "because",
		    "{\"Effect\":\"Allow\",\"Action\":\"kms:Decrypt\",\"Resource\":"
		    "\"arn:aws:kms:eu-west-1:123456789012:key/1-2\"}");
}

static void a_listing_is_allowed_for_its_prefix(void **state)
{
	struct aws_call call = AWS_CALL_INIT(LIST_OBJECTS);
	const struct sigv4_pair params[] = { { "list-type", "2" }, { "prefix", "a/b*" } };

	(void)state;
	call.bucket = "b";
	call.params = params;
	call.param_count = 2;
	assert_cure(&call, "",
		    "{\"Effect\":\"Allow\",\"Action\":\"s3:ListBucket\",\"Resource\":"
		    "\"arn:aws:s3:::b\",\"Condition\":{\"StringLike\":{\"s3:prefix\":"
		    "\"a/b${*}*\"}}}");
	call.param_count = 1;
	assert_cure(&call, "",
		    "{\"Effect\":\"Allow\",\"Action\":\"s3:ListBucket\",\"Resource\":"
		    "\"arn:aws:s3:::b\"}");
}

/* The reply to a HEAD tells nothing: the object may be missing. */
static void a_bare_refusal_may_be_of_a_missing_object(void **state)
{
	struct aws_call call = AWS_CALL_INIT(HEAD_OBJECT);
	const struct policy_place place = { "cn-north-1", "b", "a/" };
	const struct policy_place other = { "us-gov-west-1", "other", "a/" };
	json_auto_t *is = NULL, *elsewhere = NULL;
	AUTO(auto_free) char *line = NULL, *far = NULL;

	(void)state;
	call.bucket = "b";
	call.key = "a/k";
	is = cure(&call, &place, "", true);
	line = js_line(is);
	assert_string_equal(line,
			    "{\"Effect\":\"Allow\",\"Action\":[\"s3:GetObject\",\"s3:ListBucket\"],"
			    "\"Resource\":[\"arn:aws-cn:s3:::b/a/*\",\"arn:aws-cn:s3:::b\"]}");
	elsewhere = cure(&call, &other, "", false);
	far = js_line(elsewhere);
	assert_string_equal(far, "{\"Effect\":\"Allow\",\"Action\":\"s3:GetObject\",\"Resource\":"
				 "\"arn:aws-us-gov:s3:::b/a/k\"}");
}

static void a_job_of_batch_needs_queue_definition_tags_and_roles(void **state)
{
	struct aws_call call = AWS_CALL_INIT(SUBMIT_JOB);
	json_auto_t *submit = json_pack("{s:s, s:s, s:{s:s}}", "jobQueue", "q", "jobDefinition",
					"stk-0123:4", "tags", "a", "b");
	json_auto_t *define =
		json_pack("{s:s, s:{s:s, s:s}}", "jobDefinitionName", "stk-0123",
			  "containerProperties", "jobRoleArn", ROLE, "executionRoleArn", ROLE "2");

	(void)state;
	call.json = submit;
	assert_cure(&call, USER "batch:SubmitJob on resource: arn:aws:batch:x",
		    "{\"Effect\":\"Allow\",\"Action\":\"batch:SubmitJob\",\"Resource\":["
		    "\"arn:aws:batch:eu-west-1:123456789012:job-queue/q\","
		    "\"arn:aws:batch:eu-west-1:123456789012:job-definition/stk-*\"]}");
	assert_cure(&call, USER "batch:TagResource on resource: arn:aws:batch:x",
		    "{\"Effect\":\"Allow\",\"Action\":\"batch:TagResource\",\"Resource\":"
		    "\"arn:aws:batch:eu-west-1:123456789012:job/*\"}");
	call.operation = AWS_REGISTER_JOB_DEFINITION;
	call.json = define;
	assert_cure(&call, "",
		    "{\"Effect\":\"Allow\",\"Action\":\"batch:RegisterJobDefinition\","
		    "\"Resource\":\"arn:aws:batch:eu-west-1:*:job-definition/stk-*\"}");
	assert_cure(&call, USER "iam:PassRole on resource: " ROLE "2 because",
		    "{\"Effect\":\"Allow\",\"Action\":\"iam:PassRole\",\"Resource\":\"" ROLE "2\","
		    "\"Condition\":{\"StringEquals\":{\"iam:PassedToService\":"
		    "\"ecs-tasks.amazonaws.com\"}}}");
	assert_cure(&call, USER "iam:PassRole",
		    "{\"Effect\":\"Allow\",\"Action\":\"iam:PassRole\",\"Resource\":[\"" ROLE
		    "\",\"" ROLE "2\"],\"Condition\":{\"StringEquals\":{\"iam:PassedToService\":"
		    "\"ecs-tasks.amazonaws.com\"}}}");
}

static void names_of_other_services_are_read_from_their_requests(void **state)
{
	static const struct {
		enum aws_operation operation;
		const char *body, *want;
	} rows[] = {
		{ AWS_CREATE_TRAINING_JOB,
		  "{\"TrainingJobName\":\"stk-r-train-1\",\"RoleArn\":\"" ROLE "\",\"Tags\":["
		  "{\"Key\":\"a\",\"Value\":\"b\"}]}",
		  "{\"Effect\":\"Allow\",\"Action\":[\"sagemaker:CreateTrainingJob\","
		  "\"sagemaker:AddTags\"],\"Resource\":"
		  "\"arn:aws:sagemaker:eu-west-1:*:training-job/stk-*\"}" },
		{ AWS_TERMINATE_JOB, "{\"jobId\":\"1-2\"}",
		  "{\"Effect\":\"Allow\",\"Action\":\"batch:TerminateJob\",\"Resource\":"
		  "\"arn:aws:batch:eu-west-1:*:job/*\"}" },
		{ AWS_DESCRIBE_JOBS, "{\"jobs\":[\"1-2\"]}",
		  "{\"Effect\":\"Allow\",\"Action\":\"batch:DescribeJobs\",\"Resource\":\"*\"}" },
		{ AWS_FILTER_LOG_EVENTS, "{\"logGroupName\":\"/aws/batch/job\"}",
		  "{\"Effect\":\"Allow\",\"Action\":\"logs:FilterLogEvents\",\"Resource\":"
		  "\"arn:aws:logs:eu-west-1:*:log-group:/aws/batch/job:*\"}" },
		{ AWS_GET_SECRET_VALUE, "{\"SecretId\":\"prod/key\"}",
		  "{\"Effect\":\"Allow\",\"Action\":\"secretsmanager:GetSecretValue\","
		  "\"Resource\":\"arn:aws:secretsmanager:eu-west-1:*:secret:prod/key-??????\"}" },
		{ AWS_GET_SECRET_VALUE,
		  "{\"SecretId\":\"arn:aws:secretsmanager:eu-west-1:1:secret:k-abcdef\"}",
		  "{\"Effect\":\"Allow\",\"Action\":\"secretsmanager:GetSecretValue\","
		  "\"Resource\":\"arn:aws:secretsmanager:eu-west-1:1:secret:k-abcdef\"}" },
		{ AWS_GET_PARAMETER, "{\"Name\":\"/a/b\"}",
		  "{\"Effect\":\"Allow\",\"Action\":\"ssm:GetParameter\",\"Resource\":"
		  "\"arn:aws:ssm:eu-west-1:*:parameter/a/b\"}" },
		{ AWS_BATCH_GET_IMAGE, "{\"registryId\":\"12\",\"repositoryName\":\"team/x\"}",
		  "{\"Effect\":\"Allow\",\"Action\":\"ecr:BatchGetImage\",\"Resource\":"
		  "\"arn:aws:ecr:eu-west-1:12:repository/team/x\"}" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct aws_call call = { .operation = rows[i].operation, .body_fd = -1 };
		json_auto_t *body = json_loads(rows[i].body, 0, NULL);

		assert_non_null(body);
		call.json = body;
		assert_cure(&call, "", rows[i].want);
	}
}

static void a_schedule_is_named_by_its_path(void **state)
{
	struct aws_call call = AWS_CALL_INIT(CREATE_SCHEDULE);
	json_auto_t *body = json_pack("{s:{s:s}}", "Target", "RoleArn", ROLE);

	(void)state;
	call.key = "nightly";
	call.json = body;
	assert_cure(&call, "",
		    "{\"Effect\":\"Allow\",\"Action\":\"scheduler:CreateSchedule\",\"Resource\":"
		    "\"arn:aws:scheduler:eu-west-1:*:schedule/default/nightly\"}");
	assert_cure(&call, USER "iam:PassRole on resource: " ROLE,
		    "{\"Effect\":\"Allow\",\"Action\":\"iam:PassRole\",\"Resource\":\"" ROLE "\","
		    "\"Condition\":{\"StringEquals\":{\"iam:PassedToService\":"
		    "\"scheduler.amazonaws.com\"}}}");
}

/* No statement cures it; and what a message says is believed only if the request needs it. */
static void what_a_service_says_is_no_authority(void **state)
{
	struct aws_call call = AWS_CALL_INIT(GET_CALLER_IDENTITY);

	(void)state;
	assert_null(policy_cure(&call, &nowhere, "", false));
	call.operation = AWS_DELETE_OBJECT;
	call.bucket = "b";
	call.key = "k";
	assert_null(policy_cure(&call, &nowhere,
				USER "s3:DeleteObject on resource: \"arn:aws:s3:::b/k\" with an "
				     "explicit deny in a service control policy",
				false));
	assert_cure(&call, USER "iam:CreateUser on resource: *",
		    "{\"Effect\":\"Allow\",\"Action\":\"s3:DeleteObject\",\"Resource\":"
		    "\"arn:aws:s3:::b/k\"}");
	assert_cure(&call, USER "s3:* on resource: arn:aws:s3:::*",
		    "{\"Effect\":\"Allow\",\"Action\":\"s3:DeleteObject\",\"Resource\":"
		    "\"arn:aws:s3:::b/k\"}");
}

static void statements_of_other_contents_have_other_sids(void **state)
{
	struct aws_call call = AWS_CALL_INIT(DELETE_OBJECT);
	AUTO(auto_free) char *one = NULL, *again = NULL, *other = NULL;

	(void)state;
	call.bucket = "b";
	call.key = "k";
	one = policy_cure(&call, &nowhere, "", false);
	again = policy_cure(&call, &nowhere, "Access Denied", false);
	call.key = "l";
	other = policy_cure(&call, &nowhere, "", false);
	assert_memory_equal(one, "{\"Sid\":\"S3DeleteObject", 22);
	assert_string_equal(one, again);
	assert_string_not_equal(one, other);
	assert_memory_not_equal(one, other, 28);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_has_its_rights),
		cmocka_unit_test(a_request_of_s3_names_bucket_and_key),
		cmocka_unit_test(a_listing_is_allowed_for_its_prefix),
		cmocka_unit_test(a_bare_refusal_may_be_of_a_missing_object),
		cmocka_unit_test(a_job_of_batch_needs_queue_definition_tags_and_roles),
		cmocka_unit_test(names_of_other_services_are_read_from_their_requests),
		cmocka_unit_test(a_schedule_is_named_by_its_path),
		cmocka_unit_test(what_a_service_says_is_no_authority),
		cmocka_unit_test(statements_of_other_contents_have_other_sids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
