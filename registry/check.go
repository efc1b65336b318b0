package registry

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/fielderrors"
	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// conflictReason is Kubernetes' text for an update of an older state.
const conflictReason = "the object has been modified; please apply your changes to the latest version and try again"

// timestamp returns the current time in whole seconds, as metadata has it.
func (c *core) timestamp() metav1.Time { return metav1.Unix(c.now().Unix(), 0) }

// setNamespace sets the namespace of an object to that of the request. The object of a
// cluster-scoped kind loses the namespace that its writer gave it, as it does in the API
// server: manifests may have that of their other objects.
func (f *form) setNamespace(m metav1.Object, namespace string) error {
	switch given := m.GetNamespace(); {
	case f.kind.ClusterScoped:
		m.SetNamespace("")
	case given == "":
		m.SetNamespace(namespace)
	case given != namespace:
		return badRequest("the namespace of the object, %q, does not match the namespace sent on the request, %q", given, namespace)
	}
	return nil
}

// dedupOwners drops repeated owner references, and warns of them.
func dedupOwners(m metav1.Object, opts *WriteOptions) {
	if objectmeta.DedupOwners(m) {
		opts.warn("metadata.ownerReferences has the same reference more than once: only one is kept")
	}
}

// check validates o and passes on warnings. old is nil for a creation.
func (c *core) check(ctx context.Context, o, old *store.Object, opts *WriteOptions) error {
	m := c.meta(o)
	wrong := objectmeta.Validate(m, !c.kind.ClusterScoped, c.validateName)
	if old != nil {
		wrong = append(wrong, objectmeta.ValidateUpdate(m, c.meta(old), old.Revision.String())...)
	}
	wrong = append(wrong, c.validate(context.WithValue(ctx, warnedKey{}, opts), o, old)...)
	if len(wrong) > 0 {
		return &InvalidError{Kind: c.kind, Name: m.GetName(), Errors: fielderrors.First(wrong)}
	}
	if opts.untracked != nil {
		opts.warn("metadata.managedFields stay as they were: " + opts.untracked.Error())
	}
	opts.warn(c.warnings(ctx, o, old)...)
	return nil
}

// callAdmitters calls the admitters, until one refuses, which is an [*AdmissionError].
func (c *core) callAdmitters(ctx context.Context, a *Admission) error {
	for _, admitter := range c.admit {
		if err := admitter.Admit(ctx, a); err != nil {
			return &AdmissionError{Key: c.admittedKey(a), Cause: err}
		}
	}
	return nil
}

// admittedKey returns the key of the object of a write, which ends with what is given of its name if the store
// has yet to generate it.
func (c *core) admittedKey(a *Admission) string {
	m := cmp.Or(a.Object, a.Old).(metav1.Object) // as every kind's pointer is
	return c.kind.Key(m.GetNamespace(), cmp.Or(m.GetName(), m.GetGenerateName()))
}

// pointer returns a pointer to o's value, nil if there is no object.
func (c *core) pointer(o *store.Object) any {
	if o == nil {
		return nil
	}
	return c.form.schema.Pointer(o)
}

// noRevision reports whether the resourceVersion in a write is none. Zero is none, as it is for
// the API server.
func noRevision(given string) bool { return given == "" || given == "0" }

// checkRevision compares the resourceVersion in a write, which may be required, with the object's.
func (c *core) checkRevision(given string, old *store.Object, required bool) error {
	if noRevision(given) {
		if required {
			path := field.NewPath(metadataField, versionField)
			return &InvalidError{Kind: c.kind, Name: c.meta(old).GetName(), Errors: field.ErrorList{
				field.Invalid(path, uint64(0), "must be specified for an update"),
			}}
		}
		return nil
	}
	rev, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return badRequest("metadata.resourceVersion is %q: give one that the server has returned, or none", given)
	}
	if engine.Revision(rev) != old.Revision {
		return &ConflictError{Key: old.Key, Reason: conflictReason}
	}
	return nil
}

// checkPreconditions returns a [*ConflictError] unless o has that uid and revision; "" and zero
// match any.
func (c *core) checkPreconditions(o *store.Object, uid string, revision engine.Revision) error {
	if got := string(c.meta(o).GetUID()); uid != "" && uid != got {
		return &ConflictError{Key: o.Key, Reason: fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, got)}
	}
	if revision != 0 && revision != o.Revision {
		return &ConflictError{Key: o.Key, Reason: fmt.Sprintf("Precondition failed: resourceVersion in object meta: %d, which is not that in precondition", o.Revision)}
	}
	return nil
}

// checkGrowth refuses text, which is to replace old, with a [*backend.TooLargeError] if it is larger than
// opts.MaxBytes and than old. Each patch may add as much as a body has, and what it costs to read and
// write an object grows with all of it.
func (c *core) checkGrowth(text []byte, old *store.Object, opts *WriteOptions) error {
	if opts.MaxBytes == 0 || int64(len(text)) <= opts.MaxBytes {
		return nil
	}
	if old != nil {
		before, err := c.layout.Encode(old, old.Revision.String(), false)
		if err != nil || len(text) <= len(before) {
			return err
		}
	}
	return &backend.TooLargeError{Size: len(text), Limit: int(opts.MaxBytes)}
}
