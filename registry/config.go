package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/registry/internal/openapi"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Config configures a store. Only Kind is required.
type Config[T any] struct {
	Kind     Kind
	Strategy Strategy[T]
	// Admit are called for every write, in this order, and may refuse it. A replica must have none,
	// since it passes writes on to a server with rules of its own; what its users may do is for
	// Authorize of package serve.
	Admit []Admitter
	// ReadOnly: the resources of the store have the verbs get, list and watch alone, so that a server
	// refuses every write of its clients. The program itself writes by the store as always.
	ReadOnly bool
	// NoDeleteCollection leaves out the verb deletecollection, so that clients delete the objects one by
	// one, as they do the namespaces of Kubernetes. The program itself has [Store.DeleteCollection] as always.
	NoDeleteCollection bool
	// Columns are those of tables, besides Name and Age.
	Columns []Column[T]
	// NoName leaves Name out, for a kind that has it elsewhere among Columns, or nowhere. NoAge leaves Age
	// out, unless it is one of Columns.
	NoName, NoAge bool
	// Fields are the fields that selectors may name besides metadata.name and
	// metadata.namespace, each with a function that returns its value. Stores that share a
	// backend, such as those of several versions, must have the same unless they have a
	// Conversion: storage has the values as the writer found them.
	Fields map[string]func(obj *T) string
	// HiddenFields are the names of those of Fields that selectors must not name, such as the fields
	// of other versions of the kind: by them they would match nothing, or everything. They are hidden
	// from the users of Resources, and not from those of the engine.
	HiddenFields []string
	// Scale gives the kind a scale subresource; nil means none.
	Scale *Scale[T]
	// Schema is the kind's OpenAPI schema. Nil means one made from T's tags: json, and
	// description for the descriptions of fields. Without that tag the descriptions are what the method SwaggerDoc of
	// a type returns, which Kubernetes' types have: those of fields by their names in JSON, and its own by "".
	Schema json.RawMessage
	// StorageVersion is the version in which storage has the objects, for a kind that is served
	// in several versions; "" means that of Kind. Discovery tells clients of it by a hash. A
	// replica has none.
	StorageVersion string
	// Prune removes the fields of a value to be written that the kind does not have, and
	// returns their paths. It is for a T that decodes every field, such as a map. Nil
	// keeps all fields.
	Prune func(obj *T) []string
	// TTL is how long an object lives after the last write that has changed it. Then storage deletes it. A
	// deletion that only marks it does not prolong that. Zero means for ever. A replica does not use it.
	TTL time.Duration
	// Deprecated is the warning for clients that use the kind's version: each answer to them
	// has it as a Warning header. Empty means none.
	Deprecated string
	// Conversion converts values into the form in which Engine.Backend has them, and back. Nil means
	// that they are as the store writes them, as they always are in memory of the engine's own.
	// A replica does not use it.
	Conversion *Conversion[T]
	// Decoders turn bodies that are not JSON into JSON, by media type, in lower case and
	// without parameters, for clients that send nothing else. Bodies of deletions, which are DeleteOptions, and Scales go through
	// them too. A decoder must be pure, and gets untrusted input.
	Decoders map[string]func(body []byte) ([]byte, error)
	// Apply makes the kind's server-side apply, which also records in
	// metadata.managedFields which manager owns which field. Nil means neither. New of
	// package registry/apply is such a function. It is called once, with the kind's
	// schema; a replica does not use it.
	Apply func(kind Kind, schema json.RawMessage) (Applier, error)
	// StrategicMerge makes the merging of strategic merge patches from the tags of a Go type,
	// to a zero value of which its argument points. Nil means that such patches are refused,
	// as for Kubernetes' custom resources. New of package registry/strategic is such a
	// function, and Untagged one for kinds without tags. It is called once for T, and with Scale once
	// for the type of scales.
	StrategicMerge func(of any) (Merge, error)
	// GarbageCollection says that a garbage collector runs beside the server, such as that of a
	// kube-controller-manager. A deletion whose Propagation is Orphan or Foreground then marks the object
	// with a finalizer, and the collector, which removes it, first orphans or deletes the objects that the
	// marked one owns. Without the field a collector deletes even those that were to be orphaned. Without a
	// collector the marked objects stay. A replica does not use the field: the server that it passes
	// deletions on to decides.
	GarbageCollection bool
	// Engine configures the engine below: Backend, Host, Window and so on. The store sets
	// Key, Labels, Fields and Equal; these, and LabelValues, must be left out. So must Carry: the
	// store's writes do not call it, but the Strategy gets their contexts. And so must SetRevision,
	// which would make a write of each update that changes nothing: an [Item] has the revision, and
	// so does the [engine.Object]. A BookmarkPeriod of zero means 25 s, in which a server says on each
	// watch that it goes on: many proxies close a connection on which nothing has come for 30 to 60 s.
	Engine engine.Config[T]
}

