/* Commands and environment that deliver the agent to a container: see agent_delivery.h. */
#include "jobs/engine/delivery/agent_delivery.h"

#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials/credentials.h"
#include "aws/credentials/secret.h"
#include "aws/s3/s3.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/delivery/agent_delivery_script.h"
#include "jobs/store/order.h"

/* Least life of a link: a shorter one could end while it is used. */
#define LINK_LEAST_SECONDS 60

#define ARCHIVE_END ".tar.gz"

/* Prefix of each script, and of agent_delivery.sh: see "The image's own entry point" in
 * agent_delivery.h. There the words are read again: "sh -c :" does nothing, and is followed by the
 * same words once more, unchanged. The arguments themselves never begin with "sh". */
#define ONCE_MORE ":\n[ \"${1-}\" != sh ] || exec \"$@\"\n"

/* $0: the folder, $1: how to find the rank. */
#define BAKED_SCRIPT                                                                               \
	ONCE_MORE                                                                                  \
	"[ -f \"$0/start\" ] || { echo \"stoker: there is no whole agent in '$0': it has no "      \
	"start\" >&2; exit 127; }; exec sh \"$0/start\" - \"$1\""

/* Searches the folder in stoker's own images, and the folder of the recipe in configs/container. */
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

enum agent_delivery_way agent_delivery_way(const json_t *plan)
{
	if (js_is(plan, "engine", "sagemaker"))
		return AGENT_DELIVERY_CHANNEL;
	if (!js_is(plan, "engine", "batch"))
		return AGENT_DELIVERY_NONE;
	if (batch_field(plan, "agent"))
		return AGENT_DELIVERY_BAKED;
	return batch_field(plan, "helper_image") ? AGENT_DELIVERY_HELPER : AGENT_DELIVERY_LINK;
}

bool agent_delivery_in_image(const json_t *plan)
{
	enum agent_delivery_way way = agent_delivery_way(plan);

	return way == AGENT_DELIVERY_BAKED || way == AGENT_DELIVERY_HELPER;
}

/* Returns the script without its comment lines. The caller frees it. */
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
	for (size_t i = 0; i < agent_delivery_script_count; i++)
		if (strcmp(agent_delivery_scripts[i].name, name) == 0)
			return travelling(&agent_delivery_scripts[i]);
	return NULL;
}

json_t *agent_delivery_command(const json_t *plan)
{
	AUTO(auto_free) char *script = NULL;

	switch (agent_delivery_way(plan)) {
	case AGENT_DELIVERY_BAKED:
		return json_pack("[s,s,s,s,s]", "sh", "-c", BAKED_SCRIPT,
				 batch_field(plan, "agent"), ORDER_RANK_BATCH);
	case AGENT_DELIVERY_HELPER:
		return json_pack("[s,s,s,s,s]", "sh", "-c", BAKED_SCRIPT,
				 AGENT_DELIVERY_VOLUME_PATH, ORDER_RANK_BATCH);
	case AGENT_DELIVERY_CHANNEL:
		return json_pack("[s,s,s,s]", "sh", AGENT_DELIVERY_CHANNEL_PATH "/start", "-",
				 ORDER_RANK_SAGEMAKER);
	case AGENT_DELIVERY_LINK:
	case AGENT_DELIVERY_NONE:
		break;
	}
	script = script_named("agent_delivery");
	return json_pack("[s,s,s,s,s]", "sh", "-c", script, "stoker", ORDER_RANK_BATCH);
}

/* ---- the container that runs before ---- */

/* The volume belongs to root until something is written to it. */
json_t *agent_delivery_helper(const json_t *plan)
{
	return json_pack("{s:s, s:s, s:b, s:s, s:[s,s,s,s], s:o}", "name",
			 AGENT_DELIVERY_HELPER_NAME, "image", batch_field(plan, "helper_image"),
			 "essential", 0, "user", "0", "command", "sh", "-c", HELPER_SCRIPT,
			 AGENT_DELIVERY_VOLUME_PATH, "mountPoints",
			 agent_delivery_helper_mounts(false));
}

json_t *agent_delivery_helper_depends(void)
{
	return json_pack("[{s:s, s:s}]", "containerName", AGENT_DELIVERY_HELPER_NAME, "condition",
			 "SUCCESS");
}

json_t *agent_delivery_helper_mounts(bool is_read_only)
{
	return json_pack("[{s:s, s:s, s:b}]", "sourceVolume", AGENT_DELIVERY_VOLUME,
			 "containerPath", AGENT_DELIVERY_VOLUME_PATH, "readOnly", is_read_only);
}

json_t *agent_delivery_helper_volumes(void)
{
	return json_pack("[{s:s}]", "name", AGENT_DELIVERY_VOLUME);
}

/* ---- environment of one submission ---- */

static char *url_of(const char *workspace, const char *key)
{
	size_t len = strlen(workspace);

	while (len > 0 && workspace[len - 1] == '/')
		len--;
	return mem_format("%.*s/%s", (int)len, workspace, key);
}

char *agent_delivery_channel_uri(const char *workspace, const struct engine_job *job)
{
	return url_of(workspace, job->agent_key);
}

/* Returns the digest in the archive's name; NULL if there is none. The caller frees it. */
static char *digest_in(const char *key)
{
	const char *name = fs_basename(key), *dot = strchr(name, '.');

	if (!dot || strlen(dot + 1) != SHA256_HEX - 1 + strlen(ARCHIVE_END) ||
	    strcmp(dot + SHA256_HEX, ARCHIVE_END) != 0)
		return NULL;
	return mem_copy_n(dot + 1, SHA256_HEX - 1);
}

