package apply

import (
	"bytes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
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
	changed, entries := false, live.GetManagedFields()
	present := map[string]*fieldpath.Set{}
	for i := range entries {
		version := entries[i].APIVersion
		if _, known := present[version]; !known {
			present[version], _ = a.presentIn(version, live) // nil keeps what is owned in a version that there is not
		}
		changed = keepPresent(&entries[i], present[version]) || changed
	}
	if changed {
		live.SetManagedFields(entries)
	}
	return changed
}

// presentIn returns the fields that an object has in the form of a version. The error says that it has no such form.
func (a *applier) presentIn(version string, live *unstructured.Unstructured) (*fieldpath.Set, error) {
	gv, err := runtimeschema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	there, err := a.types.ConvertToVersion(live, gv)
	if err != nil {
		return nil, err
	}
	typed, err := a.types.ObjectToTyped(there)
	if err != nil {
		return nil, err
	}
	return typed.ToFieldSet()
}

// keepPresent takes from an entry the fields that are not present, and reports whether there
// were any. It takes none if present is nil.
func keepPresent(e *metav1.ManagedFieldsEntry, present *fieldpath.Set) bool {
	owned, kept := &fieldpath.Set{}, &fieldpath.Set{}
	if present == nil || e.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
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
