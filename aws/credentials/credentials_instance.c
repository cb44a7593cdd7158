/* Keys of an instance's role, from its metadata service (metadata.h). */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/metadata.h"

#define ROLE_PATH "/latest/meta-data/iam/security-credentials/"
/* During an outage the service keeps returning keys that have expired but are still accepted:
 * they are used that much longer. */
#define EXTENSION_MS ((int64_t)10 * 60 * 1000)

/* Finds the role's name, which becomes part of a path. Returns 1; 0 if there is no role; -1 with
 * an error. */
static int find_role(const struct provider_request *request, const struct metadata *metadata,
		     char **ret, struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { 0 };
	struct sb path = SB_INIT;
	size_t len;

	metadata_get(metadata, ROLE_PATH, &reply);
	if (reply.failure == HTTP_OK && reply.status == 404)
		return credentials_provide_nothing(request, "the instance has no role");
	if (reply.failure != HTTP_OK || reply.status != 200)
		return metadata_wrong(&reply, "its role", err);
	len = strcspn(reply.body.text, "\r\n");
	if (len == 0)
		return credentials_provide_nothing(request, "the instance has no role");
	sb_adds(&path, ROLE_PATH);
	sigv4_encode(&path, reply.body.text, len, false);
	*ret = sb_take(&path);
	return 1;
}

static int get_keys(const struct metadata *metadata, const char *path, struct credentials *ret,
		    struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { 0 };
	int64_t least = clock_utc_now().ms + EXTENSION_MS;

	metadata_get(metadata, path, &reply);
	if (reply.failure != HTTP_OK || reply.status != 200)
		return metadata_wrong(&reply, "the keys of its role", err);
	if (credentials_from_json("the instance metadata service", reply.body.text, reply.body.len,
				  "Token", ret, err) < 0)
		return err_hint(err, "check that the instance's role trusts ec2.amazonaws.com");
	if (ret->expires.ms != 0 && ret->expires.ms <= clock_utc_now().ms)
		ret->expires.ms = least;
	return 1;
}

int credentials_provide_instance(const struct provider_request *request, struct credentials *ret,
				 struct err **err)
{
	AUTO(metadata_freep) struct metadata *metadata = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *why = NULL;
	int outcome = metadata_open(request->profile, &metadata, &why, err);

	if (outcome == 0)
		return credentials_provide_nothing(request, "%s", why);
	if (outcome > 0)
		outcome = find_role(request, metadata, &path, err);
	return outcome > 0 ? get_keys(metadata, path, ret, err) : outcome;
}
