// Package objectmeta has the rules of Kubernetes for the metadata of an object, which hold for all kinds.
//
//	create: DropSystemFields ─▶ DedupOwners ─▶ Identify ─▶ GenerateName ─┐
//	                                                                     ├─▶ Validate ─▶ stored
//	update: KeepSystemFields ─▶ DedupOwners ─────────────────────────────┘
//
//	delete: GracePeriod ─▶ Mark ─▶ Propagated ─▶ stored, until MayBeRemoved
//
// The functions change the metadata that they are given, and know neither storage nor the rest of the
// object.
package objectmeta
