// Package crd makes kinds from CustomResourceDefinition manifests, for objects whose
// fields are known only at run time.
//
//	widgets.yaml ──Parse──▶ Definition ──Versions, Config──▶ registry.New ──▶ serve
//	                          │    names, scope, status, columns, fields
//	                          │    writes: prune ─▶ default ─▶ validate ─▶ Rules, if there are
//	                          │    reads:  prune ─▶ default, by the schema as it is now
//	                          └─ Notes: what the manifest asks for and is not honoured
//
// # Usage
//
// [Parse] reads all manifests of a file, and [Define] one that is an object. Each manifest makes
// one [Definition], of the version that is stored if that is served. [Definition.Versions] are
// those of all versions that are served.
//
// Package serve/apiextensions serves the kinds of definitions that clients create.
//
// # What is honoured
//
//   - Group, names and scope.
//   - The structural schema with defaults and pruning, even of what was stored before the schema;
//     see [registry.Conversion]. It may use nullable and x-kubernetes-preserve-unknown-fields,
//     -int-or-string, -embedded-resource and -list-type. A write sets no more defaults once they have
//     3 MiB together, and is refused if some are missing then. A schema may have 1,000 different patterns.
//   - Validation by OpenAPI. It allows what an update leaves as it was, and tells the first hundred
//     errors of an object. One whose enums and alternatives would take more than some seconds is refused.
//   - Rules in CEL, if [Options].Rules evaluates them, as package registry/crd/cel does.
//   - The status and scale subresources, printer columns, and selectable fields.
//   - Up to a hundred versions that differ in no more than their schemas, and warnings of deprecated ones.
//
// Other rules, formats that Kubernetes does not know, fields and keywords that no manifest has, selectable
// fields that the schema does not have, columns whose paths are not understood, and a webhook that
// converts versions are not honoured, and are named in [Definition].Notes. With such a webhook only the
// version that is stored is served. A note also says so if server-side apply has no means to merge a list, which is a set
// of objects or of lists.
//
// # Concurrency
//
// Definitions are immutable.
package crd
