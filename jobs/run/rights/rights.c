/* The table of rights.def, made into policies: see rights.h. */
#include "jobs/run/rights/rights.h"

#include <stdlib.h>
#include <string.h>

#include "aws/operation.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/engine.h"
#include "jobs/run/rights/rights_internal.h"

#define VERSION    "2012-10-17"
#define OPS_MAX    16 /* of a row */
#define RIGHTS_MAX ((size_t)AWS_OPERATION_COUNT * POLICY_RIGHTS_MAX)

const char *const rights_role_names[RIGHTS_ROLE_COUNT] = {
	[RIGHTS_SUBMITTER] = "submitter", [RIGHTS_JOB] = "job",
	[RIGHTS_EXECUTION] = "execution", [RIGHTS_SCHEDULER] = "scheduler",
	[RIGHTS_DOCTOR] = "doctor",
};

struct row {
	enum rights_role role;
	const char *sid;
	enum rights_thing thing;
	const char *when;
	const char *action; /* of a service itself; NULL: of operations */
	enum policy_resource resource;
	enum aws_operation operations[OPS_MAX];
	size_t count;
};

#define OPERATIONS(...)                                                                            \
	.operations = { __VA_ARGS__ },                                                             \
	.count = sizeof((enum aws_operation[]){ __VA_ARGS__ }) / sizeof(enum aws_operation)

