// Package registry keeps the rules of kinds: objects with Kubernetes' metadata,
// and what may be written of them. A [Store] applies the rules of one kind to an
// engine, and is at the same time the [Resource] that package serve puts on the
// network, so that callers in the process and clients outside obey the same ones.
//
//	serve: bytes and options          in the process: T
//	        │ Resource                        │ Store[T]
//	        └──────────────┬──────────────────┘
//	                       ▼
//	     decode, default ─▶ system fields ─▶ Admit ─▶ preconditions ─▶ Prepare
//	                                                                      │
//	     stored, or dry run ◀─ Canonicalize ◀─ warnings ◀─ Validate, metadata
//	                       │
//	                       ▼                      reads and watches go around all this
//	             engine.Engine[T] ──▶ backend      └──▶ Store.Engine
//
// # Usage
//
// A kind's Go type is any struct that embeds metav1.TypeMeta and
// metav1.ObjectMeta. A [Kind] names it, a [Strategy] decides, [Column]s show it.
// All of them are optional but the kind's group, version and name.
//
// # What the store keeps
//
// An object's name and namespace are its key. The store owns uid,
// creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds and
// generation, which grows when anything but metadata and status changes. The
// resourceVersion of a stored value is empty: the revision is that of the
// engine's object, and is put in when the object is encoded.
//
// With Config.Apply it also keeps metadata.managedFields: which manager owns which field.
// [Store.Apply] merges what a manager says of an object into it, and every other write is
// recorded under its WriteOptions.Manager. Package registry/apply does the merging.
//
// An object with finalizers is marked when it is deleted, and goes when an update
// takes the last of them.
//
// # Concurrency
//
// All methods are safe for concurrent use. Objects handed out are shared and must
// not be changed. The functions of a Strategy, and admitters, may be called from
// several goroutines, and again for one write when others wrote in between: they
// must have no effect but on the object that they are given to change.
//
// # Errors
//
// They are the engine's, an [*InvalidError] for an object that breaks the rules,
// a [*BadRequestError] for a request that makes no sense, and a [*FieldConflictError]
// for an apply of fields that other managers own.
package registry
