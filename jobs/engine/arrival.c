/* Commands and environment by which the agent gets into a container: see arrival.h. */
#include "jobs/engine/arrival.h"

#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials.h"
#include "aws/s3.h"
#include "aws/secret.h"
#include "jobs/base/fs.h"
#include "jobs/base/text.h"
#include "jobs/engine/arrival_script.h"
#include "jobs/store/order.h"

/* Of a link that is made now and used at once there is no doubt; one shorter than that could
 * end while it is used. */
#define LINK_LEAST_SECONDS 60

#define ARCHIVE_END ".tar.gz"

/* In front of each script, and of arrival.sh: see "The image's own entry point" in arrival.h.
 * There the words are read anew: "sh -c :" is nothing, and then the same words once more, as
 * they were. Of themselves they never begin with "sh". */
#define ONCE_MORE ":\n[ \"${1-}\" != sh ] || exec \"$@\"\n"

/* $0: the folder, $1: how the rank is found. */
#define BAKED_SCRIPT                                                                               \
	ONCE_MORE                                                                                  \
	"[ -f \"$0/start\" ] || { echo \"stoker: there is no whole agent in '$0': it has no "      \
	"start\" >&2; exit 127; }; exec sh \"$0/start\" - \"$1\""

/* Where an image of ours has it, and where the recipe in configs/container puts it. */
#define HELPER_SCRIPT                                                                              \
	ONCE_MORE                                                                                  \
	"for d in /opt/stoker /usr/lib/stoker/agent; do [ -f \"$d/start\" ] || continue; "         \
	"cp -R \"$d/.\" \"$0/\" && chmod -R a+rX \"$0/.\"; exit; done; echo \"stoker: there is "   \
	"no whole agent in '/opt/stoker' or '/usr/lib/stoker/agent' of the helper's image\" >&2; " \
	"exit 127"

static const char *batch_field(const json_t *plan, const char *name)
{
	return js_str(js_path(plan, "spec.batch"), name);
}

enum arrival_way arrival_way(const json_t *plan)
{
	if (js_is(plan, "engine", "sagemaker"))
		return ARRIVAL_CHANNEL;
	if (!js_is(plan, "engine", "batch"))
		return ARRIVAL_NONE;
	if (batch_field(plan, "agent"))
		return ARRIVAL_BAKED;
	return batch_field(plan, "helper_image") ? ARRIVAL_HELPER : ARRIVAL_LINK;
}

bool arrival_in_image(const json_t *plan)
{
	enum arrival_way way = arrival_way(plan);

	return way == ARRIVAL_BAKED || way == ARRIVAL_HELPER;
}

/* The script without what is for its readers. Yours to free. */
static char *travelling(const struct embedded_file *script)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	const char *line = script->text;

	while (*line) {
		size_t len = strcspn(line, "\n") + 1;

		if (line[strspn(line, "\t ")] != '#')
			sb_add(&out, line, len);
		line += len;
	}
	return sb_take(&out);
}

static char *script_named(const char *name)
{
	for (size_t i = 0; i < arrival_script_count; i++)
		if (strcmp(arrival_scripts[i].name, name) == 0)
			return travelling(&arrival_scripts[i]);
	return NULL;
}

json_t *arrival_command(const json_t *plan)
{
	AUTO(auto_free) char *script = NULL;

	switch (arrival_way(plan)) {
	case ARRIVAL_BAKED:
		return json_pack("[s,s,s,s,s]", "sh", "-c", BAKED_SCRIPT,
				 batch_field(plan, "agent"), ORDER_RANK_BATCH);
	case ARRIVAL_HELPER:
		return json_pack("[s,s,s,s,s]", "sh", "-c", BAKED_SCRIPT, ARRIVAL_VOLUME_PATH,
				 ORDER_RANK_BATCH);
	case ARRIVAL_CHANNEL:
		return json_pack("[s,s,s,s]", "sh", ARRIVAL_CHANNEL_PATH "/start", "-",
				 ORDER_RANK_SAGEMAKER);
	case ARRIVAL_LINK:
	case ARRIVAL_NONE:
		break;
	}
	script = script_named("arrival");
	return json_pack("[s,s,s,s,s]", "sh", "-c", script, "stoker", ORDER_RANK_BATCH);
}

