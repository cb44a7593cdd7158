/* Questions to EC2 about what jobs name: see doctor_ec2.h. */
#include "jobs/run/doctor/doctor_ec2.h"

#include <stdlib.h>
#include <string.h>

#include "aws/http/refusal.h"
#include "aws/operation.h"
#include "jobs/base/text/text.h"

struct ec2_answer {
	bool is_asked;
	json_t *rows; /* NULL: not known */
};

struct ec2_view {
	struct aws *aws;
	struct doctor_queue *queue; /* NULL: not asked for yet */
	const json_t *chosen;       /* of its environments; NULL: not known */
	struct ec2_answer of[DOCTOR_EC2_COUNT];
};

/* Codes of EC2 for a name of nothing begin so: InvalidSubnetID.NotFound, InvalidInstanceType. Those
 * for keys do not. */
#define NOT_THERE "Invalid"

static json_t *subnets_body(struct doctor_talk *talk);
static json_t *type_body(struct doctor_talk *talk);
static json_t *offerings_body(struct doctor_talk *talk);
static json_t *template_body(struct doctor_talk *talk);
static json_t *groups_body(struct doctor_talk *talk);
static json_t *placement_body(struct doctor_talk *talk);
static json_t *network_body(struct doctor_talk *talk);

/* `body`: NULL if the jobs name nothing of the kind; not an object if that is not known, and told.
 */
static const struct {
	enum aws_operation operation;
	const char *member, *what;
	json_t *(*body)(struct doctor_talk *talk);
	const char
		*cure; /* of what is not there, on AWS Batch; on SageMaker the field is corrected */
} asks[] = {
	[DOCTOR_EC2_SUBNETS] = { AWS_DESCRIBE_SUBNETS, "subnetSet", "subnets", subnets_body,
				 "give the compute environment subnets that exist" },
	[DOCTOR_EC2_TYPE] = { AWS_DESCRIBE_INSTANCE_TYPES, "instanceTypeSet", "instance type",
			      type_body,
			      "correct 'resources.instance', or name a region that has the type" },
	[DOCTOR_EC2_OFFERINGS] = { AWS_DESCRIBE_INSTANCE_TYPE_OFFERINGS, "instanceTypeOfferingSet",
				   "zones of the instance type", offerings_body, NULL },
	[DOCTOR_EC2_TEMPLATE] = { AWS_DESCRIBE_LAUNCH_TEMPLATE_VERSIONS, "launchTemplateVersionSet",
				  "launch template", template_body,
				  "give the compute environment a launch template that exists" },
	[DOCTOR_EC2_GROUPS] = { AWS_DESCRIBE_SECURITY_GROUPS, "securityGroupInfo",
				"security groups", groups_body,
				"give the compute environment security groups that exist" },
	[DOCTOR_EC2_PLACEMENT] = { AWS_DESCRIBE_PLACEMENT_GROUPS, "placementGroupSet",
				   "placement group", placement_body,
				   "make the placement group, or name another one in the compute "
				   "environment" },
	[DOCTOR_EC2_TABLES] = { AWS_DESCRIBE_ROUTE_TABLES, "routeTableSet", "route tables",
				network_body, NULL },
	[DOCTOR_EC2_ENDPOINTS] = { AWS_DESCRIBE_VPC_ENDPOINTS, "vpcEndpointSet", "VPC endpoints",
				   network_body, NULL },
};

static void view_release(void *own)
{
	struct ec2_view *view = own;

	aws_freep(&view->aws);
	doctor_queue_freep(&view->queue);
	for (size_t i = 0; i < STK_LENGTH(view->of); i++)
		json_decref(view->of[i].rows);
	free(view);
}

static struct ec2_view *view_of(struct doctor_talk *talk)
{
	if (!talk->own) {
		talk->own = mem_zero(1, sizeof(struct ec2_view));
		talk->release = view_release;
	}
	return talk->own;
}

bool doctor_ec2_is_batch(const struct doctor_talk *talk)
{
	return js_is(talk->plan, "engine", "batch");
}

