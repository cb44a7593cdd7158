/* The client of an S3 store: see store_s3.h. */
#include "aws/aws.h"
#include "jobs/store/store_s3.h"

int store_s3_client(struct store_s3 *store, struct err **err)
{
	return store->aws ? 0 : aws_open(&store->aws, err);
}
