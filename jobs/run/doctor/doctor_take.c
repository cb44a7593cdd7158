/* A role, tried by taking it on: see doctor_role.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials.h"
#include "aws/credentials/sts.h"
#include "aws/s3/s3.h"
#include "jobs/run/doctor/doctor_role.h"
#include "jobs/run/plan/preflight.h"

/* Lists one key of a place. */
static int try_place(const struct sigv4_identity *as, const char *url, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(auto_free) char *bucket = NULL, *prefix = NULL, *below = NULL;
	struct aws_call call = AWS_CALL_INIT(LIST_OBJECTS);
	struct sigv4_pair params[] = { { "prefix", NULL }, { "max-keys", "1" } };

	if (s3_parse_url(url, &bucket, &prefix, err) < 0 || aws_open(&aws, err) < 0)
		return -1;
	below = mem_format("%s%s", prefix, prefix[0] ? "/" : ""); /* as policies have it */
	params[0].value = below;
	aws_set_place(aws, bucket, below);
	call.as = as;
	call.bucket = bucket;
	call.params = params;
	call.param_count = STK_LENGTH(params);
	return aws_perform(aws, &call, &reply, err);
}

static int try_places(const struct doctor_talk *talk, const struct credentials *keys,
		      size_t *ret_count, struct err **err)
{
	const struct sigv4_identity as = { keys->access_key, keys->secret_key, keys->token };
	struct preflight_place places[PREFLIGHT_PLACES];

	preflight_find(talk->plan, NULL, places);
	for (size_t i = 0; i < PREFLIGHT_PLACES; i++) {
		if (!places[i].url || places[i].url[0] == '/')
			continue;
		if (try_place(&as, places[i].url, err) < 0)
			return err_wrap(err, "with the role the %s cannot be listed",
					places[i].what);
		++*ret_count;
	}
	return 0;
}

static int take(const struct doctor_talk *talk, struct credentials *ret, struct err **err)
{
	AUTO(credentials_release) struct credentials own = { 0 };
	const struct sts_role role = { .arn = talk->on };
	struct sigv4_identity as;

	if (credentials_get(&own, err) < 0)
		return -1;
	as = (struct sigv4_identity){ own.access_key, own.secret_key, own.token };
	return sts_assume_role(&role, &as, ret, err) < 0 ? -1 : 0;
}

/* Whoever may look gets what to look for. */
static char *cure_of(const json_t *policy)
{
	AUTO(auto_free) char *line = js_line(policy);

	return mem_format("ask for the right " DOCTOR_LOOK_SIMULATE
			  ", or let an administrator compare the role's policies with: %s",
			  line);
}

void doctor_take(struct doctor_talk *talk, const json_t *policy, const struct err *why)
{
	/* Now, as the refusal is the newest only until the next request. */
	json_t *finding = doctor_finding_of(talk, why, DOCTOR_LOOK_SIMULATE);
	AUTO(credentials_release) struct credentials keys = { 0 };
	AUTO(err_freep) struct err *not_taken = NULL, *denied = NULL;
	AUTO(auto_free) char *cure = cure_of(policy), *seen = NULL;
	size_t count = 0;

	if (!js_is(finding, "state", "unknown") || talk->silent)
		return;
	js_put_str(finding, "cure", cure);
	if (take(talk, &keys, &not_taken) < 0)
		return;
	if (try_places(talk, &keys, &count, &denied) < 0) {
		js_put_str(finding, "state", "fail");
		js_put_str(finding, "seen", denied->message);
		js_put_str(finding, "cure", denied->hint);
		return;
	}
	seen = mem_format(
		"taken on, as it may not be simulated, the role can list %zu places; what "
		"else it may do is not tried",
		count);
	js_put_str(finding, "seen", seen);
}
