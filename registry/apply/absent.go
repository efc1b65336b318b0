package apply

import (
	"bytes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// withoutAbsent takes the fields that live does not have from their owners, and reports
// whether there were any. The stored object can have fewer fields than the merged one: a Go
// type leaves out an empty map, for instance. It is called only after a conflict, since it
// reads everything that is owned.
func (a *applier) withoutAbsent(live *unstructured.Unstructured, conflict error) bool {
	if !apierrors.IsConflict(conflict) {
		return false
	}
	typed, err := a.types.ObjectToTyped(live)
	if err != nil {
		return false
	}
	present, err := typed.ToFieldSet()
	if err != nil {
		return false
	}
	changed, entries := false, live.GetManagedFields()
	for i := range entries {
		changed = keepPresent(&entries[i], present) || changed
	}
	if changed {
		live.SetManagedFields(entries)
	}
	return changed
}

// keepPresent takes from an entry the fields that are not present, and reports whether there
// were any.
func keepPresent(e *metav1.ManagedFieldsEntry, present *fieldpath.Set) bool {
	owned, kept := &fieldpath.Set{}, &fieldpath.Set{}
	if e.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return false
	}
	for p := range owned.All() {
		if has(present, p) {
			kept.Insert(p.Copy())
		}
	}
	if kept.Size() == owned.Size() {
		return false
	}
	text, err := kept.ToJSON()
	if err != nil {
		return false
	}
	e.FieldsV1.SetRawBytes(text)
	return true
}

// has reports whether a field is in the set, or one below it.
func has(set *fieldpath.Set, p fieldpath.Path) bool {
	if set.Has(p) {
		return true
	}
	for _, element := range p {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}
