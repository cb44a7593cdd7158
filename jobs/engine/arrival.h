/*
 * How the agent gets into a container, where nobody of ours is on the machine. Four ways:
 *
 *   BAKED    the image holds it in a folder (batch.agent)
 *   HELPER   a container that runs before brings it: one of an image that holds it
 *            (batch.helper_image) copies it to a volume that both mount
 *   LINK     the image's own curl, python3 or aws fetches one archive of it by a presigned
 *            URL, checks its SHA-256 and unpacks it (arrival.sh)
 *   CHANNEL  SageMaker brings it from the workspace as an input channel
 *
 * Whichever it is, the shell script `start` of the agent's folder then starts it. The
 * command of the container is the same for every job of a plan and holds no secret, so
 * that it may stand in a job definition; what differs is environment, which belongs into
 * the submission alone: the link holds a signature, and whoever reads it can fetch the
 * agent until it ends. AWS Batch takes a submission of 30 KiB but hands what it overrides
 * on to ECS, which takes 8,192 characters of it ("Container Overrides length must be at
 * most 8192"): that is why the script does not stand there.
 *
 * The image's own entry point stays where it is: a job definition of AWS Batch cannot replace
 * it, and what is called a command here are its arguments. Most run them (exec "$@"); that of
 * AWS's images for training and of Neuron's, start_with_right_hostname.sh, joins them and has
 * a shell read them (eval "$@"). The scripts bear either. An image whose entry point is a
 * program with arguments of its own can be neither a job's nor the helper's.
 */
#ifndef STK_ENGINE_ARRIVAL_H
#define STK_ENGINE_ARRIVAL_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/engine/engine.h"

/* Where a container finds it. */
#define ARRIVAL_VOLUME       "stoker"
#define ARRIVAL_VOLUME_PATH  "/opt/stoker-agent"
#define ARRIVAL_HELPER_NAME  "stoker-agent"
#define ARRIVAL_CHANNEL_NAME "stoker"
#define ARRIVAL_CHANNEL_PATH "/opt/ml/input/data/" ARRIVAL_CHANNEL_NAME

/* Of the agent's environment: the URL of its order; the link and what goes with it are
 * gone before the agent starts. */
#define ARRIVAL_ORDER       "STOKER_ORDER"
#define ARRIVAL_LINK_URL    "STOKER_LINK"
#define ARRIVAL_LINK_ENDS   "STOKER_LINK_ENDS"
#define ARRIVAL_LINK_SHA256 "STOKER_LINK_SHA256"
#define ARRIVAL_LINK_FROM   "STOKER_LINK_FROM"

/* Longest that S3 lets a link last; it dies earlier with the credentials that made it. */
#define ARRIVAL_LINK_SECONDS INT64_C(604800)

/* A container's exit status before there is an agent: EX_TEMPFAIL of sysexits.h, by which
 * it is tried again (the link has expired, the network is away). */
#define ARRIVAL_EXIT_AGAIN 75

enum arrival_way { ARRIVAL_NONE, ARRIVAL_BAKED, ARRIVAL_HELPER, ARRIVAL_LINK, ARRIVAL_CHANNEL };

/* The way that the plan's engine and spec say; NONE with an engine that starts agents by other
 * means, of which nothing below may be asked. */
enum arrival_way arrival_way(const json_t *plan);
/* It came in an image, and may be of another build than this stoker. */
bool arrival_in_image(const json_t *plan);

/* The container's whole command: a new array of texts. The agent finds its own rank
 * (ORDER_RANK_* in jobs/store/order.h). */
json_t *arrival_command(const json_t *plan);

/* The container that runs before, with HELPER: {"name","image","command","essential",
 * "mountPoints"}, to which the engine adds its resources and log; and what the main one adds
 * to its "dependsOn" and "mountPoints", and the task to its "volumes": new values. NULL with
 * any other way. Members as ECS and Batch spell them. */
json_t *arrival_helper(const json_t *plan);
json_t *arrival_helper_depends(const json_t *plan);
json_t *arrival_helper_mounts(const json_t *plan);
json_t *arrival_helper_volumes(const json_t *plan);

/* Environment of this one submission: {name: value}, a new object, to be wiped with
 * secret_json_freep() (it may hold the link). `ret_ends`: until when the link is good, ms 0
 * where there is none; may be NULL. With LINK `job->agent_archive` is set. EXIT_REFUSED: no
 * credentials; the workspace is not on S3. EXIT_UNREACHABLE. */
int arrival_env(const json_t *plan, const char *workspace, const struct engine_job *job,
		json_t **ret, struct utc *ret_ends, struct err **err);

/* The same before there is a run, with "<link>" and the like for what only a submission
 * has. Asks nobody. */
json_t *arrival_env_planned(const json_t *plan, const char *workspace,
			    const struct engine_job *job);

/* "s3://bucket/prefix/agents/…/" for the channel's S3Uri. Yours to free. */
char *arrival_channel_uri(const char *workspace, const struct engine_job *job);

/* What a plan tells of it, one sentence without a full stop; and of a link until when it would
 * be good if it were made now. Yours to free. Asks nobody but the providers of credentials;
 * without any it says so. */
char *arrival_words(const json_t *plan);

#endif