// bookmarkPeriod is the default of Engine.BookmarkPeriod.
const bookmarkPeriod = 25 * time.Second

// columnTypes are those that a [Column] may have.
var columnTypes = []string{"string", "integer", "number", "boolean", "date"}

// validate returns an [*engine.ConfigError] for the first field that is wrong.
func (c *Config[T]) validate() error {
	for _, check := range []func() error{c.Kind.validate, c.validateEngine, c.validateFields, c.validateForm, c.validateType} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateEngine refuses settings of the engine that the store makes, or that would have no effect,
// and nil admitters.
func (c *Config[T]) validateEngine() error {
	e := &c.Engine
	switch {
	case e.Key != nil || e.Labels != nil || e.LabelValues != nil || e.Fields != nil || e.Equal != nil:
		return &engine.ConfigError{Field: "Engine", Problem: "sets Key, Labels, LabelValues, Fields or Equal, which come from the metadata; leave them out, and declare fields in Config.Fields"}
	case e.Carry != nil:
		return &engine.ConfigError{Field: "Engine.Carry", Problem: "is set, but is not called for the store's writes; set what is to be carried in Strategy.Prepare, which gets the context"}
	case e.SetRevision != nil:
		return &engine.ConfigError{Field: "Engine.SetRevision", Problem: "is set, but the resourceVersion is not part of a stored object; leave it out, and read the Revision of the engine.Object"}
	case c.TTL < 0:
		return &engine.ConfigError{Field: "TTL", Problem: fmt.Sprintf("is %v, which is negative; zero means that objects do not expire", c.TTL)}
	case len(c.Admit) > 0 && forwarderOf(e.Backend) != nil:
		return &engine.ConfigError{Field: "Admit", Problem: "is set for a replica, which passes writes on; give the admitters to the server that stores the objects"}
	}
	for i, by := range c.Admit {
		if by == nil {
			return &engine.ConfigError{Field: fmt.Sprintf("Admit[%d]", i), Problem: "is nil; give an Admitter, such as an AdmitFunc"}
		}
	}
	return nil
}

// validateFields validates the fields for selectors, and the decoders, both in the order of their names.
func (c *Config[T]) validateFields() error {
	var fields, decoders usercode.FirstError
	for name, get := range c.Fields {
		fields.Add(name, validateField(name, get == nil))
	}
	for media, decode := range c.Decoders {
		decoders.Add(media, validateDecoder(media, decode == nil))
	}
	if err := fields.Err(); err != nil {
		return err
	}
	if err := decoders.Err(); err != nil {
		return err
	}
	for _, name := range c.HiddenFields {
		if c.Fields[name] == nil {
			return &engine.ConfigError{Field: "HiddenFields", Problem: fmt.Sprintf("has %q, which is not in Fields; leave it out", name)}
		}
	}
	return nil
}

// validateDecoder refuses a decoder that no body would go through.
func validateDecoder(media string, missing bool) error {
	problem := ""
	if plain, parameters, err := mime.ParseMediaType(media); err != nil || plain != media || len(parameters) > 0 {
		problem = fmt.Sprintf("has %q; give a media type in lower case and without parameters, such as application/yaml", media)
	} else if missing {
		problem = fmt.Sprintf("has no function for %q; give one that returns JSON", media)
	}
	if problem == "" {
		return nil
	}
	return &engine.ConfigError{Field: "Decoders", Problem: problem}
}

// validateForm validates what describes the objects to clients: columns, scale, schema and version.
func (c *Config[T]) validateForm() error {
	for i, col := range c.Columns {
		if col.Name == "" || col.Type == "" || col.Value == nil {
			return &engine.ConfigError{Field: fmt.Sprintf("Columns[%d]", i), Problem: "needs a Name, a Type and a Value"}
		}
		if !slices.Contains(columnTypes, col.Type) {
			return &engine.ConfigError{Field: fmt.Sprintf("Columns[%d].Type", i), Problem: fmt.Sprintf("is %q; give one of %s", col.Type, strings.Join(columnTypes, ", "))}
		}
	}
	if err := c.Scale.validate(); err != nil {
		return err
	}
	if c.Schema != nil && !isObject(c.Schema) {
		return &engine.ConfigError{Field: "Schema", Problem: "is no JSON object; give an OpenAPI schema, or leave it out to have one made from T"}
	}
	if c.StorageVersion != "" && len(validation.IsDNS1035Label(c.StorageVersion)) > 0 {
		return &engine.ConfigError{Field: "StorageVersion", Problem: fmt.Sprintf("is %q; give a version such as v1, or leave it out for that of Kind", c.StorageVersion)}
	}
	return nil
}

// isObject reports whether text is an object of JSON or null, which stands for an empty one.
func isObject(text json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(text, &fields) == nil
}

// validateType refuses a T whose metadata cannot be copied with it, or that lacks the status of Kind.
func (c *Config[T]) validateType() error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return &engine.ConfigError{Field: "T", Problem: fmt.Sprintf("is %v; give a struct that embeds metav1.TypeMeta and metav1.ObjectMeta", t)}
	}
	zero := any(new(T)).(interface {
		metav1.Object
		GetObjectKind() schema.ObjectKind
	})
	set := func() {
		zero.SetName("")
		zero.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if err := usercode.Call("SetName", "", set); err != nil {
		return &engine.ConfigError{Field: "T", Problem: fmt.Sprintf("is %v, whose metadata is in a pointer; embed metav1.TypeMeta and metav1.ObjectMeta themselves, since copies would share what is behind a pointer", t)}
	}
	if c.Kind.Status && !layout.HasStatus(t) {
		return &engine.ConfigError{Field: "Kind.Status", Problem: fmt.Sprintf("is set, but %v has no status; give it a field with the tag json:\"status\", in no pointer that it embeds", t)}
	}
	return nil
}

