/*
 * Secrets that the agent reads from AWS itself, with the role of its job: if a service starts it,
 * no value of a secret leaves the machine of the submitter.
 */
#ifndef STK_NODE_SETUP_SECRETS_H
#define STK_NODE_SETUP_SECRETS_H

#include "jobs/base/err.h"
#include "jobs/node/setup/agent_config.h"

/* Reads all of the order's "secret_from", and keeps their values in this process's own environment
 * (ORDER_SECRET and the name), from where the command is given them. Waits for the network, in
 * bounds. EXIT_REFUSED: a secret is absent or may not be read; EXIT_UNREACHABLE. Errors name the
 * secret and nothing of it. */
int secrets_fetch(const struct agent_config *config, struct err **err);

#endif
