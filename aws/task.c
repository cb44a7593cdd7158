/* Calls under way: lists, creation and end. See task.h. */
#include "aws/task.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials.h"

static struct task_list *list_of(struct aws_task *task)
{
	struct aws *aws = task->aws;

	return task->stage == READY     ? &aws->ready
	       : task->stage == RESTING ? &aws->resting
					: &aws->sent;
}

static void list_take(struct aws_task *task)
{
	struct task_list *list = list_of(task);

	*(task->prev ? &task->prev->next : &list->first) = task->next;
	*(task->next ? &task->next->prev : &list->last) = task->prev;
	list->count--;
}

static void list_add(struct aws_task *task)
{
	struct task_list *list = list_of(task);

	task->next = NULL;
	task->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = task;
	list->last = task;
	list->count++;
}

void task_stage(struct aws_task *task, enum task_stage stage)
{
	list_take(task);
	task->stage = stage;
	list_add(task);
}

struct aws_task *task_new(struct aws *aws, const struct aws_call *call, aws_done_fn done, void *arg)
{
	struct aws_task *task = mem_zero(1, sizeof *task);

	task->aws = aws;
	task->call = *call;
	task->done = done;
	task->arg = arg;
	task->stage = READY;
	list_add(task);
	return task;
}

static void release_held(struct aws_task *task)
{
	if (task->held) {
		http_reply_release(task->held);
		free(TAKE(task->held));
	}
	response_class_release(&task->held_verdict);
}

void task_free(struct aws_task *task)
{
	list_take(task);
	if (task->question)
		task_free(task->question);
	if (task->asker)
		task->asker->question = NULL;
	release_held(task);
	if (task->exchange)
		http_cancel(task->aws->http, task->exchange);
	if (task->is_made)
		signed_request_release(&task->out);
	free(task->access_key);
	free(task);
}

/* Passes the reply to the caller and frees the call. */
static void deliver(struct aws_task *task, struct aws_reply *reply)
{
	aws_done_fn done = task->done;
	void *arg = task->arg;

	reply->attempts = task->attempts;
	reply->maybe_repeated = task->maybe_repeated;
	task->aws->finished++;
	task_free(task);
	done(arg, reply);
	aws_reply_release(reply);
}

void task_fail(struct aws_task *task, struct err *err)
{
	struct aws_reply reply = { .err = err, .maybe_done = task->maybe_repeated };

	deliver(task, &reply);
}

/* Takes over the exchange's reply. */
struct http_reply *task_reply_keep(struct http_reply *reply)
{
	struct http_reply *kept = mem_alloc(sizeof *kept);

	*kept = *reply;
	reply->body = reply->headers = SB_INIT;
	return kept;
}

void task_end(struct aws_task *task, struct http_reply *http, struct response_class *verdict)
{
	struct aws_reply reply = { .status = http->failure == HTTP_OK ? http->status : 0 };
	AUTO(sb_release) struct sb id = SB_INIT_MAX(sizeof reply.request_id - 1);

	if (verdict->what == VERDICT_DONE) {
		reply.json = TAKE(verdict->json);
		if (task->access_key && !task->call.as)
			credentials_worked();
		if (task->attempts > 0)
			retry_earn(&task->aws->quota, task->paid);
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
		reply.maybe_done = verdict->effect_unknown || task->maybe_repeated;
		response_class_error(verdict, &task->call, task->out.where.host.text,
				     task->attempts, &reply.err);
		if (!verdict->unread && attempt_task_has_expired(task, &verdict->fault) &&
		    credentials_may_come())
			err_code(&reply.err, EXIT_UNREACHABLE);
	}
	reply.http = task_reply_keep(http);
	deliver(task, &reply);
}
