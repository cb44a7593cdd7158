/* The client of an S3 store: see store_s3.h. */
#include "aws/aws.h"
#include "jobs/store/store_s3.h"

int store_s3_client(struct store_s3 *store, struct err **err)
{
	if (store->aws)
		return 0;
	if (aws_open(&store->aws, err) < 0)
		return -1;
	aws_set_place(store->aws, store->bucket, store->prefix);
	return 0;
}