/* Asks AWS Batch. Returns the environment; NULL if it is not known, which is told. */
static const json_t *choose(struct doctor_talk *talk, const struct doctor_queue *queue)
{
	const json_t *environments, *chosen;

	if (queue->why) {
		doctor_finding_of(talk, queue->why, DOCTOR_LOOK_QUEUES);
		return NULL;
	}
	environments = doctor_queue_environments(talk, queue);
	chosen = doctor_queue_chosen(environments, talk->plan);
	if (environments && !chosen)
		doctor_finding_untried(talk, "the queue has no compute environment");
	return chosen;
}

/* Returns the compute environment of AWS Batch that the jobs will run on; NULL if it is not known,
 * which is told. Borrowed. */
static const json_t *environment_of(struct doctor_talk *talk)
{
	struct ec2_view *view = view_of(talk);

	if (!view->queue) {
		view->queue = doctor_queue_ask(talk->on);
		view->chosen = choose(talk, view->queue);
	} else if (!view->chosen) {
		doctor_finding_untried(talk, "the compute environment is not known");
	}
	return view->chosen;
}

/* ---- what is asked for ---- */

static const char *type_of(const struct doctor_talk *talk)
{
	const char *type = json_string_value(js_path(talk->plan, "spec.resources.instance"));

	return type && strncmp(type, "ml.", 3) == 0 ? type + 3 : type;
}

static json_t *told(void)
{
	return json_null();
}

/* Returns {name: [each of them]}; NULL if there are none. */
static json_t *list_body(const char *name, const json_t *list)
{
	if (json_array_size(list) == 0)
		return NULL;
	return json_pack("{s:O}", name, list);
}

static json_t *filter_body(const char *name, const char *value)
{
	return json_pack("{s:[{s:s, s:[s]}]}", "Filter", "Name", name, "Value", value);
}

static json_t *subnets_body(struct doctor_talk *talk)
{
	const json_t *environment;

	if (!doctor_ec2_is_batch(talk))
		return list_body("SubnetId", js_path(talk->plan, "spec.sagemaker.vpc.subnets"));
	environment = environment_of(talk);
	if (!environment)
		return told();
	return list_body("SubnetId",
			 json_object_get(doctor_queue_machines(environment), "subnets"));
}

static json_t *type_body(struct doctor_talk *talk)
{
	return type_of(talk) ? json_pack("{s:[s]}", "InstanceType", type_of(talk)) : NULL;
}

static json_t *offerings_body(struct doctor_talk *talk)
{
	json_t *body = type_of(talk) ? filter_body("instance-type", type_of(talk)) : NULL;

	js_put_str(body, "LocationType", "availability-zone");
	return body;
}

/* Of a compute environment: the template for the type, where it has several. */
static const json_t *template_of(const json_t *environment, const char *type)
{
	const json_t *common =
		json_object_get(doctor_queue_machines(environment), "launchTemplate");
	const json_t *row, *target;
	size_t i, j, family = type ? strcspn(type, ".") : 0;

	json_array_foreach (json_object_get(common, "overrides"), i, row)
		json_array_foreach (json_object_get(row, "targetInstanceTypes"), j, target) {
			const char *named = json_string_value(target);

			if (type &&
			    (strcmp(named, type) == 0 ||
			     (strlen(named) == family && strncmp(named, type, family) == 0)))
				return row;
		}
	return common;
}

static json_t *template_body(struct doctor_talk *talk)
{
	const json_t *environment = environment_of(talk);
	const json_t *template = template_of(environment, type_of(talk));
	const char *version = js_str(template, "version");
	json_t *body;

	if (!environment)
		return told();
	if (!js_str(template, "launchTemplateId") && !js_str(template, "launchTemplateName"))
		return NULL;
	body = json_pack("{s:[s]}", "LaunchTemplateVersion",
			 version && *version ? version : "$Default");
	js_put_str(body, "LaunchTemplateId", js_str(template, "launchTemplateId"));
	js_put_str(body, "LaunchTemplateName", js_str(template, "launchTemplateName"));
	return body;
}

