/* The runner's side of tasks.h: all tasks of this node, one after the other. */
#ifndef STK_NODE_TASKS_TASKS_WORK_H
#define STK_NODE_TASKS_TASKS_WORK_H

#include "jobs/node/helper.h"

/* Body of the runner. Returns its exit status, or dies of the signal that a command died of. */
int tasks_work(const struct helper_task *task, int news_fd);

#endif
