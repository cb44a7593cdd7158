/*
 * Commands: one row each in cmd_table.c, one function each in a cmd_*.c of its own or of its
 * family. Only this folder prints.
 *
 * Beneath the commands are rooms, which include nothing from here: args (the command line), screen
 * (stdout, stderr, the terminal), view (texts and tables), follow (a run as it goes on), list (many
 * runs), compare (runs beside each other), report (a page of them), help, and completion.
 */
#ifndef STK_CMD_CMD_H
#define STK_CMD_CMD_H

#include "cmd/args/args.h"

/* All commands in the order of the help. Only main() uses it and hands it down: it is above all
 * that it names. */
extern const struct cmd cmd_table[];
/* A function for each row; cmd_<family>.c. */
int cmd_init(const struct args *args, struct err **err);
int cmd_validate(const struct args *args, struct err **err);
int cmd_plan(const struct args *args, struct err **err);
int cmd_run(const struct args *args, struct err **err);
int cmd_retrain(const struct args *args, struct err **err);
int cmd_attach(const struct args *args, struct err **err);
int cmd_wait(const struct args *args, struct err **err);
int cmd_resume(const struct args *args, struct err **err);
int cmd_stop(const struct args *args, struct err **err);
int cmd_status(const struct args *args, struct err **err);
int cmd_rm(const struct args *args, struct err **err);
int cmd_prune(const struct args *args, struct err **err); /* list --prune */
int cmd_list(const struct args *args, struct err **err);
int cmd_events(const struct args *args, struct err **err);
int cmd_logs(const struct args *args, struct err **err);
int cmd_compare(const struct args *args, struct err **err);
int cmd_sweep(const struct args *args, struct err **err);
int cmd_report(const struct args *args, struct err **err);
int cmd_metrics(const struct args *args, struct err **err);
int cmd_export(const struct args *args, struct err **err);
int cmd_stats(const struct args *args, struct err **err);
int cmd_cp(const struct args *args, struct err **err);
int cmd_exec(const struct args *args, struct err **err);
int cmd_diff(const struct args *args, struct err **err);
int cmd_cache_ls(const struct args *args, struct err **err);
int cmd_cache_verify(const struct args *args, struct err **err);
int cmd_cache_why(const struct args *args, struct err **err);
int cmd_cache_pull(const struct args *args, struct err **err);
int cmd_cache_push(const struct args *args, struct err **err);
int cmd_cache_gc(const struct args *args, struct err **err);
int cmd_schedule_add(const struct args *args, struct err **err);
int cmd_schedule_ls(const struct args *args, struct err **err);
int cmd_schedule_rm(const struct args *args, struct err **err);
int cmd_schedule_run(const struct args *args, struct err **err);
int cmd_schedule_next(const struct args *args, struct err **err);
int cmd_promote(const struct args *args, struct err **err);
int cmd_rollback(const struct args *args, struct err **err);
int cmd_lineage(const struct args *args, struct err **err);
int cmd_machines(const struct args *args, struct err **err);
int cmd_doctor(const struct args *args, struct err **err);
int cmd_schema(const struct args *args, struct err **err);
int cmd_version(const struct args *args, struct err **err);
int cmd_help(const struct args *args, struct err **err);
int cmd_completion(const struct args *args, struct err **err);
/* Commands for the completion scripts and for the build of the manual. */
int cmd_complete(const struct args *args, struct err **err);
int cmd_manual(const struct args *args, struct err **err);

#endif
