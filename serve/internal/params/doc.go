// Package params reads the parameters of requests, and says what is wrong with them.
//
//	Request: the query, and what the path says ──┬─ Get ────▶ how fresh
//	                                             ├─ List ───▶ of lists, watches and collections: selectors, pages, freshness
//	                                             ├─ Write ──▶ registry.WriteOptions
//	                                             ├─ Apply ──▶ registry.WriteOptions
//	                                             └─ Delete ─▶ registry.DeleteOptions, also from a body
//
// What does not parse is a Status of 400, and what contradicts something else one of 422, as in Kubernetes.
//
// A list of pages has tokens that continue it, and no other list.
package params
