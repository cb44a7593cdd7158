/*
 * How the node agent gets into a container on a machine that runs nothing else of stoker. Four
 * ways:
 *
 *   BAKED    the image holds it in a folder (batch.agent)
 *   HELPER   a container that runs first, of an image that holds the agent
 *            (batch.helper_image), copies it to a volume that both mount
 *   LINK     the image's own curl, python3 or aws fetches one archive of it by a presigned
 *            URL, checks its SHA-256 and unpacks it (agent_delivery.sh). If that fails for now
 *            (the link has expired, the network is down) it exits with 75, EX_TEMPFAIL of
 *            sysexits.h, which makes the driver try again
 *   CHANNEL  SageMaker copies it from the workspace as an input channel
 *
 * In each case the shell script `start` of the agent's folder then starts it. The command of the
 * container is the same for every job of a plan and holds no secret, so that it may stand in a job
 * definition. Values that differ are environment, which belongs in the submission alone: the link
 * holds a signature, and anybody with the link can fetch the agent until it expires. AWS Batch
 * takes a submission of 30 KiB but passes the overrides on to ECS, which takes 8,192 characters of
 * them ("Container Overrides length must be at most 8192"): for this reason the script is not part
 * of the overrides.
 *
 * The image's own entry point stays in place: a job definition of AWS Batch cannot replace it, and
 * the so-called command is its arguments. Most entry points run them (exec "$@"); that of AWS's
 * images for training and of Neuron's, start_with_right_hostname.sh, joins them and has a shell
 * read them (eval "$@"). The scripts work with both. An image whose entry point is a program with
 * arguments of its own can be used neither for a job nor for the helper.
 *
 * engine/delivery: how the node agent and its order reach a container: baked into the image, by a
 * helper container, a link or an input channel. Nothing about the job is decided here.
 */
#ifndef STK_ENGINE_DELIVERY_AGENT_DELIVERY_H
#define STK_ENGINE_DELIVERY_AGENT_DELIVERY_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/text/js.h"
#include "jobs/engine/engine.h"

/* Place of the agent in a container. */
#define AGENT_DELIVERY_VOLUME       "stoker"
#define AGENT_DELIVERY_VOLUME_PATH  "/opt/stoker-agent"
#define AGENT_DELIVERY_HELPER_NAME  "stoker-agent"
#define AGENT_DELIVERY_CHANNEL_NAME "stoker"
#define AGENT_DELIVERY_CHANNEL_PATH "/opt/ml/input/data/" AGENT_DELIVERY_CHANNEL_NAME

/* Names in the agent's environment: the URL of its order; the link and its companions are removed
 * before the agent starts. */
#define AGENT_DELIVERY_ORDER       "STOKER_ORDER"
#define AGENT_DELIVERY_LINK_URL    "STOKER_LINK"
#define AGENT_DELIVERY_LINK_ENDS   "STOKER_LINK_ENDS"
#define AGENT_DELIVERY_LINK_SHA256 "STOKER_LINK_SHA256"
#define AGENT_DELIVERY_LINK_FROM   "STOKER_LINK_FROM"

/* Longest life of a link that S3 allows; it ends earlier with the credentials that made it. */
#define AGENT_DELIVERY_LINK_SECONDS INT64_C(604800)

enum agent_delivery_way {
	AGENT_DELIVERY_NONE,
	AGENT_DELIVERY_BAKED,
	AGENT_DELIVERY_HELPER,
	AGENT_DELIVERY_LINK,
	AGENT_DELIVERY_CHANNEL
};

/* Returns the way set by the plan's engine and spec; NONE for an engine that starts agents by other
 * means, for which none of the functions below may be called. */
enum agent_delivery_way agent_delivery_way(const json_t *plan);
/* True if the agent comes in an image, and may be of another build than this stoker. */
bool agent_delivery_in_image(const json_t *plan);

/* Returns the container's whole command: a new array of texts. The agent finds its own rank
 * (ORDER_RANK_* in jobs/store/order.h). */
json_t *agent_delivery_command(const json_t *plan);

/* Members for HELPER alone: the container that runs first: {"name","image","command","essential",
 * "mountPoints"}, to which the engine adds its resources and log; and the additions to "dependsOn"
 * and "mountPoints" of the main container (which only reads), and to the task's "volumes": new
 * values. Members as ECS and Batch spell them. */
json_t *agent_delivery_helper(const json_t *plan);
json_t *agent_delivery_helper_depends(void);
json_t *agent_delivery_helper_mounts(bool is_read_only);
json_t *agent_delivery_helper_volumes(void);

/* Builds the environment of this one submission: {name: value}, a new object, to be wiped with
 * secret_json_freep() (it may hold the link). `ret_ends`: expiry of the link, ms 0 if there is
 * none; may be NULL. With LINK `job->agent_archive` is set. EXIT_REFUSED: no credentials; the
 * workspace is not on S3. EXIT_UNREACHABLE. */
int agent_delivery_env(const json_t *plan, const char *workspace, const struct engine_job *job,
		       json_t **ret, struct utc *ret_ends, struct err **err);

/* Does the same as agent_delivery_env() before there is a run, with "<link>" and the like for
 * values that only a submission has. Sends nothing. */
json_t *agent_delivery_env_planned(const json_t *plan, const char *workspace,
				   const struct engine_job *job);

/* Returns "s3://bucket/prefix/agents/…/" for the channel's S3Uri. The caller frees it. */
char *agent_delivery_channel_uri(const char *workspace, const struct engine_job *job);

/* Returns a description of the delivery for a plan, one sentence without a full stop; for a link
 * with its expiry if it were made now. The caller frees it. Asks only the providers of credentials;
 * if there are none, the text says so. */
char *agent_delivery_words(const json_t *plan);

#endif
