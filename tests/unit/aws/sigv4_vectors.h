/*
 * The published test suite of signature version 4, as data: awslabs/aws-c-auth (Apache 2.0),
 * tests/aws-signing-test-suite/v4 at 495329c, each vector by its name there. All of them are
 * signed for example.amazonaws.com on 2015-08-30T12:36:00Z, us-east-1, "service", presigned
 * ones for 3600 s.
 *
 * Its paths and queries are not encoded: that of get-vanilla-utf8-query is here, because
 * stoker is handed encoded queries; paths are encoded once more when they are signed, so
 * theirs stand as they are. Vectors "-unnormalized" mean paths as S3 has them, without
 * what else S3 adds: their canonical paths are compared alone.
 */
#ifndef STK_TESTS_UNIT_AWS_SIGV4_VECTORS_H
#define STK_TESTS_UNIT_AWS_SIGV4_VECTORS_H

#include <stddef.h>

#include "aws/auth/sigv4.h"

struct vector {
	const char *name, *method, *path, *query, *body, *token;
	struct sigv4_pair headers[5];      /* beside Host; NULL ends them */
	const char *signature, *presigned; /* in the header, in the query */
};

#define VECTOR_TOKEN_1 "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
#define VECTOR_TOKEN_2                                                                             \
	"AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwA"         \
	"eMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8p"         \
	"hUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT"         \
	"38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabI"         \
	"Qwj2ICCR/oLxBA=="

