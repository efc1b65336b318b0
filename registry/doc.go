// Package registry applies the rules of kinds, which are types of objects with
// Kubernetes' metadata, to all writes of their objects. A [Store] holds the objects of
// one kind in an engine. Its [Resource] is what package serve puts on the network, so
// that writers in the process and clients outside obey the same rules.
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
// A kind's Go type is any struct that embeds metav1.TypeMeta and metav1.ObjectMeta, or
// unstructured.Unstructured, a map, where the fields are known only at run time: package
// registry/crd makes such kinds. A [Kind] names it, a [Strategy] has its rules, and each
// [Column] is one of tables of it. Only the kind's version and name are required.
//
// # What the store keeps
//
// An object's namespace and name are its key. The store sets uid,
// creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds and
// generation, which grows when anything but metadata and status changes. The
// resourceVersion of a stored value is empty: the revision is that of the
// engine's object, and is put in when the object is encoded.
//
// With Config.Apply the store also keeps metadata.managedFields: which manager owns which
// field. [Store.Apply] merges a manager's configuration into an object, and every other
// write is recorded under its WriteOptions.Manager. Package registry/apply does the
// merging.
//
// With Config.Conversion storage may have objects in another form than the kind shows, such as that of
// another version, or of a time before it had a default. A cache converts them, and not its readers.
//
// A deletion only marks an object that has finalizers. The update that removes the last
// of them deletes it.
//
// # Concurrency
//
// All methods are safe for concurrent use. Objects handed out are shared and must
// not be changed. The functions of a Strategy, and admitters, may be called from
// several goroutines, and more than once for one write if other writes came in
// between: they must change nothing but the object that they are given for that.
//
// # Errors
//
// They are the engine's, an [*InvalidError] for an object that breaks the rules, an
// [*AdmissionError] for a write that an admitter refuses, a [*BadRequestError] for a
// request that makes no sense, and a [*FieldConflictError] for an apply of fields that
// other managers own.
package registry
