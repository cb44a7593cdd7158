/* Claim and fence over one object of the workspace: see claim.h. */
#include "jobs/node/claim.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/node/setup/network.h"
#include "jobs/store/store_json.h"

/* A contender can win each round only once, so this is plenty. */
#define CLAIM_ROUNDS 20

/* Ports below those that the kernel hands out to clients by itself (from 32768 on, ip(7)), so that
 * no passing connection takes the port before the master of the training binds it. */
#define PORT_FIRST 20000
#define PORT_COUNT 12000
#define PORT_TRIES 64

void claim_init(struct claim *claim, const struct agent_config *config)
{
	*claim = (struct claim){ 0 };
	claim->key = mem_format("%s" CLAIM_DIR "%s", config->run_prefix, config->phase);
	hash_random_hex((CLAIM_HOLDER - 1) / 2, claim->holder);
}

void claim_release(struct claim *claim)
{
	free(claim->key);
	free(claim->master_addr);
	free(claim->first);
	*claim = (struct claim){ 0 };
}

/* Returns a port that nothing on this machine uses right now. It is not kept open: the command's
 * own master is to bind it. */
static int64_t free_port(void)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		struct sockaddr_in at = { .sin_family = AF_INET };
		AUTO(auto_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		uint16_t chance;

		hash_random_bytes(&chance, sizeof chance);
		at.sin_port = htons((uint16_t)(PORT_FIRST + chance % PORT_COUNT));
		if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0)
			return ntohs(at.sin_port);
	}
	return PORT_FIRST;
}

/* Returns the address at which the other nodes reach this one. */
static char *own_address(const struct agent_config *config, struct err **err)
{
	const char *ordered = config->order->master_addr;

	if (ordered)
		return mem_copy(ordered);
	if (config->platform.apart && config->nodes > 1)
		return network_reached(&config->platform, NETWORK_FOLDER, err);
	return mem_copy("127.0.0.1");
}

/* Returns NULL with an error if the other nodes could not reach this one. */
static json_t *claim_body(const struct claim *claim, const struct agent_config *config,
			  int64_t restart, struct err **err)
{
	AUTO(auto_free) char *addr = own_address(config, err);
	json_t *body;
	char host[256] = "";

	if (!addr)
		return NULL;
	body = json_object();
	gethostname(host, sizeof host - 1);
	js_put(body, "v", json_integer(1));
	js_put(body, "attempt", json_integer(config->attempt));
	js_put_str(body, "job", config->job);
	js_put(body, "restart", json_integer(restart));
	js_put_str(body, "nonce", config->nonce);
	js_put_str(body, "token", config->token);
	js_put_str(body, "holder", claim->holder);
	js_put_str(body, "host", host);
	js_put(body, "at", json_integer(clock_utc_now().ms));
	js_put_str(body, "master_addr", addr);
	js_put(body, "master_port", json_integer(free_port()));
	return body;
}

static bool tells_restarts(const struct agent_config *config)
{
	return config->platform.restart >= 0;
}

/* True if the claim in the store names our job, in its present start as far as that is known. */
static bool names_our_job(const json_t *theirs, const struct agent_config *config)
{
	const char *job = js_str(theirs, "job"), *token = js_str(theirs, "token");

	return js_int(theirs, "attempt", 0) == config->attempt && job &&
	       strcmp(job, config->job) == 0 &&
	       (!tells_restarts(config) || js_int(theirs, "restart", 0) == config->restart) &&
	       strcmp(token ? token : "", config->token) == 0;
}

static bool is_ours(const struct claim *claim, const json_t *theirs,
		    const struct agent_config *config)
{
	if (config->node > 0)
		return names_our_job(theirs, config);
	return js_is(theirs, "holder", claim->holder);
}

/* True if our job may take over the claim from its holder. */
static bool may_supersede(const json_t *theirs, const struct agent_config *config)
{
	int64_t attempt = js_int(theirs, "attempt", 0);
	const char *job = js_str(theirs, "job");

	if (config->attempt != attempt)
		return config->attempt > attempt;
	/* The service runs one job of a name, and in that job one node 0: the holder is gone. */
	if (!tells_restarts(config))
		return names_our_job(theirs, config);
	return job && strcmp(job, config->job) == 0 &&
	       config->restart > js_int(theirs, "restart", 0);
}

static void adopt(struct claim *claim, const json_t *body)
{
	const char *addr = js_str(body, "master_addr");

	free(claim->master_addr);
	claim->master_addr = mem_copy(addr ? addr : "127.0.0.1");
	claim->master_port = js_int(body, "master_port", 0);
	claim->restart = js_int(body, "restart", 0);
	claim->taken_ms = clock_utc_now().ms;
}

/* Returns 1 with the claim, 0 if there is none, -1 with an error. */
static int read_claim(const struct claim *claim, struct store *store, json_t **ret,
		      char tag[STORE_TAG], struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(CLAIM_MAX);
	int there = store_get(store, claim->key, CLAIM_MAX, &text, tag, err);

	if (there <= 0)
		return there;
	return js_parse(text.text, text.len, claim->key, ret, err) < 0 ? -1 : 1;
}

