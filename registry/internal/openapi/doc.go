// Package openapi makes the schema of a kind from the Go type of its objects, by the tags
// that Kubernetes' types have: json, description, patchStrategy and patchMergeKey. Where a field has no tag for its
// description, that is what the method SwaggerDoc of those types says.
//
//	reflect.Type ──▶ fields, inlined ones too ──▶ OpenAPI schema as JSON ──▶ kubectl explain,
//	                                                                        server-side apply
package openapi
