package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/reads"
	"github.com/watchmill/watchmill/store"
)

// Resource is a kind, or a subresource of one, without its Go type, as a server needs it.
// All methods are safe for concurrent use. Those with a context block as storage does;
// ctx bounds them. Their errors are those of [Store] and [engine.Engine].
//
// It may gain methods: a type of your own is a Resource by embedding one, and may have other methods
// in place of some of that one's.
type Resource interface {
	// Info describes the resource. It returns the same at every call.
	Info() *Info
	// Get returns the object under key.
	Get(ctx context.Context, key string, opts engine.GetOptions) (Item, error)
	// List returns a page of objects.
	List(ctx context.Context, opts engine.ListOptions) (Page, error)
	// Watch starts a watch.
	Watch(ctx context.Context, opts engine.WatchOptions) (Stream, error)
	// WaitForRevision blocks until reads see the revision, for at most FreshnessTimeout and a few
	// seconds; without a cache it asks storage at once. After that the error is
	// [engine.ErrFuture] if storage does not have the revision either. If storage has it, or
	// does not answer, the error is [engine.ErrNotReady]: the cache is behind, and asking again
	// may help. Storage that has ended for good, or denies the answer, has its own error.
	WaitForRevision(ctx context.Context, rev engine.Revision) error
	// Timeline returns the history that revisions belong to now. It blocks until the
	// cache has been filled.
	Timeline(ctx context.Context) (engine.Timeline, error)
	// Create stores the object in body, which is JSON.
	Create(ctx context.Context, namespace string, body []byte, opts WriteOptions) (Item, error)
	// Update replaces the object under key by the one that change returns as JSON. live
	// is zero if there is no object. change may be called several times; created reports
	// that there was no object.
	Update(ctx context.Context, key string, change func(live Item) ([]byte, error), opts WriteOptions) (it Item, created bool, err error)
	// Apply applies a configuration to the object under key, or creates it: see
	// [Store.Apply].
	Apply(ctx context.Context, key string, config []byte, opts WriteOptions) (it Item, created bool, err error)
	// Delete deletes the object under key, or marks it; gone reports which.
	Delete(ctx context.Context, key string, opts DeleteOptions) (it Item, gone bool, err error)
	// DeleteCollection deletes the objects that which selects, and returns their last states. With
	// which.Limit it deletes at most that many, and the page has the token for the others.
	DeleteCollection(ctx context.Context, which engine.ListOptions, opts DeleteOptions) (Page, error)
	// Readiness returns whether the engine below can serve. It does not block.
	Readiness() engine.Readiness

	isResource()
}

// Info describes a resource.
type Info struct {
	Kind Kind
	// Subresource is "", "status", "scale", one of [Kind].Parts, or that of an action; see [NewAction].
	Subresource string
	// Object is the kind of the objects if that is not Kind, as for a scale or an action.
	Object Kind
	// Verbs are those that the resource has: get, list, watch, create, update, patch,
	// delete, deletecollection.
	Verbs []string
	// Columns are those of tables, besides Name and Age.
	Columns []ColumnInfo
	// NoName: Name is left out. NoAge: Age is left out, unless it is one of Columns.
	NoName, NoAge bool
	// Schema is the kind's OpenAPI schema.
	Schema json.RawMessage
	// Fields are the fields that selectors may name.
	Fields []string
	// Decoders turn bodies that are not JSON into JSON, by media type.
	Decoders map[string]func(body []byte) ([]byte, error)
	// StorageVersion is the version in which storage has the objects; empty if the store is a
	// replica of another server, which stores them.
	StorageVersion string
	// Deprecated is the warning for clients that use the kind's version; empty means none.
	Deprecated string
	// Unstructured: the objects have no Go type of their own, like those of
	// CustomResourceDefinitions. As in Kubernetes, each item of their lists then has its
	// apiVersion and kind; items of other lists have neither.
	Unstructured bool
	// CreateOnUpdate: an update of an object that does not exist creates it.
	CreateOnUpdate bool
	// Apply: there is server-side apply.
	Apply bool
	// StrategicMerge merges strategic merge patches; nil means that there are none.
	StrategicMerge Merge
}

