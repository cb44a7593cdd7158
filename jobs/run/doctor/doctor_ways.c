/* The check of ways out of a VPC, in which SageMaker gives machines no public addresses: through
 * NAT, or through VPC endpoints of services. */
#include <string.h>
#include <strings.h>

#include "jobs/base/text/text.h"
#include "jobs/run/doctor/doctor_ec2.h"

/* What jobs ask; without the first there is neither data nor an agent. */
static const struct {
	const char *service; /* end of an endpoint's service name */
	bool is_vital;
} wanted[] = {
	{ "s3", true },       { "logs", false }, { "ecr.api", false },
	{ "ecr.dkr", false }, { "sts", false },
};

/* Returns the table of a subnet: its own, else the main one; NULL: not known. */
static const json_t *table_of(const json_t *tables, const char *subnet)
{
	const json_t *table, *row, *main_table = NULL;
	size_t i, j;

	json_array_foreach (tables, i, table)
		json_array_foreach (json_object_get(table, "associationSet"), j, row) {
			if (js_is(row, "subnetId", subnet))
				return table;
			if (js_is(row, "main", "true"))
				main_table = table;
		}
	return main_table;
}

/* True if the table leads out by something that needs no public address: of what a default route
 * can lead to only an internet gateway needs one. */
static bool leads_out(const json_t *table)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(table, "routeSet"), i, row) {
		const char *gateway = js_str(row, "gatewayId");

		if (js_is(row, "destinationCidrBlock", "0.0.0.0/0") &&
		    !js_is(row, "state", "blackhole") && !(gateway && text_starts(gateway, "igw-")))
			return true;
	}
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = text ? strlen(text) : 0, end_len = strlen(end);

	return len > end_len && strcmp(text + len - end_len, end) == 0 &&
	       text[len - end_len - 1] == '.';
}

static bool has_table(const json_t *endpoint, const json_t *table)
{
	const char *id = js_str(table, "routeTableId");
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(endpoint, "routeTableIdSet"), i, row)
		if (id && strcmp(json_string_value(row), id) == 0)
			return true;
	return false;
}

/* True if the endpoint can be used from subnets of the table: a gateway is in the table, any other
 * answers to the service's own name. */
static bool serves(const json_t *endpoint, const json_t *table, const char *service)
{
	const char *state = js_str(endpoint, "state");

	if (!ends_with(js_str(endpoint, "serviceName"), service) || !state ||
	    strcasecmp(state, "available") != 0)
		return false;
	if (js_is(endpoint, "vpcEndpointType", "Gateway"))
		return has_table(endpoint, table);
	return js_is(endpoint, "privateDnsEnabled", "true");
}

static bool is_served(const json_t *endpoints, const json_t *table, const char *service)
{
	const json_t *row;
	size_t i;

	json_array_foreach (endpoints, i, row)
		if (serves(row, table, service))
			return true;
	return false;
}

struct ways {
	struct sb none, none_vital; /* services that cannot be reached */
};

static void look(const json_t *table, const json_t *endpoints, const char *subnet, struct ways *ret)
{
	for (size_t i = 0; i < STK_LENGTH(wanted); i++) {
		struct sb *none = wanted[i].is_vital ? &ret->none_vital : &ret->none;

		if (!is_served(endpoints, table, wanted[i].service))
			sb_addf(none, "%s%s from %s", none->len > 0 ? ", " : "", wanted[i].service,
				subnet);
	}
}

static void tell(struct doctor_talk *talk, const struct ways *ways)
{
	const char *cure =
		"route 0.0.0.0/0 of the subnets to a NAT gateway, or make VPC endpoints of "
		"these services with private DNS (of s3: a gateway in the route table)";

	if (ways->none_vital.len > 0)
		doctor_finding(talk, DOCTOR_FAIL, cure, "no way to %s%s%s", ways->none_vital.text,
			       ways->none.len > 0 ? ", " : "",
			       ways->none.len > 0 ? ways->none.text : "");
	else if (ways->none.len > 0)
		doctor_finding(talk, DOCTOR_WARN, cure, "no way to %s", ways->none.text);
	else
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "S3, logs, ECR and STS can be reached from the subnets; policies of "
			       "VPC endpoints are not looked at");
}

void doctor_network_ways(struct doctor_talk *talk)
{
	const json_t *subnets = doctor_ec2_ask(talk, DOCTOR_EC2_SUBNETS), *row;
	const json_t *tables = subnets ? doctor_ec2_ask(talk, DOCTOR_EC2_TABLES) : NULL;
	const json_t *endpoints = tables ? doctor_ec2_ask(talk, DOCTOR_EC2_ENDPOINTS) : NULL;
	struct ways ways = { SB_INIT_MAX(1024), SB_INIT_MAX(1024) };
	size_t i;

	if (!endpoints)
		return;
	json_array_foreach (subnets, i, row) {
		const char *subnet = js_str(row, "subnetId");
		const json_t *table = table_of(tables, subnet ? subnet : "");

		if (!leads_out(table))
			look(table, endpoints, subnet, &ways);
	}
	tell(talk, &ways);
	sb_release(&ways.none);
	sb_release(&ways.none_vital);
}