/* ---- the container that runs before ---- */

static bool is_helped(const json_t *plan)
{
	return arrival_way(plan) == ARRIVAL_HELPER;
}

json_t *arrival_helper_mounts(const json_t *plan)
{
	return is_helped(plan) ? json_pack("[{s:s, s:s, s:b}]", "sourceVolume", ARRIVAL_VOLUME,
					   "containerPath", ARRIVAL_VOLUME_PATH, "readOnly", 1)
			       : NULL;
}

json_t *arrival_helper_volumes(const json_t *plan)
{
	return is_helped(plan) ? json_pack("[{s:s}]", "name", ARRIVAL_VOLUME) : NULL;
}

json_t *arrival_helper_depends(const json_t *plan)
{
	return is_helped(plan) ? json_pack("[{s:s, s:s}]", "containerName", ARRIVAL_HELPER_NAME,
					   "condition", "SUCCESS")
			       : NULL;
}

json_t *arrival_helper(const json_t *plan)
{
	/* The volume is root's as long as nobody has written to it. */
	return is_helped(plan)
		       ? json_pack("{s:s, s:s, s:b, s:s, s:[s,s,s,s], s:[{s:s, s:s, s:b}]}", "name",
				   ARRIVAL_HELPER_NAME, "image", batch_field(plan, "helper_image"),
				   "essential", 0, "user", "0", "command", "sh", "-c",
				   HELPER_SCRIPT, ARRIVAL_VOLUME_PATH, "mountPoints",
				   "sourceVolume", ARRIVAL_VOLUME, "containerPath",
				   ARRIVAL_VOLUME_PATH, "readOnly", 0)
		       : NULL;
}

/* ---- of one submission ---- */

static char *url_of(const char *workspace, const char *key)
{
	size_t len = strlen(workspace);

	while (len > 0 && workspace[len - 1] == '/')
		len--;
	return mem_format("%.*s/%s", (int)len, workspace, key);
}

char *arrival_channel_uri(const char *workspace, const struct engine_job *job)
{
	return url_of(workspace, job->agent_key);
}

/* The digest that stands in the archive's name. Yours to free; NULL: there is none. */
static char *digest_in(const char *key)
{
	const char *name = fs_basename(key), *dot = strchr(name, '.');

	if (!dot || strlen(dot + 1) != SHA256_HEX - 1 + strlen(ARCHIVE_END) ||
	    strcmp(dot + SHA256_HEX, ARCHIVE_END) != 0)
		return NULL;
	return mem_copy_n(dot + 1, SHA256_HEX - 1);
}

/* How long a link lasts that is made now, in seconds, and until when. */
static int link_lasts(int64_t *ret_seconds, struct utc *ret_ends, struct err **err)
{
	AUTO(credentials_release) struct credentials who = { 0 };
	struct utc now = utc_now();

	if (credentials_get(&who, err) < 0)
		return -1;
	*ret_seconds = ARRIVAL_LINK_SECONDS;
	if (who.expires.ms && (who.expires.ms - now.ms) / 1000 < *ret_seconds)
		*ret_seconds = (who.expires.ms - now.ms) / 1000;
	ret_ends->ms = now.ms + *ret_seconds * 1000;
	if (*ret_seconds >= LINK_LEAST_SECONDS)
		return 0;
	err_set(err, EXIT_REFUSED, "the link to the agent would end with the credentials, at once");
	return err_hint(err,
			"renew the credentials, or put the agent into the image (batch.agent)");
}