// ColumnInfo is a [Column] without its function.
type ColumnInfo struct {
	Name, Type, Format, Description string
	Priority                        int
}

// StorageHeader is the header that identifies the storage which the revisions of an
// answer belong to: the path-escaped [engine.Timeline.Store]. Each list has it, and each
// watch that continues from a revision, unless the storage has no identity. Clients of
// the Kubernetes API ignore it; a replica detects by it that its origin was restored, and
// ignores one of more than 1 KiB, or with control characters.
const StorageHeader = "Watchmill-Storage"

// Page is a page of a list.
type Page struct {
	objects  []*store.Object
	of       *form
	Revision engine.Revision
	// Continue is the token for the next page; "" on the last.
	Continue string
	// Remaining is the number of objects after this page, -1 if unknown.
	Remaining int
	// Timeline is the history that Revision belongs to.
	Timeline engine.Timeline
}

// Len returns the number of items.
func (p *Page) Len() int { return len(p.objects) }

// Item returns item i, from 0 to Len()-1.
func (p *Page) Item(i int) Item { return Item{p.objects[i], p.of} }

// Stream is a running watch. Only one goroutine at a time may call Next; the other
// methods are safe for concurrent use. It may gain methods: a type of your own is a Stream by
// embedding one.
type Stream interface {
	// Next blocks until there are events, and returns at least one. The events are shared
	// and must not be changed. Some may be [engine.Emitted], which are not state.
	Next(ctx context.Context) ([]store.Event, error)
	// Item returns the object of an event.
	Item(o *store.Object) Item
	// Stop ends the watch.
	Stop()
	// Revision returns the revision from which a new watch would continue; zero during an
	// initial state.
	Revision() engine.Revision
	// Lag returns how many events lie ahead of the consumer; see [engine.Watch.Lag].
	Lag() uint64

	isStream()
}