static const struct vector vectors[] = {
	{
		.name = "get-header-key-duplicate",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.headers = { { "My-Header1", "value2" },
			     { "My-Header1", "value2" },
			     { "My-Header1", "value1" } },
		.signature = "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
		.presigned = "3349ee0b81b4b589da0ff28a395c3591e04de515651dd74f298fa992d1507a97",
	},
	{
		.name = "get-header-value-multiline",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.headers = { { "My-Header1", "value1\n  value2\n     value3" } },
		.signature = "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd",
		.presigned = "e6f5def831211aca02987a44b96826706278c7bc078112ae0263659c5b2f2d56",
	},
	{
		.name = "get-header-value-order",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.headers = { { "My-Header1", "value4" },
			     { "My-Header1", "value1" },
			     { "My-Header1", "value3" },
			     { "My-Header1", "value2" } },
		.signature = "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
		.presigned = "313720e71ca6202fdcfa9b20f88de01a4eb0638a83c833b1c184359a4eda864e",
	},
	{
		.name = "get-header-value-trim",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.headers = { { "My-Header1", " value1" }, { "My-Header2", " \"a   b   c\"" } },
		.signature = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
		.presigned = "e7bb0fd515e125e1aec2ecc4c0c17484fb06f6846b927c35e46005dd3df3acd4",
	},
	{
		.name = "get-relative-normalized",
		.method = "GET",
		.path = "/example/..",
		.query = "",
		.body = "",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.presigned = "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		.name = "get-relative-relative-normalized",
		.method = "GET",
		.path = "/example1/example2/../..",
		.query = "",
		.body = "",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.presigned = "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		.name = "get-slash-dot-slash-normalized",
		.method = "GET",
		.path = "/./",
		.query = "",
		.body = "",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.presigned = "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		.name = "get-slash-normalized",
		.method = "GET",
		.path = "//",
		.query = "",
		.body = "",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.presigned = "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		.name = "get-slash-pointless-dot-normalized",
		.method = "GET",
		.path = "/./example",
		.query = "",
		.body = "",
		.signature = "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
		.presigned = "35034b1a0bdd969f346975386daf8aedfd4976573b8348cf4f67eaa41c5857de",
	},
	{
		.name = "get-slashes-normalized",
		.method = "GET",
		.path = "//example//",
		.query = "",
		.body = "",
		.signature = "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
		.presigned = "c1834e8fb0307243711f0f907f6ab7311ed300d87f13792d7ee4da89ab93e082",
	},
	{
		.name = "get-space-normalized",
		.method = "GET",
		.path = "/example space/",
		.query = "",
		.body = "",
		.signature = "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
		.presigned = "7a1f416954786484c9824d93c1f26ef64acb9b1b6c9154d08c9f07d0e394abf6",
	},
	{
		.name = "get-unreserved",
		.method = "GET",
		.path = "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		.query = "",
		.body = "",
		.signature = "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
		.presigned = "95968482db1b9e0fadef6efc1bd24689f77c77d9ef56919c96a28cc92e0d6005",
	},
	{
		.name = "get-utf8",
		.method = "GET",
		.path = "/ሴ",
		.query = "",
		.body = "",
		.signature = "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
		.presigned = "10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44",
	},
	{
		.name = "get-vanilla",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.presigned = "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		.name = "get-vanilla-empty-query-key",
		.method = "GET",
		.path = "/",
		.query = "Param1=value1",
		.body = "",
		.signature = "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
		.presigned = "49096700cbbaa5753443850f40df10f904fc2fdb544dc9512203cc77c471a9de",
	},
	{
		.name = "get-vanilla-query",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.presigned = "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		.name = "get-vanilla-query-order-encoded",
		.method = "GET",
		.path = "/",
		.query = "Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
		.body = "",
		.signature = "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
		.presigned = "c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787",
	},
	{
		.name = "get-vanilla-query-order-key-case",
		.method = "GET",
		.path = "/",
		.query = "Param2=value2&Param1=value1",
		.body = "",
		.signature = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		.presigned = "86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5",
	},
	{
		.name = "get-vanilla-query-unreserved",
		.method = "GET",
		.path = "/",
		.query = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~"
			 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		.body = "",
		.signature = "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
		.presigned = "8e76a88a7433637b12778d5592799b29ad21ecd6cf6325051c21d86f0acda2bf",
	},
	{
		.name = "get-vanilla-utf8-query",
		.method = "GET",
		.path = "/",
		.query = "%E1%88%B4=bar",
		.body = "",
		.signature = "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
		.presigned = "0bdd809b1519ac4f0c1dc3540e2cc46bd0c7f778eda408b2ebf3b913d21ff600",
	},
	{
		.name = "get-vanilla-with-session-token",
		.method = "GET",
		.path = "/",
		.query = "",
		.body = "",
		.token = VECTOR_TOKEN_1,
		.signature = "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
		.presigned = "7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c",
	},
	{
		.name = "post-header-key-case",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "",
		.signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		.presigned = "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b",
	},
	{
		.name = "post-header-key-sort",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "",
		.headers = { { "My-Header1", "value1" } },
		.signature = "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
		.presigned = "c09d07e0d55871f10f2a6d350d994acf6825a3cae70673d7def55616e6119dd7",
	},
	{
		.name = "post-header-value-case",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "",
		.headers = { { "My-Header1", "VALUE1" } },
		.signature = "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
		.presigned = "0698bc9e4f7f9139065ba2909c0e99da257e8e2a42492a097bcd46d792391fed",
	},
	{
		.name = "post-sts-header-after",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "",
		.signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		.presigned = "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b",
	},
	{
		.name = "post-sts-header-before",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "",
		.token = VECTOR_TOKEN_2,
		.signature = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
		.presigned = "46c2e3c63c1dbe7d39f8ada16fe7f001c1f56c5791441565323677f96308871c",
	},
	{
		.name = "post-vanilla",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "",
		.signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		.presigned = "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b",
	},
	{
		.name = "post-vanilla-empty-query-value",
		.method = "POST",
		.path = "/",
		.query = "Param1=value1",
		.body = "",
		.signature = "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
		.presigned = "a9ef26247f293bffe40eeff86a0480ba8c14d31503b2e0c3399e3a16bf1a3682",
	},
	{
		.name = "post-vanilla-query",
		.method = "POST",
		.path = "/",
		.query = "Param1=value1",
		.body = "",
		.signature = "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
		.presigned = "a9ef26247f293bffe40eeff86a0480ba8c14d31503b2e0c3399e3a16bf1a3682",
	},
	{
		.name = "post-x-www-form-urlencoded",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "Param1=value1",
		.headers = { { "Content-Type", "application/x-www-form-urlencoded" },
			     { "Content-Length", "13" },
			     { "X-Amz-Content-Sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192"
						       "329106275f4c7b24d0b6e" } },
		.signature = "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
		.presigned = "89a40deed0f26f9461242825a082d2222717248abc7ab41f552ad84a94ad46e9",
	},
	{
		.name = "post-x-www-form-urlencoded-parameters",
		.method = "POST",
		.path = "/",
		.query = "",
		.body = "Param1=value1",
		.headers = { { "Content-Type", "application/x-www-form-urlencoded; charset=utf-8" },
			     { "Content-Length", "13" },
			     { "X-Amz-Content-Sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192"
						       "329106275f4c7b24d0b6e" } },
		.signature = "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422",
		.presigned = "0dbeb9b026c7b6675f266b8427efec9b4fa8b1f6ef1477d717aea231106eab4d",
	},
};

/* Sent encoded, signed as they are. */
static const char *const raw_paths[][2] = {
	{ "get-relative-relative-unnormalized", "/example1/example2/../.." },
	{ "get-relative-unnormalized", "/example/.." },
	{ "get-slash-dot-slash-unnormalized", "/./" },
	{ "get-slash-pointless-dot-unnormalized", "/./example" },
	{ "get-slash-unnormalized", "//" },
	{ "get-slashes-unnormalized", "//example//" },
	{ "get-space-unnormalized", "/example%20space/" },
};

#endif
