package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Backend is storage that holds the objects of one kind at a server. Make one with [New],
// and close it when done. All methods are safe for concurrent use. They block until the
// server answers or ctx is done. Each request also ends after [Config].RequestTimeout
// without an answer, with [backend.ErrUnavailable].
type Backend struct {
	config Config
	format *registry.Format
	kind   registry.Kind
	// client sends all requests but those of watches, which watches sends. Both are
	// [Config].Client, if that is set.
	client, watches *http.Client
	// storage is the identity of the server's storage in the last list or watch that had
	// one: "" if none had, nil before the first.
	storage atomic.Pointer[string]
	newest  *newest
	// held is the watch that the last list with State has begun; nil if it was taken over.
	held atomic.Pointer[hold]

	mu      sync.Mutex
	closed  bool
	running map[*watch]struct{}
}

var (
	_ backend.Backend         = (*Backend)(nil)
	_ backend.Identifier      = (*Backend)(nil)
	_ backend.Identifier      = (*watch)(nil)
	_ registry.Forwarder      = (*Backend)(nil)
	_ registry.ApplyForwarder = (*Backend)(nil)
)

// New returns a backend for the objects of format's kind at cfg's server. It sends no
// request: the first call reports a server that cannot be reached.
//
// Errors: [usercode.ErrConfig], as a [*usercode.ConfigError] that names the field.
func New(format *registry.Format, cfg Config) (*Backend, error) {
	if format == nil {
		return nil, &usercode.ConfigError{Field: "format", Problem: "is nil; give that of the kind, which registry.FormatOf returns"}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	kind := format.Kind()
	if kind.ClusterScoped && cfg.Namespace != "" {
		return nil, &usercode.ConfigError{
			Field: "Namespace", Problem: fmt.Sprintf("is %q, but a %s has no namespace; leave it out", cfg.Namespace, kind.Kind),
		}
	}
	b := &Backend{config: cfg, format: format, kind: kind, running: map[*watch]struct{}{}}
	b.client, b.watches = cfg.Client, cfg.Client
	if cfg.Client == nil {
		b.client, b.watches = newClient(cfg.TLS), newClient(cfg.TLS)
	}
	b.newest = newNewest(b.askNewest)
	return b, nil
}

// Traits reports that calls wait for the network, and end by themselves if nothing arrives, that other
// clients write to the storage, that lists tell its identity, and, unless [Config].NoHistory, that past states
// can be listed.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Blocks: true, Bounded: true, Shared: true, KeepsHistory: !b.config.NoHistory, Identifies: true, Type: b.format.Schema().Type}
}

// Get returns the newest object under key. One that [Config] does not select is not found,
// as in a list.
//
// Errors: [store.ErrNotFound] and the server's other refusals, as a [*StatusError];
// [store.ErrInvalidKey], [backend.ErrUnavailable], [store.ErrClosed], a [*SizeError], or
// ctx's cause.
func (b *Backend) Get(ctx context.Context, key string) (*store.Object, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	r, err := named(http.MethodGet, key)
	if err != nil {
		return nil, err
	}
	switch {
	case b.config.Namespace != "" && r.namespace != b.config.Namespace:
		return nil, notSelected(key)
	case b.config.Labels != "" || b.config.Fields != "":
		return b.getSelected(ctx, key)
	}
	a, err := b.do(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", key, err)
	}
	return b.decode(a.body, time.Time{})
}

// getSelected returns the object under key if it matches the selectors. Only the server
// can evaluate the one of fields, so it is asked for a list.
func (b *Backend) getSelected(ctx context.Context, key string) (*store.Object, error) {
	list, err := b.List(ctx, backend.ListOptions{Prefix: key})
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", key, err)
	}
	for _, o := range list.Items {
		if o.Key == key {
			return o, nil
		}
	}
	return nil, notSelected(key)
}

func notSelected(key string) error { return fmt.Errorf("get: %w", &store.NotFoundError{Key: key}) }

// Put creates draft if prev is nil. Otherwise it replaces prev, and fails if the object
// is no longer at prev's revision.
//
// Errors: [store.ErrInvalidKey]; [store.ErrExists], [store.ErrConflict] and the server's
// other refusals, as a [*StatusError]; a [*backend.UncertainError] if the server may have
// stored draft, but did not say so, or its answer cannot be read; [store.ErrUnsupported] if opts has a TTL.
func (b *Backend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.TTL > 0 {
		return nil, fmt.Errorf("%w: the protocol has no TTL: leave it zero", store.ErrUnsupported)
	}
	r, err := named(http.MethodPut, draft.Key)
	if err != nil {
		return nil, err
	}
	version := ""
	if prev == nil || prev.Revision == 0 {
		r.method, r.name = http.MethodPost, ""
	} else {
		version = prev.Revision.String()
	}
	if r.body, err = b.format.Encode(draft, version); err != nil {
		return nil, err
	}
	a, err := b.do(ctx, r)
	if err != nil {
		return nil, outcome("put", draft.Key, err)
	}
	o, err := b.decode(a.body, time.Now())
	return o, unread("put", draft.Key, err)
}