/* Writes our claim over `tag` (NULL: there is no claim). Returns 1 if it is ours, 0 if another
 * was faster. An error leaves the outcome unknown, so it counts only if a look shows that we do
 * not have the claim. */
static int write_claim(struct claim *claim, struct store *store, const json_t *body,
		       const char *tag, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *now = NULL;
	int done = store_json_replace(store, claim->key, tag, body, err);

	if (done >= 0)
		return done;
	if (read_claim(claim, store, &now, NULL, &ignored) <= 0)
		return -1;
	if (!js_is(now, "holder", claim->holder))
		return -1;
	err_freep(err);
	return 1;
}

/* True if the holder of a claim that names our job is alive. If the service numbers restarts, the
 * claim is of this start; else a claim that was there before us may be of an earlier start.
 * `theirs` NULL: there is no claim. */
static bool is_alive(struct claim *claim, const json_t *theirs, const struct agent_config *config)
{
	AUTO(auto_free) char *now = NULL;
	bool alive;

	if (tells_restarts(config) || claim->believed)
		return theirs != NULL;
	now = theirs ? js_line(theirs) : mem_copy("");
	alive = theirs && claim->first && strcmp(claim->first, now) != 0;
	if (!claim->first)
		claim->first = TAKE(now);
	return alive;
}

/* Returns the claim to be written over theirs (NULL: there is no claim). */
static json_t *next_body(const struct claim *claim, const json_t *theirs,
			 const struct agent_config *config, struct err **err)
{
	int64_t restart = config->restart;

	if (!tells_restarts(config) && theirs && names_our_job(theirs, config))
		restart = js_int(theirs, "restart", 0) + 1;
	return claim_body(claim, config, restart, err);
}

int claim_take(struct claim *claim, const struct agent_config *config, struct store *store,
	       enum claim_state *ret, struct err **err)
{
	for (int i = 0; i < CLAIM_ROUNDS; i++) {
		json_auto_t *theirs = NULL, *body = NULL;
		char tag[STORE_TAG];
		int done = read_claim(claim, store, &theirs, tag, err);

		if (done < 0)
			return err_wrap(err, "cannot read the claim");
		if (config->node > 0 &&
		    !is_alive(claim, done > 0 && names_our_job(theirs, config) ? theirs : NULL,
			      config) &&
		    (done == 0 || is_ours(claim, theirs, config))) {
			*ret = CLAIM_NOT_YET;
			return 0;
		}
		if (done > 0 && is_ours(claim, theirs, config)) {
			adopt(claim, theirs);
			*ret = CLAIM_OURS;
			return 0;
		}
		if (done > 0 && !may_supersede(theirs, config)) {
			*ret = CLAIM_OTHERS;
			return 0;
		}
		if (config->node > 0) {
			*ret = CLAIM_NOT_YET;
			return 0;
		}
		body = next_body(claim, done > 0 ? theirs : NULL, config, err);
		if (!body)
			return -1;
		done = write_claim(claim, store, body, done > 0 ? tag : NULL, err);
		if (done < 0)
			return err_wrap(err, "cannot write the claim");
		if (done > 0) {
			adopt(claim, body);
			*ret = CLAIM_OURS;
			return 0;
		}
	}
	return err_set(err, EXIT_REFUSED, "cannot settle the claim '%s', which keeps changing",
		       claim->key);
}

bool claim_shown(const struct agent_config *config)
{
	return config->node == 0 && config->nodes > 1 && !tells_restarts(config);
}

int claim_show(const struct claim *claim, const struct agent_config *config, struct store *store)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *theirs = NULL;
	char tag[STORE_TAG];

	if (read_claim(claim, store, &theirs, tag, &ignored) <= 0)
		return -1;
	if (!is_ours(claim, theirs, config))
		return 0;
	js_put(theirs, "beat", json_integer(js_int(theirs, "beat", 0) + 1));
	/* Only a process that may take over the claim writes there beside us: the
	 * next look shows it. */
	(void)!store_json_replace(store, claim->key, tag, theirs, &ignored);
	return 1;
}

int64_t claim_restart(const struct claim *claim, const struct agent_config *config,
		      struct store *store)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *theirs = NULL;

	if (tells_restarts(config))
		return config->restart;
	if (read_claim(claim, store, &theirs, NULL, &ignored) <= 0 ||
	    !names_our_job(theirs, config))
		return INT64_MAX;
	return js_int(theirs, "restart", 0);
}

int claim_check(const struct claim *claim, const struct agent_config *config, struct store *store)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *theirs = NULL;
	int there = read_claim(claim, store, &theirs, NULL, &ignored);

	/* A missing claim is not a lost one: only another attempt's claim ends ours. */
	return there > 0 ? is_ours(claim, theirs, config) : -1;
}

bool claim_holds(const struct claim *claim, const struct agent_config *config, struct store *store)
{
	return claim_check(claim, config, store) != 0;
}
