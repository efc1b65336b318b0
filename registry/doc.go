// Package registry applies the rules of a kind to all writes of its objects. A kind is a
// type of objects with Kubernetes' metadata. A [Store] holds the objects of one kind in an
// engine. Package serve puts the store's [Resource] on the network, so that writers in the
// process and clients outside obey the same rules.
//
//	serve: bytes and options          in the process: T
//	        │ Resource                        │ Store[T]
//	        └──────────────┬──────────────────┘
//	                       ▼
//	     decode, default ─▶ preconditions ─▶ Admit ─▶ system fields ─▶ Prepare
//	                                                                      │
//	     stored, or dry run ◀─ Canonicalize ◀─ warnings ◀─ Validate, metadata
//	                       │
//	                       ▼                      reads and watches go around all this
//	             engine.Engine[T] ──▶ backend      └──▶ Store.Engine
//
// # Usage
//
// A kind's Go type is any struct that embeds metav1.TypeMeta and metav1.ObjectMeta. Where the
// fields are known only at run time it is unstructured.Unstructured, a map; package
// registry/crd makes such kinds. A [Kind] names it, a [Strategy] has its rules, and a [Column]
// is for tables, such as kubectl prints. Only the kind's version and name are required.
//
// # What the store keeps
//
// An object's namespace and name are its key. The store sets uid, creationTimestamp,
// deletionTimestamp, deletionGracePeriodSeconds and generation. The generation grows when
// anything changes except metadata and, where it is a subresource, status; and when the object is
// marked as deleted. The resourceVersion of a stored value is empty: it is the revision of the
// engine's object, and is put in when the object is encoded.
//
// With Config.Apply the store also keeps metadata.managedFields: which manager owns which
// field. [Store.Apply] merges a manager's configuration into an object, and every other
// write is recorded under its WriteOptions.Manager. Package registry/apply does the
// merging.
//
// With Config.Conversion storage may have objects in another form than the kind shows, such
// as that of another version, or of a time before it had a default. The cache converts them
// once, for all readers.
//
// A deletion only marks an object that has finalizers, or that [Strategy].Keep keeps. The
// update after which nothing keeps it deletes it. With Config.GarbageCollection the deletion
// may add a finalizer, for which a garbage collector orphans or deletes what the object owns.
//
// # Concurrency
//
// All methods are safe for concurrent use. Objects handed out are shared and must
// not be changed.
//
// The functions of a Strategy, and admitters, may be called from several goroutines, and
// more than once for one write if other writes came in between. They must change nothing
// but the object that they are given for that.
//
// # Errors
//
// Errors are the engine's, or one of these:
//
//   - [*InvalidError]: the object breaks the rules.
//   - [*AdmissionError]: an admitter refuses the write.
//   - [*BadRequestError]: the request is wrong, whatever is stored.
//   - [*FieldConflictError]: an apply names fields that other managers own.
package registry
