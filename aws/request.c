/* Calls under way: lists, creation and end; their replies and keys. See request.h. */
#include "aws/request.h"

#include <stdlib.h>

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

struct aws_request *aws_request_start(struct aws *aws, const struct aws_call *call,
				      aws_done_fn done, void *arg)
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
	response_class_release(&request->held_response);
}

void aws_request_cancel(struct aws_request *request)
{
	list_take(request);
	if (request->question)
		aws_request_cancel(request->question);
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

bool aws_reply_ok(const struct aws_reply *reply)
{
	return !reply->err;
}

void aws_reply_release(struct aws_reply *reply)
{
	if (reply->http) {
		http_reply_release(reply->http);
		free(reply->http);
	}
	json_decref(reply->json);
	err_free(reply->err);
	*reply = (struct aws_reply){ 0 };
}

void aws_request_deliver(struct aws_request *request, struct aws_reply *reply)
{
	aws_done_fn done = request->done;
	void *arg = request->arg;

	reply->attempts = request->attempts;
	reply->maybe_repeated = request->maybe_repeated;
	request->aws->finished++;
	aws_request_cancel(request);
	done(arg, reply);
	aws_reply_release(reply);
}

void aws_request_fail(struct aws_request *request, struct err *err)
{
	struct aws_reply reply = { .err = err, .maybe_done = request->maybe_repeated };

	aws_request_deliver(request, &reply);
}

/* Takes over the transfer's reply. */
struct http_reply *aws_request_keep_reply(struct http_reply *reply)
{
	struct http_reply *kept = mem_alloc(sizeof *kept);

	*kept = *reply;
	reply->body = reply->headers = SB_INIT;
	return kept;
}

int aws_request_keys(struct aws *aws, struct credentials *ret, struct err **err)
{
	if (!aws->credentials)
		return err_set(err, EXIT_DEFECT,
			       "a provider of credentials made a call without keys");
	return aws->credentials->get(ret, err);
}
