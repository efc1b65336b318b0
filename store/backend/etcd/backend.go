package etcd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/apart"
	"github.com/watchmill/watchmill/usercode"
)

// Backend is objects of one type in an etcd cluster, below a prefix, which any
// number of processes read and write at a time. All methods are safe for concurrent
// use, and wait for the network.
type Backend struct {
	config Config
	client *clientv3.Client
	owned  bool // the client is closed with the backend
	keys   keyspace
	values values
	leases leases

	// life ends when the backend is closed.
	life context.Context
	end  context.CancelCauseFunc
	// running counts the calls and goroutines that Close waits for.
	running sync.WaitGroup

	cluster uint64 // the cluster's ID
	// elsewhere is nil if the newest answer was of that cluster.
	elsewhere atomic.Pointer[ClusterError]
	// newest is the highest revision of a linearizable answer so far.
	newest atomic.Uint64
	// floor is the revision to which Compact, here or in another process, has compacted
	// this prefix. compacted is the revision to which etcd itself is known to be
	// compacted.
	floor, compacted atomic.Uint64
	// streams numbers the watches.
	streams atomic.Uint64

	mu      sync.Mutex // guards all below
	closed  bool
	watches map[*watcher]struct{}
	calls   calls
}

var (
	_ backend.Backend    = (*Backend)(nil)
	_ backend.Identifier = (*Backend)(nil)
)

// New returns a backend of the objects below cfg.Prefix. It requests the version of each
// member and the newest revision; ctx bounds only that.
//
// Errors: [*usercode.ConfigError], also if the endpoints lead to several clusters;
// [*VersionError]; [backend.ErrUnavailable], [backend.ErrDenied]; ctx's cause.
func New(ctx context.Context, cfg Config) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	b := &Backend{config: cfg, client: cfg.Client, keys: newKeyspace(cfg.Prefix), watches: map[*watcher]struct{}{}}
	b.values = values{prefix: cfg.Prefix, keys: b.keys, schema: cfg.Schema, codec: cfg.Codec, sealer: cfg.Sealer}
	b.leases = newLeases(cfg.LeasePool)
	b.life, b.end = context.WithCancelCause(context.Background())
	b.calls = newCalls(b.endOverdue)
	if b.client == nil {
		var err error
		if b.client, err = cfg.dial(ctx, b.newAvoidance()); err != nil {
			return nil, err
		}
		b.owned = true
	}
	if err := b.open(ctx); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// open checks the members and the cluster, and starts to follow the floor.
func (b *Backend) open(ctx context.Context) error {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer call.end()
	if err := b.checkMembers(ctx); err != nil {
		return err
	}
	at, err := b.position(ctx)
	if err != nil {
		return err
	}
	b.floor.Store(uint64(at.floor))
	b.running.Go(func() { b.followFloor(at.revision) })
	return nil
}

// Traits: calls wait for the network, other processes write, too, and revisions are those
// of the whole cluster, which outlives the process.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Blocks: true, Shared: true, KeepsHistory: !b.config.NoHistory, Type: b.values.schema.Type}
}

// StoreID returns the cluster and the prefix. etcd gives a restored cluster another
// ID, unless it is told to keep it. It sends no request. Errors: [store.ErrClosed], ctx's cause.
func (b *Backend) StoreID(ctx context.Context) (string, error) {
	_, call, err := b.begin(ctx)
	if err != nil {
		return "", err
	}
	defer call.end()
	return fmt.Sprintf("etcd:%x:%s", b.cluster, b.config.Prefix), nil
}

// Revision returns the newest revision of the cluster, linearizably. It makes the watches
// of b request progress until they have reached that revision. Errors as for [Backend.Get],
// without those of the object.
func (b *Backend) Revision(ctx context.Context) (store.Revision, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer call.end()
	at, err := b.position(ctx)
	if err != nil {
		return 0, err
	}
	for _, w := range b.watching() {
		w.chase(at.revision)
	}
	return at.revision, nil
}