// verbs returns the verbs of the kind or a subresource.
func (c *core) verbs(subresource string) []string {
	part := c.kind.part(subresource)
	switch {
	case c.readOnly && part != nil && !slices.Contains(part.Verbs, "get"):
		return nil
	case c.readOnly && subresource != "":
		return []string{"get"}
	case c.readOnly:
		return []string{"get", "list", "watch"}
	case part != nil:
		return slices.Clone(part.Verbs)
	case subresource != "":
		return slices.Clone(partVerbs)
	case c.noDeleteCollection:
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// SplitKey returns the namespace and the name in a key; namespace is "" if the key has no
// slash.
func SplitKey(key string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		return namespace, name
	}
	return "", key
}

// ObjectKind returns the kind of the resource's objects.
func (i *Info) ObjectKind() *Kind {
	if i.Object.Kind != "" {
		return &i.Object
	}
	return &i.Kind
}

// resource is a store, or its status, as a [Resource].
type resource struct {
	*core
	subresource string
	shown       *form // of the items
}

func (r *resource) Info() *Info {
	return &Info{
		Kind: r.kind, Subresource: r.subresource, Verbs: r.verbs(r.subresource), Columns: r.columns, NoName: r.noName, NoAge: r.noAge,
		Schema: r.core.schema, Fields: r.fields.Names(), Decoders: r.decoders, CreateOnUpdate: r.createOnUpdate && r.subresource == "",
		Unstructured: r.unstructured,
		Apply:        r.applies(), StrategicMerge: r.mergeObject, StorageVersion: r.storageVersion, Deprecated: r.deprecated,
	}
}

// item returns the item of an object, none with an error.
func (r *resource) item(o *store.Object, err error) (Item, error) {
	if err != nil {
		return Item{}, err
	}
	return Item{o, r.shown}, nil
}

// changed returns the item of a write, and did, which says what the write has done, such as created the object;
// none and false with an error.
func (r *resource) changed(o *store.Object, did bool, err error) (Item, bool, error) {
	it, err := r.item(o, err)
	return it, did && err == nil, err
}

func (r *resource) Get(ctx context.Context, key string, opts engine.GetOptions) (Item, error) {
	return r.item(r.engine.Get(ctx, key, opts))
}

func (r *resource) List(ctx context.Context, opts engine.ListOptions) (Page, error) {
	if err := r.fields.Check(opts.Fields, opts.FieldSelector); err != nil {
		return Page{}, err
	}
	l, err := r.engine.List(ctx, opts)
	if err != nil {
		return Page{}, err
	}
	return Page{objects: l.Items, of: r.shown, Revision: l.Revision, Continue: l.Continue, Remaining: l.Remaining, Timeline: l.Timeline}, nil
}

func (r *resource) Watch(ctx context.Context, opts engine.WatchOptions) (Stream, error) {
	if err := r.fields.Check(opts.Fields, opts.FieldSelector); err != nil {
		return nil, err
	}
	w, err := r.engine.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return stream{w, r.shown}, nil
}

func (r *resource) WaitForRevision(ctx context.Context, rev engine.Revision) error {
	return r.engine.WaitForRevision(ctx, rev)
}

func (r *resource) Timeline(ctx context.Context) (engine.Timeline, error) {
	return r.engine.Timeline(ctx)
}

func (r *resource) Readiness() engine.Readiness { return r.engine.Readiness() }

func (*resource) isResource() {}

func (r *resource) Create(ctx context.Context, namespace string, body []byte, opts WriteOptions) (Item, error) {
	switch {
	case r.subresource != "":
		return Item{}, engine.ErrUnsupported
	case r.forwarder != nil:
		return r.item(forwarding{r.core}.create(ctx, namespace, body, opts))
	}
	draft, err := r.decode(body, &opts)
	if err != nil {
		return Item{}, err
	}
	return r.item(r.create(ctx, draft, namespace, opts))
}

func (r *resource) Update(ctx context.Context, key string, change func(live Item) ([]byte, error), opts WriteOptions) (Item, bool, error) {
	body := func(live *store.Object) ([]byte, error) { return change(Item{live, r.shown}) }
	if r.forwarder != nil {
		return r.changed(forwarding{r.core}.update(ctx, key, r.subresource, body, opts))
	}
	opts.unread = r.subresource != scaleSubresource
	return r.changed(r.update(ctx, key, r.subresource, func(old *store.Object) (*store.Object, error) {
		text, err := body(old)
		if err != nil {
			return nil, err
		}
		return r.draftOf(old, text, &opts)
	}, opts))
}

// draftOf returns the draft that the body of an update makes of old.
func (r *resource) draftOf(old *store.Object, body []byte, opts *WriteOptions) (*store.Object, error) {
	if r.subresource == scaleSubresource {
		s, err := r.decodeScale(body, opts)
		if err != nil {
			return nil, err
		}
		return r.scaled(old, s)
	}
	if err := r.checkGrowth(body, old, opts); err != nil {
		return nil, err
	}
	return r.decode(body, opts)
}

func (r *resource) Apply(ctx context.Context, key string, config []byte, opts WriteOptions) (Item, bool, error) {
	return r.changed(r.core.apply(ctx, key, r.subresource, config, opts))
}

func (r *resource) Delete(ctx context.Context, key string, opts DeleteOptions) (Item, bool, error) {
	if r.subresource != "" {
		return Item{}, false, engine.ErrUnsupported
	}
	return r.changed(r.delete(ctx, key, opts))
}

func (r *resource) DeleteCollection(ctx context.Context, which engine.ListOptions, opts DeleteOptions) (Page, error) {
	if r.subresource != "" {
		return Page{}, engine.ErrUnsupported
	}
	if err := r.fields.Check(which.Fields, which.FieldSelector); err != nil {
		return Page{}, err
	}
	deleted, err := r.deleteCollection(ctx, which, opts)
	if err != nil {
		return Page{}, err
	}
	return Page{objects: deleted.Items, of: r.shown, Revision: deleted.Revision, Continue: deleted.Continue, Remaining: -1}, nil
}

// stream is a watch as a [Stream].
type stream struct {
	reads.Watch
	shown *form
}

func (s stream) Item(o *store.Object) Item { return Item{o, s.shown} }

func (stream) isStream() {}
