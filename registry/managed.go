package registry

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Applier is server-side apply of one kind: it merges the configurations that
// managers apply into objects, and keeps in metadata.managedFields which manager owns
// which field. Package registry/apply has one.
//
// Objects are JSON as Go has it, with apiVersion and kind: they are shared, and must not
// be changed. The methods are pure and safe for concurrent use.
type Applier interface {
	// Decode reads a configuration, and returns what is there twice. An error says
	// what is wrong with the configuration.
	Decode(text []byte) (config map[string]any, strict []error, err error)
	// Apply returns what config makes of live, with the new managed fields in it. live
	// has neither a uid nor managed fields if there is no object yet.
	//
	// Errors: a [*FieldConflictError], or a [*BadRequestError] for a config that does
	// not fit the schema.
	Apply(live, config map[string]any, by Manager, force bool) (map[string]any, error)
	// Update returns the managed fields of next, which replaces live in a write that
	// is no apply. Those that next has count, if they can be read.
	Update(live, next map[string]any, by Manager) ([]metav1.ManagedFieldsEntry, error)
}

// Manager is what writes fields.
type Manager struct {
	// Name is what the writer calls itself; "" is unknown.
	Name string
	// Subresource is what it writes to: "" or "status".
	Subresource string
	// At is the time of the write.
	At time.Time
}

// manager returns the manager of a write.
func (c *core) manager(subresource string, opts *WriteOptions) Manager {
	return Manager{Name: opts.Manager, Subresource: subresource, At: c.timestamp().Time}
}

// track records in the draft's managed fields that the writer sets what differs from
// old. An apply has done so. A record that fails is told, and does not refuse the
// write: as far as it goes, the fields stay with those who had them.
func (c *core) track(draft, old *store.Object, subresource string, opts *WriteOptions) {
	m := c.meta(draft)
	switch {
	case c.applier == nil || opts.unrecorded:
		m.SetManagedFields(nil)
		return
	case opts.applied:
		return
	}
	entries, err := c.updatedFields(draft, old, subresource, opts)
	if err != nil {
		opts.warn("metadata.managedFields stay as they were: " + err.Error())
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
		// A writer that sends an empty list takes the record back, and JSON leaves
		// empty lists out.
		setField(next, []any{}, metadataField, managedField)
	}
	panicked := usercode.Call("Config.Apply", c.keyOf(draft), func() {
		entries, err = c.applier.Update(live, next, c.manager(subresource, opts))
	})
	if panicked != nil {
		return nil, panicked
	}
	return entries, err
}

// fieldsOf returns the object as JSON, without the fields that its kind does not have;
// nothing but the kind if there is none.
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
		if o, err = c.layout.deepClone(o); err != nil {
			return nil, err
		}
		c.prune(o)
	}
	return c.layout.fields(o, version)
}

// setField sets a member of the members that path leads to.
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

// keepTimes undoes new times of managed fields if nothing else differs from old, so that
// what changes nothing is not written.
func (c *core) keepTimes(draft, old *store.Object) {
	m := c.meta(draft)
	now, before := m.GetManagedFields(), c.meta(old).GetManagedFields()
	if len(now) == 0 || !equality.Semantic.DeepEqual(timeless(now), timeless(before)) {
		return
	}
	m.SetManagedFields(before)
	if !c.form.schema.Equal(draft, old) {
		m.SetManagedFields(now)
	}
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

// checkNesting refuses a configuration that is nested too deep.
func checkNesting(value any, depth int) error {
	if depth > maxDepth {
		return badRequest("the configuration is nested more than %d deep", maxDepth)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if err := checkNesting(member, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkNesting(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
