// Package apply is server-side apply: several managers each apply a configuration to one
// object, and the server merges them and records which manager owns which field.
//
//	PATCH, application/apply-patch+yaml          PUT, POST, other patches
//	            │ configuration                              │ whole object
//	            ▼                                            ▼
//	Decode ─▶ Apply ◀── live, with managedFields ──▶ Update: what differs is the
//	            │                                            │  writer's from now on
//	            │  the manager's fields are set, those it    │
//	            │  had and no longer names go, those of      │
//	            │  others are a conflict, or are taken       │
//	            ▼                                            ▼
//	  the merged object  ──▶  rules of the kind  ◀──  metadata.managedFields
//	                                  │
//	                                  ▼
//	                               stored
//
// # Usage
//
// Give [New] to registry.Config.Apply. Then registry.Store.Apply works, and so do the
// patches that kubectl apply --server-side and the Apply methods of clients send. Every
// write is recorded under the manager that it names.
//
// The schema says how lists and maps merge: x-kubernetes-list-type,
// x-kubernetes-list-map-keys, x-kubernetes-map-type, and of a list without a type
// x-kubernetes-patch-strategy and x-kubernetes-patch-merge-key. Without that a list is atomic, one
// field with one owner, and a map has a field for each key. The schema of a Go type has
// them from the tags patchStrategy and patchMergeKey. [WithTypes] takes the types from elsewhere.
//
// # Beside Kubernetes
//
// The merging is Kubernetes' own, and so are the rules that go with it: at most ten
// entries of updates, kubectl's move from client-side apply, managed fields that a client
// sends, or resets with an empty list. A write that would only change times is not made.
//
// If there are more than ten entries of updates, the library merges the oldest, and takes the machine's time
// for that of the write. If the engine's clock is ahead, as a virtual one may be, it may merge the newest
// instead, whose manager loses its name.
//
// Entries of a version that the kind does not have, or that its objects do not fit, are
// dropped when the object is written. [Versions] knows those of several versions, and [Forms] those of
// versions with other fields, or of other groups.
//
// Merging does not know integers of 2^63 or more. An apply that would round one is refused.
//
// Merging takes time that grows with the square of the items of a list that is merged. An object with 20,000 of
// them in one list, which any version merges, or with 40,000 fields of one map, cannot be applied to. Other
// writes of it are not recorded, and their writers are warned. The same holds for an object that has fewer,
// once too many managers own the items of a list: five of 18,000, or ten of 13,000. It also holds for one with
// 820 fields below keys of items of 20 KiB, since the keys are names in the managed fields.
//
// Programs that do not import this package do not link what it is made of.
package apply
