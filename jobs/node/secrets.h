/*
 * Secrets that the agent asks AWS for itself, with the role of its job: where a service
 * starts it, no value of a secret leaves the machine of whoever submits.
 */
#ifndef STK_NODE_SECRETS_H
#define STK_NODE_SECRETS_H

#include "jobs/base/err.h"
#include "jobs/node/task.h"

/* Ask for all of the order's "secret_from", and keep their values in this process's own
 * environment (ORDER_SECRET and the name), from where the command is given them. Waits for
 * the network, in bounds. EXIT_REFUSED: it is not there or may not be read; EXIT_UNREACHABLE.
 * Errors name the secret and nothing of it. */
int secrets_fetch(const struct task *task, struct err **err);

#endif