// openAPISchema returns a copy of the kind's schema or, if there is none, one made from T's tags.
func (c *Config[T]) openAPISchema() json.RawMessage {
	if c.Schema == nil {
		return openapi.Of(reflect.TypeFor[T]())
	}
	return bytes.Clone(c.Schema)
}

// validateField returns an [*engine.ConfigError] if a field is one that every kind has, or its
// function is nil.
func validateField(name string, isNil bool) error {
	switch {
	case name == "metadata.name" || name == "metadata.namespace":
		return &engine.ConfigError{Field: "Fields", Problem: fmt.Sprintf("has a function for %q, which every kind has; leave it out", name)}
	case isNil:
		return &engine.ConfigError{Field: "Fields", Problem: fmt.Sprintf("has no function for %q; give one that returns the field's value", name)}
	}
	return nil
}

// engineConfig returns the configuration of the engine below the store.
func engineConfig[T any, P Ptr[T]](c *Config[T]) engine.Config[T] {
	e := c.Engine
	kind := c.Kind
	e.Key = func(v T) string { return kind.Key(P(&v).GetNamespace(), P(&v).GetName()) }
	e.Labels = func(v T) labels.Set { return P(&v).GetLabels() }
	e.Fields = engine.Fields[T]{}
	for name, get := range fieldsOf[T, P](c) {
		e.Fields[name] = func(v T) string { return get(&v) }
	}
	e.Equal = equalOf[T, P]()
	e.Name = cmp.Or(e.Name, kind.GroupResource().String())
	e.BookmarkPeriod = cmp.Or(e.BookmarkPeriod, bookmarkPeriod)
	return e
}

// fieldsOf returns the functions of all fields that objects of a kind are selected by.
func fieldsOf[T any, P Ptr[T]](c *Config[T]) map[string]func(*T) string {
	all := map[string]func(*T) string{
		"metadata.name":      func(v *T) string { return P(v).GetName() },
		"metadata.namespace": func(v *T) string { return P(v).GetNamespace() },
	}
	maps.Copy(all, c.Fields)
	return all
}

// equalOf returns the function that compares two objects. It ignores the version in their TypeMeta, if
// they have one: that is the version in which a writer knows them, and is not stored.
func equalOf[T any, P Ptr[T]]() func(a, b T) bool {
	t := reflect.TypeFor[T]()
	same := layout.Equality(t)
	if !hasTypeMeta(t) {
		return func(a, b T) bool { return same.DeepEqual(a, b) }
	}
	return func(a, b T) bool {
		of, with := P(&a).GetObjectKind(), P(&b).GetObjectKind()
		if kind := of.GroupVersionKind(); kind != with.GroupVersionKind() {
			with.SetGroupVersionKind(kind) // of this function's copy
		}
		return same.DeepEqual(a, b)
	}
}

// hasTypeMeta reports whether objects of a type have the version in a field of their own.
func hasTypeMeta(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	f, found := t.FieldByName("TypeMeta")
	return found && len(f.Index) == 1 && f.Type == reflect.TypeFor[metav1.TypeMeta]()
}

// Schema returns the schema of the kind's objects, for the constructor of the backend
// that is Config.Engine.Backend. It does not validate cfg: [New] does, and [FormatOf].
func Schema[T any, P Ptr[T]](cfg Config[T]) store.Schema {
	cfg.Kind = cfg.Kind.withDefaults()
	return engineConfig[T, P](&cfg).Schema()
}