/* Adds the groups of a launch template. */
static void add_groups(json_t *ret, const json_t *data)
{
	const json_t *row, *group;
	size_t i, j;

	json_array_foreach (json_object_get(data, "securityGroupIdSet"), i, group)
		json_array_append(ret, (json_t *)(uintptr_t)group);
	json_array_foreach (json_object_get(data, "networkInterfaceSet"), i, row) {
		json_t *groups = json_object_get(row, "groupSet");

		if (i > 0)
			break; /* the first is the one that has the routes */
		if (json_is_object(groups))
			json_array_append(ret, json_object_get(groups, "groupId"));
		json_array_foreach (groups, j, group)
			json_array_append(ret, (json_t *)(uintptr_t)group);
	}
}

static json_t *groups_body(struct doctor_talk *talk)
{
	json_auto_t *groups = json_array();
	const json_t *environment, *own;
	bool is_told = false;

	if (!doctor_ec2_is_batch(talk))
		return list_body("GroupId",
				 js_path(talk->plan, "spec.sagemaker.vpc.security_groups"));
	environment = environment_of(talk);
	if (!environment)
		return told();
	own = json_object_get(doctor_queue_machines(environment), "securityGroupIds");
	if (json_array_size(own) > 0)
		return list_body("GroupId", own);
	add_groups(groups, doctor_ec2_template(talk, &is_told));
	return is_told ? told() : list_body("GroupId", groups);
}

static json_t *placement_body(struct doctor_talk *talk)
{
	const json_t *environment = environment_of(talk);
	const char *name = js_str(doctor_queue_machines(environment), "placementGroup");
	bool is_told = environment == NULL;

	if (!name && !is_told)
		name = js_str(json_object_get(doctor_ec2_template(talk, &is_told), "placement"),
			      "groupName");
	if (is_told)
		return told();
	return name ? json_pack("{s:[s]}", "GroupName", name) : NULL;
}

/* Of the network that the subnets are in. */
static json_t *network_body(struct doctor_talk *talk)
{
	const json_t *subnets = doctor_ec2_ask(talk, DOCTOR_EC2_SUBNETS);
	const char *vpc = js_str(json_array_get(subnets, 0), "vpcId");

	if (!subnets)
		return told();
	return vpc ? filter_body("vpc-id", vpc) : NULL;
}

/* ---- the answers ---- */

static void tell_failure(struct doctor_talk *talk, enum doctor_ec2_what what, struct err **why)
{
	const char *cure = doctor_ec2_is_batch(talk) ? asks[what].cure : "correct 'sagemaker.vpc'";
	const struct refusal_said *refusal = refusal_of(*why);

	/* The service's own hint would speak of requests. */
	if (asks[what].cure && refusal && text_starts(refusal->code, NOT_THERE))
		err_hint(why, "%s", cure);
	doctor_finding_of(talk, *why, operation_row(asks[what].operation)->action);
}

const json_t *doctor_ec2_ask(struct doctor_talk *talk, enum doctor_ec2_what what)
{
	struct ec2_view *view = view_of(talk);
	struct ec2_answer *answer = &view->of[what];
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *body = NULL;

	if (answer->is_asked && !answer->rows)
		doctor_finding_untried(talk, "EC2 did not say what it is asked for before");
	if (answer->is_asked)
		return answer->rows;
	body = asks[what].body(talk);
	answer->is_asked = true;
	if (!body)
		answer->rows = json_array();
	else if (json_is_object(body))
		answer->rows =
			doctor_ask(&view->aws, asks[what].operation, body, asks[what].member, &why);
	if (why)
		tell_failure(talk, what, &why);
	if (answer->rows && !json_is_array(answer->rows)) {
		json_decref(answer->rows);
		answer->rows = json_array(); /* an empty list is an empty text */
	}
	return answer->rows;
}

const json_t *doctor_ec2_template(struct doctor_talk *talk, bool *ret_told)
{
	const json_t *rows = doctor_ec2_ask(talk, DOCTOR_EC2_TEMPLATE);

	*ret_told = rows == NULL;
	return json_object_get(json_array_get(rows, 0), "launchTemplateData");
}
