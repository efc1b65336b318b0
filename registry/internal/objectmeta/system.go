package objectmeta

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// DropSystemFields clears the fields that a creation cannot set.
func DropSystemFields(m metav1.Object) {
	m.SetUID("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	m.SetGeneration(0)
}

// KeepSystemFields restores the fields that an update cannot change.
func KeepSystemFields(m, old metav1.Object) {
	m.SetUID(old.GetUID())
	m.SetCreationTimestamp(old.GetCreationTimestamp())
	m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	m.SetGeneration(old.GetGeneration())
	m.SetSelfLink("")
}

// Identify sets the fields of a new object that identify it.
func Identify(m metav1.Object, now metav1.Time) {
	m.SetUID(uuid.NewUUID())
	m.SetCreationTimestamp(now)
	m.SetGeneration(1)
}

// CopyClientFields copies the fields that clients set from one object to another, except its names. The maps and
// lists are shared.
func CopyClientFields(to, from metav1.Object) {
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
	to.SetFinalizers(from.GetFinalizers())
	to.SetOwnerReferences(from.GetOwnerReferences())
}

// SameManagers reports whether two lists of managed fields are equal apart from their times and from the order
// that follows from these.
func SameManagers(a, b []metav1.ManagedFieldsEntry) bool {
	return equality.Semantic.DeepEqual(timeless(a), timeless(b))
}

// timeless returns entries without their times, in an order that does not depend on
// them.
func timeless(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	all := slices.Clone(entries)
	for i := range all {
		all[i].Time = nil
	}
	slices.SortFunc(all, func(a, b metav1.ManagedFieldsEntry) int {
		return slices.Compare(
			[]string{string(a.Operation), a.Manager, a.Subresource, a.APIVersion},
			[]string{string(b.Operation), b.Manager, b.Subresource, b.APIVersion},
		)
	})
	return all
}
