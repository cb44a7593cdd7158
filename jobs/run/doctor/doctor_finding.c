/* Findings, from words and from errors: see doctor_internal.h. */
#include <stdarg.h>
#include <string.h>

#include "aws/http/refusal.h"
#include "aws/policy/policy.h"
#include "jobs/run/doctor/doctor_internal.h"

static const char *const states[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_WARN] = "warn",
	[DOCTOR_FAIL] = "fail",
	[DOCTOR_UNKNOWN] = "unknown",
};

bool doctor_finding_has_code(const struct err *why, const char *code)
{
	const struct refusal_said *refusal = refusal_of(why);

	return refusal && strcmp(refusal->code, code) == 0;
}

/* Codes of services for a missing right; of a reply without a body, the status is the code. */
bool doctor_finding_is_denied(const struct err *why)
{
	static const char *const codes[] = { "AccessDenied", "AccessDeniedException",
					     "UnauthorizedOperation", "403" };

	for (size_t i = 0; i < STK_LENGTH(codes); i++)
		if (doctor_finding_has_code(why, codes[i]))
			return true;
	return false;
}

static json_t *add(struct doctor_talk *talk, enum doctor_state state, const char *cure,
		   const char *seen)
{
	json_t *finding = json_pack("{s:s}", "check", talk->row->id);
	const char *field = talk->row->field ? talk->row->field : talk->field;

	js_put_str(finding, "on", talk->on);
	js_put_str(finding, "state", states[state]);
	js_put_str(finding, "seen", seen);
	js_put_str(finding, "cure", cure || state != DOCTOR_FAIL ? cure : talk->row->cure);
	if (state != DOCTOR_OK && talk->plan)
		js_put_str(finding, "field", field);
	json_array_append_new(talk->findings, finding);
	return finding;
}

json_t *doctor_finding(struct doctor_talk *talk, enum doctor_state state, const char *cure,
		       const char *fmt, ...)
{
	AUTO(sb_release) struct sb seen = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&seen, fmt, args);
	va_end(args);
	return add(talk, state, cure, seen.text);
}

/* Adds what an error says, with the refusal that it is of. */
static json_t *add_error(struct doctor_talk *talk, enum doctor_state state, const char *cure,
			 const struct err *why)
{
	const struct refusal_said *refusal = refusal_of(why);
	bool silent = why->code == EXIT_UNREACHABLE;
	json_t *finding = add(talk, silent ? DOCTOR_UNKNOWN : state, cure, why->message);

	if (refusal) {
		js_put_str(finding, "code", refusal->code);
		js_put_str(finding, "request_id",
			   refusal->request_id[0] ? refusal->request_id : NULL);
	}
	if (why->field)
		js_put_str(finding, "field", why->field);
	talk->silent |= silent;
	return finding;
}

json_t *doctor_finding_of(struct doctor_talk *talk, const struct err *why, const char *right)
{
	bool denied = right && doctor_finding_is_denied(why);
	AUTO(auto_free) char *action = NULL, *resource = NULL, *ask = NULL;

	/* The service knows better which of the requests was refused. */
	if (denied)
		ask = mem_format("ask for the right %s",
				 policy_said(why->message, &action, &resource) ? action : right);

	return add_error(talk, denied ? DOCTOR_UNKNOWN : DOCTOR_FAIL, denied ? ask : why->hint,
			 why);
}

json_t *doctor_finding_warn(struct doctor_talk *talk, const struct err *why)
{
	return add_error(talk, DOCTOR_WARN, why->hint, why);
}

void doctor_finding_untried(struct doctor_talk *talk, const char *why)
{
	doctor_finding(talk, DOCTOR_UNKNOWN, NULL, "not tried: %s", why);
}
