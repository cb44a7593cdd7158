/* Classification of an attempt's reply: see response_class.h. */
#include "aws/http/response_class.h"

#include <stdio.h>
#include <string.h>

#include "aws/http/refusal.h"

static void no_reply(const struct http_reply *reply, struct response_class *ret)
{
	ret->unread = true;
	ret->what = RESPONSE_RETRY;
	snprintf(ret->why, sizeof ret->why, "%s", reply->why);
	switch (reply->failure) {
	case HTTP_TIMEOUT:
		ret->timeout = ret->effect_unknown = true;
		break;
	case HTTP_BROKEN:
		ret->effect_unknown = true;
		break;
	case HTTP_OK:
	case HTTP_UNREACHABLE:
		break;
	case HTTP_TOO_LARGE:
	case HTTP_REFUSED:
		ret->effect_unknown = true;
		ret->what = RESPONSE_FINAL;
		break;
	case HTTP_TLS:
		ret->what = RESPONSE_FINAL;
		break;
	}
}

static void read_success(const struct aws_call *call, const struct http_reply *reply,
			 struct response_class *ret)
{
	const struct operation_row *operation = operation_row(call->operation);
	enum aws_protocol protocol = operation_service_row(operation->service)->protocol;
	AUTO(err_freep) struct err *err = NULL;

	ret->what = RESPONSE_DONE;
	if (call->sink || (protocol != PROTOCOL_JSON && protocol != PROTOCOL_REST_JSON) ||
	    !reply->body.len)
		return;
	if (js_parse(reply->body.text, reply->body.len, "the reply", &ret->json, &err) < 0) {
		ret->what = RESPONSE_RETRY;
		ret->unread = ret->effect_unknown = true;
		snprintf(ret->why, sizeof ret->why, "%s", err->message);
	}
}

void response_class_of(const struct aws_call *call, const struct http_reply *reply,
		       struct response_class *ret)
{
	const struct operation_row *operation = operation_row(call->operation);
	enum fault_kind kind;

	memset(ret, 0, sizeof *ret);
	if (reply->failure != HTTP_OK) {
		no_reply(reply, ret);
		return;
	}
	if (reply->status >= 200 && reply->status < 300) {
		if (!(operation->flags & OPERATION_ERROR_200) ||
		    !fault_in_disguise(reply, &ret->fault)) {
			read_success(call, reply, ret);
			return;
		}
	} else {
		fault_read(operation_service_row(operation->service)->protocol, reply, &ret->fault);
	}
	kind = fault_kind(&ret->fault);
	ret->what =
		kind == FAULT_TRANSIENT || kind == FAULT_THROTTLE ? RESPONSE_RETRY : RESPONSE_FINAL;
	/* A throttled request was not carried out; for a gateway's error that is unknown. */
	ret->effect_unknown = kind == FAULT_TRANSIENT;
}

void response_class_release(struct response_class *ret)
{
	json_decref(ret->json);
	ret->json = NULL;
}

/* Appends "s3 PutObject of 's3://bucket/key'". */
static void name_call(const struct aws_call *call, struct sb *ret)
{
	const struct operation_row *operation = operation_row(call->operation);
	const struct service_row *service = operation_service_row(operation->service);

	sb_addf(ret, "%s %s", service->signing[0] ? service->signing : "sso", operation->name);
	if (call->bucket && call->key)
		sb_addf(ret, " of 's3://%s/%s'", call->bucket, call->key);
	else if (call->bucket)
		sb_addf(ret, " of 's3://%s'", call->bucket);
}

static int no_reply_error(const struct response_class *response, const char *name, const char *host,
			  int attempts, struct err **err)
{
	enum exit_code code = response->what == RESPONSE_FINAL ? EXIT_REFUSED : EXIT_UNREACHABLE;

	if (attempts > 1)
		err_set(err, code, "%s: no usable reply from '%s' in %d attempts: %s", name, host,
			attempts, response->why);
	else
		err_set(err, code, "%s: no usable reply from '%s': %s", name, host, response->why);
	if (response->what == RESPONSE_FINAL && strstr(response->why, "certificate"))
		return err_hint(err, "name the certificates to trust in AWS_CA_BUNDLE, or correct "
				     "the endpoint");
	return err_hint(err, "check the network, HTTPS_PROXY and the endpoint, then try again");
}

/* Names the statement that is missing, if one is. The reply to a HEAD has neither code nor message.
 */
static int hint_at_cure(const struct fault *fault, const struct response_call *of, struct err **err)
{
	bool bare = fault->status == 403 && strcmp(fault->code, "403") == 0;
	AUTO(auto_free) char *statement = NULL;

	if (bare || fault_kind(fault) == FAULT_DENIED)
		statement = policy_cure(of->call, &of->place, fault->message, bare);
	if (!statement)
		return err_hint(err, "%s", fault_hint(fault));
	return err_hint(err,
			"let an administrator allow this for the identity in use%s, and check "
			"bucket and key policies: %s",
			bare ? ", if this machine's clock is right" : "", statement);
}

int response_class_error(const struct response_class *response, const struct response_call *of,
			 struct err **err)
{
	const struct fault *fault = &response->fault;
	AUTO(sb_release) struct sb name = SB_INIT_MAX(4096), tail = SB_INIT_MAX(1024);

	name_call(of->call, &name);
	if (response->unread)
		return no_reply_error(response, name.text, of->host, of->attempts, err);
	sb_addf(&tail, "HTTP %ld", fault->status);
	if (fault->request_id[0])
		sb_addf(&tail, ", request %s", fault->request_id);
	if (fault->extended_id[0])
		sb_addf(&tail, ", %s", fault->extended_id);
	err_set(err, response->what == RESPONSE_RETRY ? EXIT_UNREACHABLE : EXIT_REFUSED,
		"%s was refused%s: %s%s%s (%s)", name.text,
		of->attempts > 1 ? " again and again" : "", fault->code,
		fault->message[0] ? ": " : "", fault->message, tail.text);
	refusal_keep(*err, fault);
	return hint_at_cure(fault, of, err);
}