static const struct row rows[] = {
#define RIGHTS(role, sid, thing, when, ...)                                                        \
	{ RIGHTS_##role, sid, RIGHTS_##thing, when, OPERATIONS(__VA_ARGS__) },
#define GIVEN(role, sid, thing, when, action, resource)                                            \
	{ RIGHTS_##role, sid, RIGHTS_##thing, when, action, POLICY_##resource, { 0 }, 0 },
#define TRUST(...)
#include "jobs/run/rights/rights.def"
#undef RIGHTS
#undef GIVEN
#undef TRUST
};

static const struct trust {
	enum rights_role role;
	const char *field, *engine, *service;
} trusts[] = {
#define RIGHTS(...)
#define GIVEN(...)
#define TRUST(role, field, engine, service) { RIGHTS_##role, field, engine, service },
#include "jobs/run/rights/rights.def"
#undef RIGHTS
#undef GIVEN
#undef TRUST
};

/* ---- roles of the spec ---- */

static bool is_of_engine(const struct trust *trust, const json_t *plan)
{
	return !trust->engine || js_is(plan, "engine", trust->engine);
}

/* The ARN of a role; NULL: the spec names none. */
static const char *role_of(const struct trust *trust, const json_t *plan)
{
	AUTO(auto_free) char *path = mem_format("spec.%s", trust->field);
	const char *arn = json_string_value(js_path(plan, path));

	return arn && is_of_engine(trust, plan) && text_starts(arn, "arn:") ? arn : NULL;
}

/* True if jobs run on this machine, with the credentials of the submitter. */
static bool has_local_jobs(const json_t *plan)
{
	const struct engine_ops *engine = engine_find(js_str(plan, "engine"));

	return !engine || !engine->requests;
}

/* Finds a part of the ARN of any role, from 1; NULL: the spec has no role. */
static char *part_of_role(const json_t *plan, int number)
{
	const char *arn = NULL;

	for (size_t i = 0; i < STK_LENGTH(trusts) && !arn; i++)
		arn = role_of(&trusts[i], plan);
	for (; arn && number > 0; number--)
		arn = strchr(arn, ':') ? strchr(arn, ':') + 1 : NULL;
	return arn ? mem_copy_n(arn, strcspn(arn, ":")) : NULL;
}

char *rights_account(const json_t *plan)
{
	const char *given = json_string_value(js_path(plan, "spec.aws.account"));

	return given ? mem_copy(given) : part_of_role(plan, 4);
}

bool rights_need_account(const json_t *plan)
{
	return !has_local_jobs(plan) || json_object_size(json_object_get(plan, "secrets")) > 0;
}

/* ---- statements ---- */

/* One text, or a list of them: a new reference to a list. */
static json_t *list_of(const json_t *value)
{
	return json_is_array(value) ? json_incref((json_t *)(uintptr_t)value)
				    : json_pack("[O]", value);
}

static bool holds_text(const json_t *value, const json_t *text)
{
	json_auto_t *list = list_of(value);
	const json_t *there;
	size_t i;

	json_array_foreach (list, i, there)
		if (json_equal(there, text))
			return true;
	return false;
}

/* Adds the texts of another value to a member. */
static void unite(json_t *object, const char *key, const json_t *other)
{
	json_auto_t *more = list_of(other);
	json_t *list = list_of(json_object_get(object, key)), *text;
	size_t i;

	json_array_foreach (more, i, text)
		if (!holds_text(list, text))
			json_array_append(list, text);
	if (json_array_size(list) > 1)
		json_object_set(object, key, list);
	json_decref(list);
}

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
	const json_t *of_a = json_object_get(a, key), *of_b = json_object_get(b, key);

	return (!of_a && !of_b) || json_equal(of_a, of_b);
}

/* The prefixes of listings that a statement allows; NULL: it has no such condition. */
static json_t *prefixes_of(const json_t *statement)
{
	return js_path(statement, "Condition.StringLikeIfExists");
}

/* Leaves out of a statement, whose resource is one, what others allow. Returns whether something is
 * left. */
static bool leave_out(json_t *statement, const json_t *statements)
{
	json_t *left = list_of(json_object_get(statement, "Action"));
	const json_t *other;
	size_t i;

	json_array_foreach (statements, i, other)
		for (size_t k = json_array_size(left); k-- > 0;)
			if (is_same(other, statement, "Condition") &&
			    holds_text(json_object_get(other, "Resource"),
				       json_object_get(statement, "Resource")) &&
			    holds_text(json_object_get(other, "Action"), json_array_get(left, k)))
				json_array_remove(left, k);
	js_put(statement, "Action",
	       json_array_size(left) == 1 ? json_incref(json_array_get(left, 0))
					  : json_incref(left));
	i = json_array_size(left);
	json_decref(left);
	return i > 0;
}

/* Adds a statement whose resource is one, to another of the same purpose if they differ in one
 * thing only. Until number_sids(), the Sid is the purpose. */
static void add_statement(json_t *statements, json_t *statement)
{
	json_t *there;
	size_t i;

	if (!leave_out(statement, statements))
		return;
	json_array_foreach (statements, i, there) {
		if (!is_same(there, statement, "Sid") || !is_same(there, statement, "Action"))
			continue;
		if (is_same(there, statement, "Condition")) {
			unite(there, "Resource", json_object_get(statement, "Resource"));
			return;
		}
		if (is_same(there, statement, "Resource") && prefixes_of(there) &&
		    prefixes_of(statement)) {
			unite(prefixes_of(there), "s3:prefix",
			      json_object_get(prefixes_of(statement), "s3:prefix"));
			return;
		}
	}
	json_array_append(statements, statement);
}

/* Makes one statement of those that differ in their actions alone. */
static void unite_actions(json_t *statements)
{
	for (size_t i = 0; i < json_array_size(statements); i++)
		for (size_t k = json_array_size(statements); k-- > i + 1;) {
			json_t *one = json_array_get(statements, i);
			const json_t *other = json_array_get(statements, k);

			if (!is_same(one, other, "Sid") || !is_same(one, other, "Resource") ||
			    !is_same(one, other, "Condition"))
				continue;
			unite(one, "Action", json_object_get(other, "Action"));
			json_array_remove(statements, k);
		}
}

/* A Sid stands once in a policy. */
static void number_sids(json_t *statements)
{
	for (size_t i = 0; i < json_array_size(statements); i++) {
		json_t *last = json_array_get(statements, i);
		size_t number = 1;

		for (size_t k = i + 1; k < json_array_size(statements); k++) {
			json_t *other = json_array_get(statements, k);
			AUTO(auto_free) char *sid = NULL;

			if (!is_same(last, other, "Sid"))
				continue;
			sid = mem_format("%s%zu", js_str(last, "Sid"), ++number);
			js_put_str(other, "Sid", sid);
		}
	}
}

/* Makes a statement of the rights that fit with the first, and removes them. Returns how many are
 * left. */
static size_t take_fitting(struct policy_right *rights, size_t count, const char *purpose,
			   const struct policy_names *names, json_t *statements)
{
	struct policy_right fitting[RIGHTS_MAX];
	AUTO(auto_free) char *word = policy_resource_word(rights[0].resource);
	AUTO(auto_free) char *sid = mem_format("%s%s", purpose, word);
	json_auto_t *statement = NULL;
	size_t taken = 0, left = 0;

	for (size_t i = 0; i < count; i++)
		if (i == 0 || (rights[i].resource == fitting[0].resource &&
			       policy_fits(&fitting[0], &rights[i], names)))
			fitting[taken++] = rights[i];
		else
			rights[left++] = rights[i];
	statement = policy_statement(sid, fitting, taken, names);
	add_statement(statements, statement);
	return left;
}

static void add_rights(struct policy_right *rights, size_t count, const char *purpose,
		       const struct policy_names *names, json_t *statements)
{
	while (count > 0)
		count = take_fitting(rights, count, purpose, names, statements);
}

/* ---- rows ---- */

/* Adds the rights of an operation on a thing. */
static size_t rights_on(enum aws_operation operation, const struct rights_one *one,
			struct policy_right *ret)
{
	struct policy_right all[POLICY_RIGHTS_MAX];
	size_t count = policy_rights(operation, all), kept = 0;

	for (size_t i = 0; i < count; i++)
		if (policy_is_named(all[i].resource, &one->names) &&
		    (all[i].when != POLICY_TAGGED || one->is_tagged) &&
		    !(one->is_file && all[i].resource == POLICY_BUCKET))
			ret[kept++] = all[i];
	return kept;
}

static void add_row(const struct row *row, const struct rights_one *one, json_t *statements)
{
	struct policy_right rights[RIGHTS_MAX];
	size_t count = 0;

	if (row->action)
		rights[count++] = (struct policy_right){ AWS_OPERATION_COUNT, row->action,
							 row->resource, POLICY_ALWAYS };
	for (size_t i = 0; i < row->count; i++)
		count += rights_on(row->operations[i], one, &rights[count]);
	add_rights(rights, count, row->sid, &one->names, statements);
}

/* True for a value that is there, and says something. */
static bool is_said(const json_t *value)
{
	const char *text = json_string_value(value);

	if (text)
		return *text && strcmp(text, "none") != 0 && strcmp(text, "0s") != 0;
	return value && !json_is_false(value) && !json_is_null(value);
}

static bool holds(const json_t *plan, const char *when)
{
	size_t len = strcspn(when, "=");
	AUTO(auto_free) char *path = mem_copy_n(when, len);
	const json_t *value = *when ? js_path(plan, path) : NULL;

	if (!*when)
		return true;
	if (!when[len])
		return is_said(value);
	return json_is_string(value) && strcmp(json_string_value(value), when + len + 1) == 0;
}

/* True if the row is of this role. */
static bool is_of(const struct row *row, enum rights_role role, const json_t *plan)
{
	if (row->role == RIGHTS_JOB && has_local_jobs(plan))
		return role == RIGHTS_SUBMITTER;
	return row->role == role;
}

/* ---- places within others ---- */

struct making {
	const json_t *plan;
	const struct rights_where *where;
	enum rights_role role;
	json_t *statements;
};

/* How much a row allows in a place: 0 nothing, 1 to read, 2 to write, 3 to remove. */
static int allows(const struct row *row)
{
	int ret = 0;

	for (size_t i = 0; i < row->count; i++) {
		enum aws_operation operation = row->operations[i];
		int each = operation == AWS_LIST_OBJECTS    ? 1
			   : operation == AWS_PUT_OBJECT    ? 2
			   : operation == AWS_DELETE_OBJECT ? 3
							    : 0;

		ret = each > ret ? each : ret;
	}
	return ret;
}

static const char *name_of(const struct rights_one *one, enum policy_name name)
{
	return one->names.of[name];
}

static bool is_around(const struct rights_one *other, const struct rights_one *one)
{
	return other->names.below &&
	       strcmp(name_of(other, POLICY_NAME_BUCKET), name_of(one, POLICY_NAME_BUCKET)) == 0 &&
	       text_starts(name_of(one, POLICY_NAME_KEY), name_of(other, POLICY_NAME_KEY));
}

/* True if a place of the kind is around this one; `before`: or the same. */
static bool is_within(const struct making *making, const struct rights_one *one,
		      enum rights_thing thing, bool before)
{
	AUTO(rights_list_release) struct rights_list list = { 0 };

	rights_things(making->plan, making->where, thing, &list);
	for (size_t i = 0; i < list.count; i++)
		if (is_around(&list.ones[i], one) && (before || !is_around(one, &list.ones[i])))
			return true;
	return false;
}

/* True for a place that another row, or this one, gives as much on with what is around it. */
static bool is_covered(const struct making *making, const struct row *row,
		       const struct rights_one *one)
{
	for (const struct row *other = rows; other < rows + STK_LENGTH(rows); other++)
		if (name_of(one, POLICY_NAME_BUCKET) && allows(other) >= allows(row) &&
		    is_of(other, making->role, making->plan) &&
		    is_within(making, one, other->thing, other < row))
			return true;
	return false;
}

static void make_row(const struct making *making, const struct row *row)
{
	AUTO(rights_list_release) struct rights_list list = { 0 };

	if (!is_of(row, making->role, making->plan) || !holds(making->plan, row->when))
		return;
	rights_things(making->plan, making->where, row->thing, &list);
	for (size_t i = 0; i < list.count; i++)
		if (!is_covered(making, row, &list.ones[i]))
			add_row(row, &list.ones[i], making->statements);
}

/* ---- the doctor ---- */

/* Things on which checks call operations. */
static const enum rights_thing examined[] = {
	RIGHTS_STATE,   RIGHTS_WORKSPACE, RIGHTS_CACHE,  RIGHTS_CHECKPOINTS, RIGHTS_MODELS,
	RIGHTS_RESULTS, RIGHTS_KEYS,      RIGHTS_IMAGES, RIGHTS_ROLES,
};

/* Called only where the right to another operation is missing, which policies give, or where an
 * account has no value of its own for a quota. */
static bool is_instead(enum aws_operation operation)
{
	return operation == AWS_DESCRIBE_IMAGES || operation == AWS_ASSUME_ROLE ||
	       operation == AWS_GET_AWS_DEFAULT_SERVICE_QUOTA;
}

/* Adds the rights of what checks call on one thing; NULL: on nothing that has a name. */
static void look(const struct making *making, const struct rights_one *one)
{
	const struct rights_one nothing = { .names = { .region = making->where->region,
						       .account = making->where->account,
						       .partition = making->where->partition } };
	const struct rights_one *on = one ? one : &nothing;
	struct policy_right rights[RIGHTS_MAX];
	size_t count = 0;

	for (enum aws_operation op = 0; op < AWS_OPERATION_COUNT; op++) {
		struct policy_right found[POLICY_RIGHTS_MAX];
		bool called = !is_instead(op) && making->where->calls(making->plan, op);
		size_t more = called ? rights_on(op, on, found) : 0;

		for (size_t i = 0; i < more; i++)
			if (policy_is_named(found[i].resource, &nothing.names) == !one)
				rights[count++] = found[i];
	}
	add_rights(rights, count, one && name_of(one, POLICY_NAME_BUCKET) ? "Probe" : "Look",
		   &on->names, making->statements);
}

static void look_at_all(const struct making *making)
{
	for (size_t i = 0; i < STK_LENGTH(examined); i++) {
		AUTO(rights_list_release) struct rights_list list = { 0 };

		rights_things(making->plan, making->where, examined[i], &list);
		for (size_t k = 0; k < list.count; k++) {
			bool covered = false;

			for (size_t j = 0; name_of(&list.ones[k], POLICY_NAME_BUCKET) &&
					   j < STK_LENGTH(examined) && !covered;
			     j++)
				covered = examined[j] < RIGHTS_PRELOADED &&
					  is_within(making, &list.ones[k], examined[j], j < i);
			if (!covered)
				look(making, &list.ones[k]);
		}
	}
	look(making, NULL);
}

/* ---- policies ---- */

static json_t *document(json_t *statements)
{
	return json_pack("{s:s, s:o}", "Version", VERSION, "Statement", statements);
}

static int check_role(const json_t *plan, enum rights_role role, struct err **err)
{
	const char *engine = js_str(plan, "engine");

	if ((role == RIGHTS_JOB || role == RIGHTS_EXECUTION) && has_local_jobs(plan)) {
		err_set(err, EXIT_REFUSED,
			"jobs of engine '%s' have no role: they have the credentials of whoever "
			"types",
			engine);
		return err_hint(err, "--policy submitter is for both");
	}
	if (role == RIGHTS_EXECUTION && strcmp(engine, "batch") != 0) {
		err_set(err, EXIT_REFUSED, "engine '%s' has one role for the job and its machines",
			engine);
		return err_hint(err, "--policy job is for both");
	}
	if (role == RIGHTS_SCHEDULER && !is_said(js_path(plan, "spec.driver.scheduler_role"))) {
		err_set(err, EXIT_REFUSED, "the spec has no 'driver.scheduler_role'");
		err_field(err, "driver.scheduler_role");
		return err_hint(err, "name the role with which EventBridge Scheduler submits");
	}
	return 0;
}

int rights_policy(const json_t *plan, enum rights_role role, const struct rights_where *where,
		  json_t **ret, struct err **err)
{
	AUTO(auto_free) char *account = rights_account(plan), *partition = part_of_role(plan, 1);
	struct rights_where known = *where;
	json_auto_t *statements = json_array();
	const struct making making = { plan, &known, role, statements };

	if (check_role(plan, role, err) < 0)
		return -1;
	known.account = account ? account : where->account;
	known.partition = partition ? partition : "aws";
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		make_row(&making, &rows[i]);
	if (role == RIGHTS_DOCTOR)
		look_at_all(&making);
	unite_actions(statements);
	number_sids(statements);
	if (json_array_size(statements) == 0)
		return err_set(err, EXIT_REFUSED, "nothing of this spec needs a right of AWS");
	*ret = document(TAKE(statements));
	return 0;
}

int rights_trust(const json_t *plan, json_t **ret, struct err **err)
{
	json_auto_t *roles = json_object();

	for (size_t i = 0; i < STK_LENGTH(trusts); i++) {
		const struct trust *trust = &trusts[i];
		const char *arn = role_of(trust, plan);
		json_t *statement;

		/* The submitter is mostly a person, and jobs have a role though none is named. */
		if (!is_of_engine(trust, plan) || (!arn && !trust->engine))
			continue;
		statement = json_pack("{s:s, s:s, s:{s:s}, s:s}", "Sid", "TakeOn", "Effect",
				      "Allow", "Principal", "Service", trust->service, "Action",
				      "sts:AssumeRole");
		js_put(roles, arn ? arn : rights_role_names[trust->role],
		       document(json_pack("[o]", statement)));
	}
	if (json_object_size(roles) == 0) {
		err_set(err, EXIT_REFUSED, "nothing of this spec has a role");
		return err_hint(err, "jobs of engine '%s' have the credentials of whoever types",
				js_str(plan, "engine"));
	}
	*ret = TAKE(roles);
	return 0;
}
