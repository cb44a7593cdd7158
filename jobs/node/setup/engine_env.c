/* A node's rank and peers from what the service tells its container: see engine_env.h. */
#include "jobs/node/setup/engine_env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"
#include "jobs/store/order.h"

#define FILE_MAX      ((size_t)1 << 20)
#define INTERFACE_MAX 15 /* IFNAMSIZ of net/if.h, less the NUL */
#define NAME_MAX_DNS  253
#define LETTERS       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Parses a number of digits alone, as it stands in the environment. */
static bool parse_number(const char *text, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *ret >= 0 && text[0] != '+';
}

static int parse_rank(const char *text, int nodes, int *ret, struct err **err)
{
	int64_t rank;

	if (!parse_number(text, &rank) || rank >= nodes)
		return err_set(err, EXIT_DEFECT, "node rank '%s' is not one of 0 to %d", text,
			       nodes - 1);
	*ret = (int)rank;
	return 0;
}

static int read_batch(int nodes, struct engine_env *ret, struct err **err)
{
	const char *index = getenv("AWS_BATCH_JOB_NODE_INDEX");
	const char *attempt = getenv("AWS_BATCH_JOB_ATTEMPT");
	int64_t number = 0;

	if (index && (!parse_number(index, &number) || number >= nodes))
		return err_set(err, EXIT_REFUSED,
			       "AWS_BATCH_JOB_NODE_INDEX is '%.40s', which is not one of 0 to %d",
			       index, nodes - 1);
	if (!index && nodes > 1) {
		err_set(err, EXIT_REFUSED,
			"AWS_BATCH_JOB_NODE_INDEX is not set, but the job has %d nodes", nodes);
		return err_hint(err, "submit a multi-node parallel job of AWS Batch");
	}
	ret->node = (int)number;
	if (attempt && (!parse_number(attempt, &number) || number < 1))
		return err_set(err, EXIT_REFUSED,
			       "AWS_BATCH_JOB_ATTEMPT is '%.40s', not a number from 1", attempt);
	ret->restart = attempt ? number - 1 : 0;
	return 0;
}

/* ---- SageMaker ---- */

static bool is_host_name(const char *text, size_t len)
{
	return len > 0 && len <= NAME_MAX_DNS && text[0] != '-' && text[0] != '.' &&
	       strspn(text, LETTERS ".-_") == len;
}

static bool is_interface(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= INTERFACE_MAX && strspn(text, LETTERS ".-_@") == len;
}

/* Returns the number that a name ends in, -1 if there is none. */
static int64_t number_of(const char *name)
{
	size_t len = strlen(name), digits = len;

	while (digits > 0 && strchr("0123456789", name[digits - 1]))
		digits--;
	return digits < len && len - digits < 10 ? strtoll(name + digits, NULL, 10) : -1;
}

static int compare_hosts(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int64_t of_x = number_of(x), of_y = number_of(y);

	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	return strcmp(x, y);
}

static int bad(const char *path, struct err **err, const char *what)
{
	err_set(err, EXIT_REFUSED, "'%s' %s", path, what);
	return err_hint(err, "run stoker-node in a container of SageMaker, which has this file");
}

static int read_hosts(const char *path, const json_t *hosts, struct engine_env *ret,
		      struct err **err)
{
	const json_t *value;
	size_t i;

	if (json_array_size(hosts) == 0 || json_array_size(hosts) > ENGINE_ENV_HOSTS_MAX)
		return bad(path, err, "has no list of hosts, or a list that is too long");
	ret->hosts = mem_zero(json_array_size(hosts) + 1, sizeof *ret->hosts);
	json_array_foreach (hosts, i, value) {
		const char *name = json_string_value(value);

		if (!name || !is_host_name(name, json_string_length(value)))
			return bad(path, err, "has an invalid host name");
		ret->hosts[ret->host_count++] = mem_copy(name);
	}
	qsort(ret->hosts, ret->host_count, sizeof *ret->hosts, compare_hosts);
	for (i = 1; i < ret->host_count; i++)
		if (strcmp(ret->hosts[i - 1], ret->hosts[i]) == 0)
			return bad(path, err, "names a host twice");
	return 0;
}

static int find_self(const char *path, const char *self, struct engine_env *ret, struct err **err)
{
	for (size_t i = 0; self && i < ret->host_count; i++)
		if (strcmp(ret->hosts[i], self) == 0) {
			ret->node = (int)i;
			return 0;
		}
	return bad(path, err, "does not name the current host (current_host)");
}

int engine_env_sagemaker(const char *path, int nodes, struct engine_env *ret, struct err **err)
{
	AUTO(engine_env_release)
	struct engine_env found = { .apart = true, .container = true, .restart = -1 };
	json_auto_t *config = NULL;
	const char *interface;

	if (js_load(path, FILE_MAX, &config, err) < 0)
		return err_wrap(err, "cannot tell which node of the training job this is");
	if (!json_is_object(config))
		return bad(path, err, "is not a JSON object");
	if (read_hosts(path, json_object_get(config, "hosts"), &found, err) < 0 ||
	    find_self(path, js_str(config, "current_host"), &found, err) < 0)
		return -1;
	if (found.host_count != (size_t)nodes)
		return err_set(err, EXIT_REFUSED,
			       "the training job has %zu hosts, but its order is for %d nodes",
			       found.host_count, nodes);
	/* Without an interface the nodes find each other by their routes. */
	interface = js_str(config, "network_interface_name");
	if (interface && is_interface(interface))
		found.interface = mem_copy(interface);
	*ret = found;
	found = (struct engine_env){ 0 };
	return 0;
}

/* ---- */

int engine_env_read(const char *rank, int nodes, struct engine_env *ret, struct err **err)
{
	const char *restart = getenv(ORDER_RESTART);

	*ret = (struct engine_env){ .restart = restart ? strtoll(restart, NULL, 10) : 0 };
	if (strcmp(rank, ORDER_RANK_SAGEMAKER) == 0)
		return engine_env_sagemaker(ENGINE_ENV_SAGEMAKER_FILE, nodes, ret, err);
	if (strcmp(rank, ORDER_RANK_BATCH) != 0)
		return parse_rank(rank, nodes, &ret->node, err);
	ret->apart = ret->container = true;
	return read_batch(nodes, ret, err);
}

void engine_env_release(struct engine_env *platform)
{
	auto_strv(&platform->hosts);
	free(platform->interface);
	*platform = (struct engine_env){ 0 };
}
