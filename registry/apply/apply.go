package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/watchmill/watchmill/registry"
)

// New returns the server-side apply of a kind with an OpenAPI schema, for
// registry.Config.Apply.
//
// The error names the part of the schema that cannot be used for merging, such as a list
// without items.
func New(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	return Versions(nil)(kind, schema)
}

// Versions is [New] for a kind of several versions that differ in their schemas alone: schemas are the
// OpenAPI schemas of all, by version. A write in one keeps what managers own by writes in
// another, and an apply removes what its manager has applied in another and no longer names. The
// function that it returns fails as New does. It may be called concurrently: call Versions once for all versions,
// which then share what the schemas become.
func Versions(schemas map[string]json.RawMessage) func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	named := map[runtimeschema.GroupVersion]json.RawMessage{}
	for version, schema := range schemas {
		named[runtimeschema.GroupVersion{Version: version}] = schema
	}
	return ofAll(&openTypes{schemas: named, oneGroup: true})
}

// Convert returns an object in the form that another group or version has for the kind. The object is JSON as
// package encoding/json decodes it, except that integers are int64, and so is the result. Its members must not be
// changed, but may be those of the result. It must be pure, and is called concurrently.
type Convert func(object map[string]any, to runtimeschema.GroupVersion) (map[string]any, error)

// Forms is [Versions] for a kind whose objects have other fields in another version, or are of several groups, as
// the events of Kubernetes are: schemas are the OpenAPI schemas of all its forms, and convert turns objects of
// one into another. If an object cannot be converted, what managers own by writes in the other form has no owner any
// more. A list may merge in another form, where it has another name: so the owners of an object with a list of more than
// 20,000 items are not kept, and an apply to it is refused, as if it merged here.
func Forms(schemas map[runtimeschema.GroupVersion]json.RawMessage, convert Convert) func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	return ofAll(&openTypes{schemas: maps.Clone(schemas), convert: convert})
}

// ofAll is [New] for a version of those of all.
func ofAll(all *openTypes) func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	all.known = map[runtimeschema.GroupVersionKind]openType{}
	return func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
		root, err := completed(schema)
		if err != nil {
			return nil, fmt.Errorf("the schema: %w", err)
		}
		types, err := typesOf(kind, root, false)
		if err != nil {
			return nil, fmt.Errorf("the schema: %w", err)
		}
		return newApplier(kind, types, root, all)
	}
}

// Deduced is [New] without the schema: every list is atomic, and every map has a field
// for each key.
func Deduced(kind registry.Kind, _ json.RawMessage) (registry.Applier, error) {
	return newApplier(kind, managedfields.NewDeducedTypeConverter(), nil, nil)
}

// WithTypes is [New] with types in place of the schema: for the kinds of Kubernetes itself,
// NewTypeConverter of k8s.io/client-go/applyconfigurations has them. They know the keys of lists
// that the tags of Go types do not have, such as the protocol of a port, which has a default. The
// function that it returns is for registry.Config.Apply, too.
func WithTypes(types managedfields.TypeConverter) func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	return func(kind registry.Kind, _ json.RawMessage) (registry.Applier, error) {
		return newApplier(kind, types, anyList(), nil)
	}
}

// applier is the [registry.Applier] of a kind.
type applier struct {
	kind  registry.Kind
	types versions
	// schemas say which lists merge, in the version that is served and in others; nil if none does.
	schemas []*spec.Schema
	// fields are the field managers, by what is written.
	fields map[part]*managedfields.FieldManager
}

// part is the part of an object that a write is of, as registry.Manager says.
type part struct {
	subresource string
	statusOnly  bool
}

func newApplier(kind registry.Kind, served managedfields.TypeConverter, schema *spec.Schema, all *openTypes) (*applier, error) {
	gvk := kind.GroupVersionKind()
	types := versions{kind: gvk, served: served}
	others := types.addOthers(kind, all)
	a := &applier{kind, types, append(others, schema), map[part]*managedfields.FieldManager{}}
	for written, mine := range parts(kind) {
		var filter map[fieldpath.APIVersion]fieldpath.Filter
		if mine != nil {
			filter = map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gvk.GroupVersion().String()): mine}
		}
		var err error
		a.fields[written], err = managedfields.NewDefaultCRDFieldManager(types, types, types, types, gvk, gvk.GroupVersion(), written.subresource, filter)
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// parts returns the fields that writes may set, nil for all. A write of the object, or of one of its further parts,
// leaves status alone. A write of status sets only status and metadata, or only status. A write of scale has
// changed nothing but its own field.
func parts(kind registry.Kind) map[part]fieldpath.Filter {
	all := map[part]fieldpath.Filter{{}: nil, {subresource: "scale"}: nil}
	if kind.Status {
		status := fieldpath.MakePrefixMatcherOrDie("status")
		all[part{}] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
		all[part{subresource: "status"}] = fieldpath.NewIncludeMatcherFilter(status, fieldpath.MakePrefixMatcherOrDie("metadata"))
		all[part{subresource: "status", statusOnly: true}] = fieldpath.NewIncludeMatcherFilter(status)
	}
	for _, p := range kind.Parts {
		all[part{subresource: p.Name}] = all[part{}]
	}
	return all
}

