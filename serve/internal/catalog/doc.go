// Package catalog makes the documents in which clients look up what is served: discovery,
// plain and aggregated, and OpenAPI.
//
//	resources ──▶ groups, versions, kinds ──┬──▶ discovery: /api, /apis, their groups and versions
//	                                        └──▶ OpenAPI: /openapi/v2, /openapi/v3, a document for each group version
//	                                                 ▲
//	                              schemas, with descriptions of the common fields
//
// The documents are made once, and never change. Serving them is package serve's.
//
// Schemas are in the words of OpenAPI v3. The document of v2 has as much of them as older clients
// can read, as Kubernetes does for custom resources: a value that a schema allows must not seem
// wrong to them.
package catalog
