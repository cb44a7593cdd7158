/* Checks of the network of jobs: zones and addresses of its subnets, the placement group, and
 * whether nodes may speak with each other. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/run/doctor/doctor_ec2.h"

static int64_t nodes_of(const struct doctor_talk *talk)
{
	return js_int(talk->plan, "nodes", 1);
}

/* True if nodes speak over EFA, which stays within a subnet. */
static bool is_efa(const struct doctor_talk *talk)
{
	int64_t interfaces = doctor_ec2_is_batch(talk)
				     ? batch_check_efa(talk->plan)
				     : js_int(json_object_get(talk->plan, "instance"), "efa", 0);

	return nodes_of(talk) > 1 && interfaces > 0;
}

/* ---- zones ---- */

static bool offers(const json_t *offerings, const char *zone)
{
	const json_t *row;
	size_t i;

	json_array_foreach (offerings, i, row)
		if (js_is(row, "location", zone))
			return true;
	return false;
}

struct zones {
	size_t subnets;    /* in zones that offer the type */
	const char *first; /* such a zone; NULL: there is none */
	bool several;
	struct sb names; /* of all zones */
};

static void read_zones(const json_t *subnets, const json_t *offerings, struct zones *ret)
{
	const json_t *row;
	size_t i;

	json_array_foreach (subnets, i, row) {
		const char *zone = js_str(row, "availabilityZone");

		sb_addf(&ret->names, "%s%s", i > 0 ? ", " : "", zone ? zone : "?");
		if (!zone || !offers(offerings, zone))
			continue;
		ret->subnets++;
		ret->several |= ret->first && strcmp(ret->first, zone) != 0;
		if (!ret->first)
			ret->first = zone;
	}
}

static void tell_zones(struct doctor_talk *talk, const struct zones *zones)
{
	const char *type = json_string_value(js_path(talk->plan, "spec.resources.instance"));
	const char *one =
		"leave the compute environment one subnet, in a zone that offers the type";

	if (!zones->first)
		doctor_finding(
			talk, DOCTOR_FAIL,
			"give the compute environment a subnet in a zone that offers the type",
			"no zone of the subnets (%s) offers %s", zones->names.text, type);
	else if (is_efa(talk) && zones->subnets > 1)
		doctor_finding(
			talk, zones->several ? DOCTOR_FAIL : DOCTOR_WARN, one,
			"nodes speak over EFA, which stays within a subnet, and may start in "
			"several: %s",
			zones->names.text);
	else if (nodes_of(talk) > 1 && zones->several)
		doctor_finding(talk, DOCTOR_WARN, one, "nodes may start in several zones: %s",
			       zones->names.text);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "zone %s offers %s", zones->first, type);
}

void doctor_network_zone(struct doctor_talk *talk)
{
	const json_t *subnets = doctor_ec2_ask(talk, DOCTOR_EC2_SUBNETS);
	const json_t *offerings = subnets ? doctor_ec2_ask(talk, DOCTOR_EC2_OFFERINGS) : NULL;
	struct zones zones = { .names = SB_INIT_MAX(1024) };

	if (!offerings)
		return;
	read_zones(subnets, offerings, &zones);
	if (json_array_size(subnets) == 0)
		doctor_finding_untried(talk, "the compute environment tells no subnets");
	else
		tell_zones(talk, &zones);
	sb_release(&zones.names);
}

/* ---- addresses ---- */

void doctor_network_addresses(struct doctor_talk *talk)
{
	const json_t *subnets = doctor_ec2_ask(talk, DOCTOR_EC2_SUBNETS), *row;
	int64_t has = 0, needs = nodes_of(talk);
	size_t i;

	json_array_foreach (subnets, i, row) {
		const char *free_text = js_str(row, "availableIpAddressCount");

		has += free_text ? strtoll(free_text, NULL, 10) : 0;
	}
	if (!subnets)
		return;
	if (json_array_size(subnets) == 0)
		doctor_finding_untried(talk, "no subnets are named");
	else if (has < needs)
		doctor_finding(talk, DOCTOR_FAIL, "free addresses, or name a larger subnet",
			       "%lld node%s need an address each, the subnets have %lld free",
			       (long long)needs, needs > 1 ? "s" : "", (long long)has);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the subnets have %lld free addresses",
			       (long long)has);
}

/* ---- the placement group ---- */

void doctor_network_placement(struct doctor_talk *talk)
{
	const json_t *rows = doctor_ec2_ask(talk, DOCTOR_EC2_PLACEMENT);
	const json_t *group = json_array_get(rows, 0);
	const char *strategy = js_str(group, "strategy");
	const char *cure =
		"name a placement group of strategy cluster in the compute environment or "
		"its launch template";

	if (!rows)
		return;
	if (!is_efa(talk))
		doctor_finding(talk, DOCTOR_OK, NULL, "no nodes that speak over EFA");
	else if (!group)
		doctor_finding(talk, DOCTOR_WARN, cure,
			       "without a placement group machines may be far from each other");
	else if (!strategy || strcmp(strategy, "cluster") != 0)
		doctor_finding(talk, DOCTOR_WARN, cure, "the placement group is of strategy %s",
			       strategy ? strategy : "unknown");
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the placement group is of strategy cluster");
}

/* ---- security groups ---- */

/* True if a rule lets all of the group's own through; `far`: or, for what is no EFA, all addresses.
 */
static bool lets_own(const json_t *rules, const char *group, bool far)
{
	const json_t *rule, *row;
	size_t i, j;

	json_array_foreach (rules, i, rule) {
		if (!js_is(rule, "ipProtocol", "-1"))
			continue;
		json_array_foreach (json_object_get(rule, "groups"), j, row)
			if (js_is(row, "groupId", group))
				return true;
		json_array_foreach (json_object_get(rule, "ipRanges"), j, row)
			if (far && js_is(row, "cidrIp", "0.0.0.0/0"))
				return true;
	}
	return false;
}

static bool is_open(const json_t *group, bool far)
{
	const char *id = js_str(group, "groupId");

	return id && lets_own(json_object_get(group, "ipPermissions"), id, far) &&
	       lets_own(json_object_get(group, "ipPermissionsEgress"), id, far);
}

void doctor_network_groups(struct doctor_talk *talk)
{
	const json_t *groups = doctor_ec2_ask(talk, DOCTOR_EC2_GROUPS), *row;
	size_t i;

	if (!groups)
		return;
	if (nodes_of(talk) < 2) {
		doctor_finding(talk, DOCTOR_OK, NULL, "one node speaks with no other");
		return;
	}
	json_array_foreach (groups, i, row)
		if (is_open(row, !is_efa(talk))) {
			doctor_finding(talk, DOCTOR_OK, NULL,
				       "security group %s lets all of its own in and out",
				       js_str(row, "groupId"));
			return;
		}
	if (json_array_size(groups) == 0)
		doctor_finding_untried(talk, "no security group is named");
	else
		doctor_finding(
			talk, DOCTOR_FAIL,
			"give the group a rule in and a rule out of all protocols (-1), each "
			"with the group itself",
			"no security group lets all of its own in and out, which nodes need %s",
			is_efa(talk) ? "for EFA" : "to speak with each other");
}