// Remove deletes the object under prev's key if it is still at prev's revision. The
// server only marks an object with finalizers; the error is then a
// [store.ErrUnsupported]. Delete such objects by [Backend.ForwardDelete].
func (b *Backend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	if prev == nil || prev.Revision == 0 {
		return nil, &usercode.ConfigError{Field: "prev", Problem: "has no revision; give the object to remove as storage returned it"}
	}
	answer, at, err := b.ForwardDelete(ctx, prev.Key, registry.DeleteOptions{Revision: prev.Revision})
	switch {
	case err != nil:
		return nil, err
	case answer != nil:
		return nil, fmt.Errorf("%w: %q is being deleted, and goes when its finalizers are gone", store.ErrUnsupported, prev.Key)
	}
	schema := b.format.Schema()
	return schema.Gone(prev, max(at, prev.Revision+1), time.Now()), nil
}

// Revision returns the newest revision. It costs a list of one object, shared by all
// calls that wait when it is sent. Errors as for Get, without those of the object.
func (b *Backend) Revision(ctx context.Context) (store.Revision, error) {
	rev, _, err := b.newest.ask(ctx)
	return rev, err
}

// askNewest requests the newest revision and the identity of its storage, "" if the
// server does not say.
func (b *Backend) askNewest(ctx context.Context) (rev store.Revision, storage string, err error) {
	page, err := b.page(ctx, b.collection(""), url.Values{"limit": {"1"}})
	if err != nil {
		return 0, "", err
	}
	return page.revision, page.storage, nil
}

// Compact fails with [store.ErrUnsupported]: the server compacts its own history.
func (b *Backend) Compact(context.Context, store.Revision) error {
	return fmt.Errorf("%w: the server at %s compacts its history itself", store.ErrUnsupported, b.config.URL)
}

// Compacted returns zero, for unknown: the protocol does not report it. The error is
// [store.ErrClosed].
func (b *Backend) Compacted(context.Context) (store.Revision, error) { return 0, b.open() }

// Close ends every watch and every question for the newest revision, and waits for their
// goroutines. Later calls fail with [store.ErrClosed].
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	running := b.running
	b.running = nil
	b.mu.Unlock()
	for w := range running {
		w.end(store.ErrClosed)
	}
	for w := range running {
		w.Close()
	}
	b.letGo(b.held.Load())
	b.newest.close()
	if b.config.Client == nil {
		b.client.CloseIdleConnections()
		b.watches.CloseIdleConnections()
	}
	return nil
}

// open returns [store.ErrClosed] once the backend is closed.
func (b *Backend) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return store.ErrClosed
	}
	return nil
}

// decode returns the object in body, which is JSON. A zero written means that the time
// of the write is unknown, as for objects of a list: then the creation time takes its
// place.
func (b *Backend) decode(body []byte, written time.Time) (*store.Object, error) {
	o, err := b.format.Decode(body)
	if err != nil && !errors.Is(err, usercode.ErrPanic) {
		err = fmt.Errorf("%s: the server's object cannot be read: %v", b.config.URL, err) // %v, since Decode's error blames the caller
	}
	if err != nil {
		return nil, err
	}
	m := b.format.Meta(o)
	if !b.config.KeepManagedFields {
		m.SetManagedFields(nil)
	}
	o.Written = written
	if written.IsZero() {
		o.Written = m.GetCreationTimestamp().Time
	}
	o.Created = identity(m)
	return o, nil
}

// identity returns a number that differs between successive objects of one key. It is a
// hash of the uid, since no list says at which revision an object was created.
func identity(m metav1.Object) store.Revision {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.GetUID())) // a hash does not fail
	return store.Revision(h.Sum64()>>1 | 1)
}

// revisionOf parses a resourceVersion. If there is none, the answer is not of a server of the
// protocol, but of something in its place, so that asking again may help.
func revisionOf(text string) (store.Revision, error) {
	if text == "" || text == "0" {
		return 0, errors.New("there is no resourceVersion")
	}
	rev, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the resourceVersion is %q, and not a decimal number", store.ErrUnsupported, text)
	}
	return store.Revision(rev), nil
}

// collection returns a request for the smallest collection that has all keys with the
// prefix: an object, those of a namespace, or those of all namespaces.
func (b *Backend) collection(prefix string) *request {
	path := strings.TrimSuffix(prefix, "/")
	namespace, name, _ := strings.Cut(path, "/")
	if b.kind.ClusterScoped {
		namespace, name = "", path
	}
	r := &request{method: http.MethodGet, namespace: cmp.Or(b.config.Namespace, namespace), query: url.Values{}, prefix: prefix}
	if !strings.Contains(name, "/") { // no name has one
		r.only = name
	}
	return r
}

// selectors adds the selectors of the configuration to a query, and one of the objects of the
// name only, unless that is "".
func (b *Backend) selectors(q url.Values, only string) {
	if b.config.Labels != "" {
		q.Set("labelSelector", b.config.Labels)
	}
	selector := b.config.Fields
	if only != "" {
		selector = strings.TrimPrefix(selector+","+fields.OneTermEqualSelector("metadata.name", only).String(), ",")
	}
	if selector != "" {
		q.Set("fieldSelector", selector)
	}
}