static int put_link(json_t *env, const char *url, struct utc *ret_ends, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(auto_free) char *bucket = NULL;
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *digest = digest_in(url);
	AUTO(sb_release) struct sb link = SB_INIT_SECRET;
	char ends[UTC_TEXT];
	struct s3_place place;
	int64_t seconds;
	int there;

	if (!digest)
		return err_set(err, EXIT_DEFECT, "'%s' is no archive of an agent", url);
	if (s3_parse_url(url, &bucket, &key, err) < 0 || aws_open(&aws, err) < 0)
		return -1;
	/* Learns the bucket's region, for which the link is to be. */
	place = (struct s3_place){ bucket, key };
	there = s3_head(aws, &place, NULL, err);
	if (there < 0)
		return -1;
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "'%s' is gone", url);
	if (link_lasts(&seconds, ret_ends, err) < 0 ||
	    aws_presign_get(aws, bucket, key, (long)seconds, &link, err) < 0)
		return -1;
	utc_format(*ret_ends, ends);
	js_put_str(env, ARRIVAL_LINK_URL, link.text);
	js_put_str(env, ARRIVAL_LINK_ENDS, ends);
	js_put_str(env, ARRIVAL_LINK_SHA256, digest);
	js_put_str(env, ARRIVAL_LINK_FROM, url);
	return 0;
}

int arrival_env(const json_t *plan, const char *workspace, const struct engine_job *job,
		json_t **ret, struct utc *ret_ends, struct err **err)
{
	AUTO(secret_json_freep) json_t *env = json_object();
	AUTO(auto_free) char *order_key = mem_format("%s%s", job->prefix, ORDER_FILE);
	AUTO(auto_free) char *order = url_of(workspace, order_key);
	AUTO(auto_free) char *archive = NULL;
	struct utc ends = { 0 };

	if (!text_starts(workspace, "s3://")) {
		err_set(err, EXIT_REFUSED, "a container cannot see the workspace '%s'", workspace);
		return err_hint(err, "name one on S3: workspace: s3://BUCKET/PREFIX");
	}
	js_put_str(env, ARRIVAL_ORDER, order);
	if (arrival_way(plan) == ARRIVAL_LINK) {
		archive = url_of(workspace, job->agent_archive ? job->agent_archive : "");
		if (put_link(env, archive, &ends, err) < 0)
			return err_wrap(err, "cannot make a link to the agent");
	}
	if (ret_ends)
		*ret_ends = ends;
	*ret = TAKE(env);
	return 0;
}

json_t *arrival_env_planned(const json_t *plan, const char *workspace, const struct engine_job *job)
{
	AUTO(auto_free) char *order_key = mem_format("%s%s", job->prefix, ORDER_FILE);
	AUTO(auto_free) char *order = url_of(workspace, order_key);
	AUTO(auto_free) char *archive = url_of(workspace, "agents/<digest>.<sha256>" ARCHIVE_END);
	json_t *env = json_object();

	js_put_str(env, ARRIVAL_ORDER, order);
	if (arrival_way(plan) == ARRIVAL_LINK) {
		js_put_str(env, ARRIVAL_LINK_URL, "<link>");
		js_put_str(env, ARRIVAL_LINK_ENDS, "<time>");
		js_put_str(env, ARRIVAL_LINK_SHA256, "<sha256>");
		js_put_str(env, ARRIVAL_LINK_FROM, archive);
	}
	return env;
}

/* ---- for people ---- */

static char *link_words(void)
{
	AUTO(err_freep) struct err *why = NULL;
	struct utc ends = { 0 };
	char text[UTC_TEXT];
	int64_t seconds;

	if (link_lasts(&seconds, &ends, &why) < 0)
		return mem_format("by a link, which cannot be made now: %s", why->message);
	utc_format(ends, text);
	if (seconds == ARRIVAL_LINK_SECONDS)
		return mem_format("fetched by the image's curl, python3 or aws over a link that is "
				  "good for 7 days; a job that waits longer in the queue fails");
	return mem_format("fetched by the image's curl, python3 or aws over a link that ends with "
			  "these credentials, now at %s; a job that waits longer in the queue "
			  "fails (name batch.agent or batch.helper_image where queues are long)",
			  text);
}

char *arrival_words(const json_t *plan)
{
	switch (arrival_way(plan)) {
	case ARRIVAL_BAKED:
		return mem_format("in the image, at %s", batch_field(plan, "agent"));
	case ARRIVAL_HELPER:
		return mem_format("from the image %s, whose container runs before",
				  batch_field(plan, "helper_image"));
	case ARRIVAL_CHANNEL:
		return mem_copy("as the input channel '" ARRIVAL_CHANNEL_NAME "'");
	case ARRIVAL_LINK:
	case ARRIVAL_NONE:
		break;
	}
	return link_words();
}
