package registry

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Names of fields in JSON.
const (
	metadataField = "metadata"
	versionField  = "resourceVersion"
	managedField  = "managedFields"
)

// Applier is server-side apply of one kind: it merges the configurations that managers
// apply into objects, and keeps in metadata.managedFields which manager owns which field.
// Package registry/apply has one.
//
// Objects are JSON as package encoding/json decodes it, with apiVersion and kind. They
// are shared and must not be changed. The methods must be pure and safe for concurrent
// use. It never gains methods.
type Applier interface {
	// Decode reads a configuration. strict are its repeated fields; err says why it
	// cannot be read.
	Decode(text []byte) (config map[string]any, strict []error, err error)
	// Apply returns live as config changes it, with the new managed fields. live has
	// neither a uid nor managed fields if there is no object yet.
	//
	// Errors: a [*FieldConflictError], a [*BadRequestError] for a config that does not fit
	// the schema, or a StatusError of k8s.io/apimachinery for any other answer.
	Apply(live, config map[string]any, by Manager, force bool) (map[string]any, error)
	// Update returns the managed fields of next, which replaces live in a write that is
	// not an apply. It starts from those in next, if they can be read.
	Update(live, next map[string]any, by Manager) ([]metav1.ManagedFieldsEntry, error)
}

// Manager identifies the writer of a write.
type Manager struct {
	// Name is the name that the writer gives itself; "" is unknown.
	Name string
	// Subresource is the one that is written: "", "status", "scale" or one of [Kind].Parts.
	Subresource string
	// StatusOnly: the write leaves the metadata as it was, like one of status with
	// [Strategy].StatusOnly.
	StatusOnly bool
	// At is the time of the write, by the engine's clock.
	At time.Time
}

// manager returns the manager of a write.
func (c *core) manager(subresource string, opts *WriteOptions) Manager {
	statusOnly := c.statusOnly && subresource == statusSubresource
	return Manager{Name: opts.Manager, Subresource: subresource, StatusOnly: statusOnly, At: c.timestamp().Time}
}

// maxManagers is how many entries of managed fields a body may have: far more than objects have, which
// is ten of updates and one of each manager that applies. More count as left out, like those that
// cannot be read: a body has room for a million, and each takes 2 KB while it is read.
const maxManagers = 1000

// trackFields records in the draft's managed fields that the writer owns the fields that differ
// from old. An apply has done that already. If it fails the write goes on, and its writer is
// warned if it succeeds: the fields keep the owners that they had.
func (c *core) trackFields(draft, old *store.Object, subresource string, opts *WriteOptions) {
	m := c.meta(draft)
	opts.untracked = nil
	switch {
	case c.applier == nil || opts.unrecorded:
		m.SetManagedFields(nil)
		return
	case opts.applied:
		return
	case len(m.GetManagedFields()) > maxManagers:
		m.SetManagedFields(nil)
	}
	entries, err := c.updatedFields(draft, old, subresource, opts)
	if err != nil {
		opts.untracked = err
		entries = nil
		if old != nil {
			entries = c.meta(old).GetManagedFields()
		}
	}
	m.SetManagedFields(entries)
}

// updatedFields asks the applier for the managed fields of a draft.
func (c *core) updatedFields(draft, old *store.Object, subresource string, opts *WriteOptions) (entries []metav1.ManagedFieldsEntry, err error) {
	live, err := c.fieldsOf(old)
	if err != nil {
		return nil, err
	}
	next, err := c.fieldsOf(draft)
	if err != nil {
		return nil, err
	}
	if given := c.meta(draft).GetManagedFields(); given != nil && len(given) == 0 {
		// An empty list resets the managed fields, but is left out of JSON.
		setField(next, []any{}, metadataField, managedField)
	}
	panicked := usercode.Call("Config.Apply", c.keyOf(draft), func() {
		entries, err = c.applier.Update(live, next, c.manager(subresource, opts))
	})
	if panicked != nil {
		return nil, panicked
	}
	if err != nil {
		return nil, err
	}
	return entries, checkRecorded(entries)
}

// checkRecorded refuses managed fields that could not be sent back: they have the keys of items, which are values
// in the object, as names.
func checkRecorded(entries []metav1.ManagedFieldsEntry) error {
	text, err := json.Marshal(map[string]any{metadataField: map[string]any{managedField: entries}})
	if err != nil {
		return err
	}
	return checkSent(text)
}

// fieldsOf returns the object as JSON, without the fields that its kind does not have. If
// there is no object, it returns apiVersion and kind alone.
func (c *core) fieldsOf(o *store.Object) (map[string]any, error) {
	if o == nil {
		kind := c.kind.GroupVersionKind()
		return map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, metadataField: map[string]any{},
		}, nil
	}
	version := ""
	if o.Revision > 0 {
		version = o.Revision.String()
	}
	if c.prunes {
		var err error
		if o, err = c.layout.DeepClone(o); err != nil {
			return nil, err
		}
		c.prune(o)
	}
	return c.layout.Fields(o, version)
}

// setField sets the field at path, which leads through nested objects.
func setField(fields map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, _ := fields[name].(map[string]any)
		if next == nil {
			next = map[string]any{}
			fields[name] = next
		}
		fields = next
	}
	fields[path[len(path)-1]] = value
}

// keepTimes restores the times of managed fields if nothing else differs from old, so
// that a write without a change is not stored.
func (c *core) keepTimes(draft, old *store.Object) {
	m := c.meta(draft)
	now, before := m.GetManagedFields(), c.meta(old).GetManagedFields()
	if len(now) == 0 || !objectmeta.SameManagers(now, before) {
		return
	}
	m.SetManagedFields(before)
	if !c.form.schema.Equal(draft, old) {
		m.SetManagedFields(now)
	}
}
