package registry

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/fielderrors"
	"github.com/watchmill/watchmill/store"
)

// Bounds of generated names: the characters of the base and of the random suffix, and how
// often a name that is taken is replaced by another.
const (
	maxNameBase  = 58
	nameSuffix   = 5
	nameAttempts = 8
)

// Names of fields in JSON.
const (
	metadataField = "metadata"
	versionField  = "resourceVersion"
	managedField  = "managedFields"
)

// conflictReason is Kubernetes' text for an update of an older state.
const conflictReason = "the object has been modified; please apply your changes to the latest version and try again"

// generateName returns base with a random suffix.
func generateName(base string) string {
	return base[:min(len(base), maxNameBase)] + rand.String(nameSuffix)
}

// dropSystemFields clears the fields that a creation cannot set.
func dropSystemFields(m metav1.Object) {
	m.SetUID("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	m.SetGeneration(0)
}

// keepSystemFields restores the fields that an update cannot change.
func keepSystemFields(m, old metav1.Object) {
	m.SetUID(old.GetUID())
	m.SetCreationTimestamp(old.GetCreationTimestamp())
	m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	m.SetGeneration(old.GetGeneration())
	m.SetSelfLink("")
}

// setIdentity sets the fields of a new object that identify it.
func (c *core) setIdentity(m metav1.Object) {
	m.SetUID(uuid.NewUUID())
	m.SetCreationTimestamp(c.timestamp())
	m.SetGeneration(1)
}

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

// dedupOwners drops repeated owner references, and warns of them. References to one owner
// that differ are all kept.
func dedupOwners(m metav1.Object, opts *WriteOptions) {
	refs := m.GetOwnerReferences()
	kept := make([]metav1.OwnerReference, 0, len(refs))
	seen := make(map[comparableOwner]bool, len(refs))
	for _, ref := range refs {
		if key := comparableOwnerOf(ref); !seen[key] {
			seen[key] = true
			kept = append(kept, ref)
		}
	}
	if len(kept) < len(refs) {
		m.SetOwnerReferences(kept)
		opts.warn("metadata.ownerReferences has the same reference more than once: only one is kept")
	}
}

// comparableOwner is an owner reference with what its pointers point to in their place: two
// are equal if all fields are.
type comparableOwner struct {
	ref                            metav1.OwnerReference // without its pointers
	controller, blockOwnerDeletion optionalBool
}

type optionalBool struct{ set, value bool }

func comparableOwnerOf(ref metav1.OwnerReference) comparableOwner {
	key := comparableOwner{ref, optional(ref.Controller), optional(ref.BlockOwnerDeletion)}
	key.ref.Controller, key.ref.BlockOwnerDeletion = nil, nil
	return key
}

func optional(b *bool) optionalBool { return optionalBool{b != nil, b != nil && *b} }

// check validates o and passes on warnings. old is nil for a creation.
func (c *core) check(ctx context.Context, o, old *store.Object, opts *WriteOptions) error {
	path := field.NewPath(metadataField)
	wrong := validation.ValidateObjectMetaAccessor(c.meta(o), !c.kind.ClusterScoped, c.validateName, path)
	if old != nil {
		m := c.meta(o)
		m.SetResourceVersion(old.Revision.String()) // which the validation requires
		wrong = append(wrong, validation.ValidateObjectMetaAccessorUpdate(m, c.meta(old), path)...)
		m.SetResourceVersion("")
		wrong = append(wrong, c.noNewFinalizers(o, old)...)
	}
	wrong = append(wrong, c.validate(context.WithValue(ctx, warnedKey{}, opts), o, old)...)
	if len(wrong) > 0 {
		return &InvalidError{Kind: c.kind, Name: c.meta(o).GetName(), Errors: fielderrors.First(wrong)}
	}
	if opts.untracked != nil {
		opts.warn("metadata.managedFields stay as they were: " + opts.untracked.Error())
	}
	opts.warn(c.warnings(ctx, o, old)...)
	return nil
}

// noNewFinalizers refuses finalizers that would hold up a deletion under way.
func (c *core) noNewFinalizers(o, old *store.Object) field.ErrorList {
	if c.meta(old).GetDeletionTimestamp() == nil {
		return nil
	}
	path := field.NewPath(metadataField, "finalizers")
	return validation.ValidateNoNewFinalizers(c.meta(o).GetFinalizers(), c.meta(old).GetFinalizers(), path)
}

// callAdmitters calls the admitters, until one refuses, which is an [*AdmissionError].
func (c *core) callAdmitters(ctx context.Context, a *Admission) error {
	for _, admitter := range c.admit {
		if err := admitter.Admit(ctx, a); err != nil {
			return &AdmissionError{err}
		}
	}
	return nil
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