// Close ends every watch and every call with [store.ErrClosed], and waits for
// them. It closes the client unless that was given. A second Close does nothing.
func (b *Backend) Close() (err error) {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	running := b.calls.close()
	b.mu.Unlock()
	for _, c := range running {
		c.cancel(store.ErrClosed) // before the streams that it opens end, so that it fails with this
	}
	b.end(store.ErrClosed)
	defer func() { err = b.leave(first) }() // even if the Notify of a watch ends the goroutine
	usercode.Each(b.watching(), func(w *watcher) { w.finish(store.ErrClosed) })
	return nil
}

// leave waits for what goes on, and the first time closes the client unless that was given.
func (b *Backend) leave(first bool) error {
	b.running.Wait()
	if !first || !b.owned {
		return nil
	}
	if err := b.client.Close(); err != nil && err != context.Canceled {
		return fmt.Errorf("closing the client of etcd: %w", err)
	}
	return nil
}

// position is the state of the cluster as far as a backend needs it.
type position struct {
	// revision is the cluster's newest.
	revision store.Revision
	// floor is the revision to which Compact has compacted the prefix, version the etcd
	// version of the key that holds it, zero if there is none.
	floor   store.Revision
	version int64
}

// position reads the position of the cluster, linearizably, in one request.
func (b *Backend) position(ctx context.Context) (position, error) {
	before := b.newest.Load()
	resp, err := b.client.Get(ctx, b.keys.floor)
	if err != nil {
		return position{}, readError(ctx, "reading the revision", err)
	}
	if err := b.observe(resp.Header, before); err != nil {
		return position{}, err
	}
	at := position{revision: store.Revision(resp.Header.Revision)}
	if len(resp.Kvs) > 0 {
		at.floor, at.version = parseFloor(resp.Kvs[0]), resp.Kvs[0].ModRevision
	}
	return at, nil
}

// observe checks the header of a linearizable answer; before is the value of newest
// before the request. If the cluster has gone back since, as a restored one does, the
// watches beyond its revision end, since their positions now have another meaning, and
// what is known of its history is forgotten.
func (b *Backend) observe(h *pb.ResponseHeader, before uint64) error {
	if err := b.checkCluster(h); err != nil {
		return err
	}
	now := uint64(h.Revision)
	if now < before && b.newest.CompareAndSwap(before, now) {
		b.floor.Store(0)
		b.compacted.Store(0)
		for _, w := range b.watching() {
			w.wentBack(store.Revision(now))
		}
		return nil
	}
	for {
		newest := b.newest.Load()
		if now <= newest || b.newest.CompareAndSwap(newest, now) {
			return nil
		}
	}
}

// checkCluster returns a [*ClusterError] if an answer is another cluster's.
func (b *Backend) checkCluster(h *pb.ResponseHeader) error {
	if id := h.GetClusterId(); b.cluster != 0 && id != 0 && id != b.cluster {
		err := &ClusterError{Was: b.cluster, Is: id}
		b.elsewhere.Store(err)
		return err
	}
	if b.elsewhere.Load() != nil {
		b.elsewhere.Store(nil)
	}
	return nil
}

// Failure returns a [*ClusterError] if the newest answer was of another cluster, as all are once the cluster was
// restored: a new backend must be made. Otherwise it returns nil. It sends no request, and does not block.
func (b *Backend) Failure() error {
	if err := b.elsewhere.Load(); err != nil {
		return err
	}
	return nil
}

// watching returns the running watches.
func (b *Backend) watching() []*watcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*watcher, 0, len(b.watches))
	for w := range b.watches {
		all = append(all, w)
	}
	return all
}

// report passes an error to Config.OnError. A panic in it would end the program, or fail the
// read that found the error, and runtime.Goexit would end a watch, so they are reported in
// their turn, once.
func (b *Backend) report(err error) {
	if b.config.OnError == nil {
		return
	}
	told := func() { b.config.OnError(err) }
	if panicked := apart.Call("Config.OnError", told); panicked != nil {
		err = panicked
		_ = apart.Call("Config.OnError", told)
	}
}