// Apply implements [registry.Applier].
func (a *applier) Apply(live, config map[string]any, by registry.Manager, force bool) (map[string]any, error) {
	if err := cmp.Or(a.affordable(live), a.affordable(config)); err != nil {
		return nil, &registry.BadRequestError{Reason: errTooMany.Error(), Cause: errTooMany}
	}
	before, desired := object(live), object(config)
	if _, err := a.types.ObjectToTyped(desired); err != nil {
		return nil, &registry.BadRequestError{Reason: fmt.Sprintf("the configuration does not fit the schema of %s: %v", a.kind.Kind, err), Cause: err}
	}
	fields, err := a.fieldsOf(by)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	merged, err := fields.Apply(before, desired, by.Name, force)
	if a.withoutAbsent(before, err) {
		merged, err = fields.Apply(before, desired, by.Name, force)
	}
	if err != nil {
		return nil, failure(err)
	}
	o, isMap := merged.(*unstructured.Unstructured)
	if !isMap {
		return nil, fmt.Errorf("the merged object is a %T", merged)
	}
	o.SetManagedFields(retimed(o.GetManagedFields(), before.GetManagedFields(), began, by.At))
	return o.Object, nil
}

// Update implements [registry.Applier].
func (a *applier) Update(live, next map[string]any, by registry.Manager) ([]metav1.ManagedFieldsEntry, error) {
	if err := cmp.Or(a.affordable(live), a.affordable(next)); err != nil {
		return nil, err
	}
	before, after := object(live), object(next)
	fields, err := a.fieldsOf(by)
	if err != nil {
		return nil, err
	}
	known := append(before.GetManagedFields(), after.GetManagedFields()...)
	began := time.Now()
	out, err := fields.Update(before, after, by.Name)
	if err != nil {
		return nil, err
	}
	m, isObject := out.(metav1.Object)
	if !isObject {
		return nil, fmt.Errorf("the object is a %T", out)
	}
	return retimed(m.GetManagedFields(), known, began, by.At), nil
}

// fieldsOf returns the field manager for what by writes.
func (a *applier) fieldsOf(by registry.Manager) (*managedfields.FieldManager, error) {
	fields := a.fields[part{by.Subresource, by.StatusOnly}]
	if fields == nil {
		return nil, fmt.Errorf("%s has no subresource %q", a.kind.Kind, by.Subresource)
	}
	return fields, nil
}

// object returns fields as an object whose metadata can be set without changing
// fields.
func object(fields map[string]any) *unstructured.Unstructured {
	fields = maps.Clone(fields)
	if meta, isObject := fields["metadata"].(map[string]any); isObject {
		fields["metadata"] = maps.Clone(meta)
	}
	return &unstructured.Unstructured{Object: fields}
}

// retimed sets the time of new entries to at. New are those since began, whose time is the
// system clock's, and those without a time, which add an owner and nothing else.
// It puts the entries in the order of their times.
func retimed(entries, known []metav1.ManagedFieldsEntry, began, at time.Time) []metav1.ManagedFieldsEntry {
	for i := range entries {
		e := &entries[i]
		if (e.Time == nil || !e.Time.Time.Before(began.Truncate(time.Second))) && !wasSo(e, known) {
			e.Time = &metav1.Time{Time: at}
		}
	}
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(strings.Compare(string(a.Operation), string(b.Operation)), cmp.Compare(seconds(a.Time), seconds(b.Time)))
	})
	return entries
}

// seconds returns a time since 1970, zero for none.
func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// wasSo reports whether known has the entry's manager with the entry's time.
func wasSo(e *metav1.ManagedFieldsEntry, known []metav1.ManagedFieldsEntry) bool {
	for i := range known {
		k := &known[i]
		if k.Manager == e.Manager && k.Operation == e.Operation && k.Subresource == e.Subresource && k.Time.Equal(e.Time) {
			return true
		}
	}
	return false
}

// failure returns an error of the field manager as the registry's error that means the
// same. An error that is neither a conflict nor the configuration's fault says that the
// stored object does not fit the schema. Trying again does not help, so it is an internal
// error, and not one of storage.
func failure(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return apierrors.NewInternalError(fmt.Errorf("the stored object does not merge: %w", err))
	}
	switch {
	case apierrors.IsConflict(status):
		e := &registry.FieldConflictError{Message: status.ErrStatus.Message}
		for _, cause := range status.ErrStatus.Details.Causes {
			e.Conflicts = append(e.Conflicts, registry.FieldConflict{Field: cause.Field, Message: cause.Message})
		}
		// The merge has the managers, which the messages name, in a map.
		slices.SortStableFunc(e.Conflicts, func(a, b registry.FieldConflict) int { return strings.Compare(a.Message, b.Message) })
		return e
	case apierrors.IsBadRequest(status):
		return &registry.BadRequestError{Reason: status.ErrStatus.Message, Cause: err}
	}
	return err
}
