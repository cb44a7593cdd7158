/* Calls under way: lists, creation and end. See request.h. */
#include "aws/request.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials.h"

static struct aws_request_list *list_of(struct aws_request *request)
{
	struct aws *aws = request->aws;

	return request->stage == READY     ? &aws->ready
	       : request->stage == WAITING ? &aws->waiting
					   : &aws->sent;
}

static void list_take(struct aws_request *request)
{
	struct aws_request_list *list = list_of(request);

	*(request->prev ? &request->prev->next : &list->first) = request->next;
	*(request->next ? &request->next->prev : &list->last) = request->prev;
	list->count--;
}

static void list_add(struct aws_request *request)
{
	struct aws_request_list *list = list_of(request);

	request->next = NULL;
	request->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = request;
	list->last = request;
	list->count++;
}

void aws_request_set_stage(struct aws_request *request, enum aws_request_stage stage)
{
	list_take(request);
	request->stage = stage;
	list_add(request);
}

struct aws_request *aws_request_new(struct aws *aws, const struct aws_call *call, aws_done_fn done,
				    void *arg)
{
	struct aws_request *request = mem_zero(1, sizeof *request);

	request->aws = aws;
	request->call = *call;
	request->done = done;
	request->arg = arg;
	request->stage = READY;
	list_add(request);
	return request;
}

static void release_held(struct aws_request *request)
{
	if (request->held) {
		http_reply_release(request->held);
		free(TAKE(request->held));
	}
	response_class_release(&request->held_verdict);
}

void aws_request_free(struct aws_request *request)
{
	list_take(request);
	if (request->question)
		aws_request_free(request->question);
	if (request->asker)
		request->asker->question = NULL;
	release_held(request);
	if (request->transfer)
		http_cancel(request->aws->http, request->transfer);
	if (request->is_made)
		signed_request_release(&request->out);
	free(request->access_key);
	free(request);
}

/* Passes the reply to the caller and frees the call. */
static void deliver(struct aws_request *request, struct aws_reply *reply)
{
	aws_done_fn done = request->done;
	void *arg = request->arg;

	reply->attempts = request->attempts;
	reply->maybe_repeated = request->maybe_repeated;
	request->aws->finished++;
	aws_request_free(request);
	done(arg, reply);
	aws_reply_release(reply);
}

void aws_request_fail(struct aws_request *request, struct err *err)
{
	struct aws_reply reply = { .err = err, .maybe_done = request->maybe_repeated };

	deliver(request, &reply);
}

/* Takes over the transfer's reply. */
struct http_reply *aws_request_keep_reply(struct http_reply *reply)
{
	struct http_reply *kept = mem_alloc(sizeof *kept);

	*kept = *reply;
	reply->body = reply->headers = SB_INIT;
	return kept;
}

void aws_request_end(struct aws_request *request, struct http_reply *http,
		     struct response_class *verdict)
{
	struct aws_reply reply = { .status = http->failure == HTTP_OK ? http->status : 0 };
	AUTO(sb_release) struct sb id = SB_INIT_MAX(sizeof reply.request_id - 1);

	if (verdict->what == VERDICT_DONE) {
		reply.json = TAKE(verdict->json);
		if (request->access_key && !request->call.as)
			credentials_worked();
		if (request->attempts > 0)
			retry_earn(&request->aws->quota, request->paid);
		if (http_header(http, "x-amz-request-id", &id) ||
		    http_header(http, "x-amzn-requestid", &id))
			snprintf(reply.request_id, sizeof reply.request_id, "%s", id.text);
	} else {
		if (!verdict->unread) {
			memcpy(reply.code, verdict->fault.code, sizeof reply.code);
			memcpy(reply.request_id, verdict->fault.request_id,
			       sizeof reply.request_id);
			reply.throttled = fault_kind(&verdict->fault) == FAULT_THROTTLE;
		}
		reply.maybe_done = verdict->effect_unknown || request->maybe_repeated;
		response_class_error(verdict, &request->call, request->out.where.host.text,
				     request->attempts, &reply.err);
		if (!verdict->unread && attempt_has_expired(request, &verdict->fault) &&
		    credentials_may_come())
			err_code(&reply.err, EXIT_UNREACHABLE);
	}
	reply.http = aws_request_keep_reply(http);
	deliver(request, &reply);
}