/* Computes the life of a link made now, in seconds, and its expiry. */
static int link_lasts(int64_t *ret_seconds, struct utc *ret_ends, struct err **err)
{
	AUTO(credentials_release) struct credentials who = { 0 };
	struct utc now = clock_utc_now();

	if (credentials_get(&who, err) < 0)
		return -1;
	*ret_seconds = AGENT_DELIVERY_LINK_SECONDS;
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
		return err_set(err, EXIT_DEFECT, "'%s' is not an archive of an agent", url);
	if (s3_parse_url(url, &bucket, &key, err) < 0 || aws_open(&aws, err) < 0)
		return -1;
	/* Finds the bucket's region, which the link needs. */
	place = (struct s3_place){ bucket, key };
	there = s3_head(aws, &place, NULL, err);
	if (there < 0)
		return -1;
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "'%s' is gone", url);
	if (link_lasts(&seconds, ret_ends, err) < 0 ||
	    aws_presign_get(aws, bucket, key, (long)seconds, &link, err) < 0)
		return -1;
	clock_utc_format(*ret_ends, ends);
	js_put_str(env, AGENT_DELIVERY_LINK_URL, link.text);
	js_put_str(env, AGENT_DELIVERY_LINK_ENDS, ends);
	js_put_str(env, AGENT_DELIVERY_LINK_SHA256, digest);
	js_put_str(env, AGENT_DELIVERY_LINK_FROM, url);
	return 0;
}

int agent_delivery_env(const json_t *plan, const char *workspace, const struct engine_job *job,
		       json_t **ret, struct utc *ret_ends, struct err **err)
{
	AUTO(secret_json_freep) json_t *env = json_object();
	AUTO(auto_free) char *order_key = mem_format("%s%s", job->prefix, ORDER_FILE);
	AUTO(auto_free) char *order = url_of(workspace, order_key);
	AUTO(auto_free) char *archive = NULL;
	struct utc ends = { 0 };

	if (!text_starts(workspace, "s3://")) {
		err_set(err, EXIT_REFUSED, "a container cannot see the workspace '%s'", workspace);
		return err_hint(err, "name a workspace on S3: workspace: s3://BUCKET/PREFIX");
	}
	js_put_str(env, AGENT_DELIVERY_ORDER, order);
	if (agent_delivery_way(plan) == AGENT_DELIVERY_LINK) {
		archive = url_of(workspace, job->agent_archive ? job->agent_archive : "");
		if (put_link(env, archive, &ends, err) < 0)
			return err_wrap(err, "cannot make a link to the agent");
	}
	if (ret_ends)
		*ret_ends = ends;
	*ret = TAKE(env);
	return 0;
}

json_t *agent_delivery_env_planned(const json_t *plan, const char *workspace,
				   const struct engine_job *job)
{
	AUTO(auto_free) char *order_key = mem_format("%s%s", job->prefix, ORDER_FILE);
	AUTO(auto_free) char *order = url_of(workspace, order_key);
	AUTO(auto_free) char *archive = url_of(workspace, "agents/<digest>.<sha256>" ARCHIVE_END);
	json_t *env = json_object();

	js_put_str(env, AGENT_DELIVERY_ORDER, order);
	if (agent_delivery_way(plan) == AGENT_DELIVERY_LINK) {
		js_put_str(env, AGENT_DELIVERY_LINK_URL, "<link>");
		js_put_str(env, AGENT_DELIVERY_LINK_ENDS, "<time>");
		js_put_str(env, AGENT_DELIVERY_LINK_SHA256, "<sha256>");
		js_put_str(env, AGENT_DELIVERY_LINK_FROM, archive);
	}
	return env;
}

/* ---- output for people ---- */

static char *link_words(void)
{
	AUTO(err_freep) struct err *why = NULL;
	struct utc ends = { 0 };
	char text[UTC_TEXT];
	int64_t seconds;

	if (link_lasts(&seconds, &ends, &why) < 0)
		return mem_format(
			"by a link, which cannot be made now, so that its end is not known: %s",
			why->message);
	clock_utc_format(ends, text);
	if (seconds == AGENT_DELIVERY_LINK_SECONDS)
		return mem_format(
			"downloaded by the image's curl, python3 or aws over a link that is valid "
			"for 7 days; a job that waits longer in the queue fails");
	return mem_format("downloaded by the image's curl, python3 or aws over a link that ends "
			  "with these credentials, now at %s; a job that waits longer in the queue "
			  "fails (name batch.agent or batch.helper_image if queues are long)",
			  text);
}

char *agent_delivery_words(const json_t *plan)
{
	switch (agent_delivery_way(plan)) {
	case AGENT_DELIVERY_BAKED:
		return mem_format("in the image, at %s", batch_field(plan, "agent"));
	case AGENT_DELIVERY_HELPER:
		return mem_format("from the image %s, in a container that runs before",
				  batch_field(plan, "helper_image"));
	case AGENT_DELIVERY_CHANNEL:
		return mem_copy("as the input channel '" AGENT_DELIVERY_CHANNEL_NAME "'");
	case AGENT_DELIVERY_LINK:
	case AGENT_DELIVERY_NONE:
		break;
	}
	return link_words();
}
