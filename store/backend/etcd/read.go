package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Get returns the newest object under key, linearizably.
//
// Errors: [store.ErrNotFound], a [*store.KeyError], a [*backend.UndecodableError],
// [backend.ErrUnavailable], [backend.ErrDenied], [store.ErrClosed], ctx's cause.
func (b *Backend) Get(ctx context.Context, key string) (*store.Object, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer call.end()
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	before := b.newest.Load()
	resp, err := b.client.Get(ctx, b.keys.of(key))
	if err != nil {
		return nil, readError(ctx, fmt.Sprintf("reading %q", key), err)
	}
	if err := b.observe(resp.Header, before); err != nil {
		return nil, err
	}
	if len(resp.Kvs) == 0 {
		return nil, &store.NotFoundError{Key: key}
	}
	o, unknown := b.values.decode(resp.Kvs[0], time.Now())
	if unknown != nil {
		return nil, unknown
	}
	return o, nil
}

// The most objects of one request. The first request of a list is small, since most lists
// are, and each later one is twice as large.
const (
	firstPage = 500
	mostPage  = 10_000
)

// maxUndecodable is how many values that cannot be decoded a list names.
const maxUndecodable = 100

// listAttempts is how often a list of the newest state is tried, since etcd may compact
// the revision that it reads at.
const listAttempts = 3

// List returns a page of objects in key order, read in requests of at most 10,000 at
// one revision. If values cannot be decoded, it fails with up to 100
// [*backend.UndecodableError], joined. Remaining is etcd's count, so that it includes keys below the
// prefix that cannot name an object.
func (b *Backend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer call.end()
	scan, err := opts.Scan()
	if err != nil {
		return nil, err
	}
	if scan.Revision != 0 {
		if err := b.checkScan(ctx, scan); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		l := &listing{backend: b, scan: scan, at: scan.Revision}
		page, err := l.run(ctx)
		if errors.Is(err, rpctypes.ErrCompacted) && scan.Revision == 0 && attempt < listAttempts {
			continue
		}
		return page, l.compactedError(ctx, err)
	}
}

// checkScan returns an error if the history that a scan needs was compacted.
func (b *Backend) checkScan(ctx context.Context, scan backend.Scan) error {
	at, err := b.position(ctx)
	if err != nil {
		return err
	}
	return scan.Check(max(at.floor, store.Revision(b.compacted.Load())), at.revision)
}

// listing is a list that is being read.
type listing struct {
	backend *Backend
	scan    backend.Scan
	// at is the revision to read at; zero until the first answer.
	at        store.Revision
	items     []*store.Object
	remaining int
	unknown   []error
	// page is the limit of the next request.
	page int
}

// run reads all that the scan covers.
func (l *listing) run(ctx context.Context) (*backend.List, error) {
	l.items, l.page = []*store.Object{}, firstPage
	for _, s := range l.backend.keys.listed(l.scan.Prefix, l.scan.After) {
		if err := l.read(ctx, s); err != nil {
			return nil, err
		}
	}
	if len(l.unknown) > 0 {
		return nil, errors.Join(l.unknown...)
	}
	list := &backend.List{Revision: l.at, Items: l.items, Remaining: l.remaining}
	if l.remaining > 0 {
		list.Continue = backend.Token{Revision: l.at, Start: l.items[len(l.items)-1].Key}.Encode()
	}
	return list, nil
}

// compactedError returns the error for a list that has failed with err.
func (l *listing) compactedError(ctx context.Context, err error) error {
	if !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	oldest, failed := l.backend.findCompacted(ctx)
	if failed != nil {
		return failed
	}
	if expired := l.scan.Check(oldest, max(oldest, l.scan.Revision)); expired != nil {
		return expired
	}
	return &store.ExpiredError{Requested: l.at, Oldest: oldest}
}

// full reports whether the list has all the objects that it may have.
func (l *listing) full() bool { return l.scan.Limit > 0 && len(l.items) >= l.scan.Limit }

// read reads a range, or counts it if the list is full.
func (l *listing) read(ctx context.Context, s span) error {
	for {
		resp, err := l.request(ctx, s)
		if status.Code(err) == codes.ResourceExhausted && l.page > 1 {
			l.page /= 2
			continue
		}
		if err != nil {
			return err
		}
		if l.full() {
			l.remaining += int(resp.Count)
			return nil
		}
		l.add(resp)
		if l.full() || !resp.More {
			return nil
		}
		s.start = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		l.page = min(2*l.page, mostPage)
	}
}

// request requests the next objects of a range, at the revision of the first answer.
func (l *listing) request(ctx context.Context, s span) (*clientv3.GetResponse, error) {
	opts := []clientv3.OpOption{clientv3.WithRange(s.end), clientv3.WithRev(int64(l.at))}
	switch {
	case l.full():
		opts = append(opts, clientv3.WithCountOnly())
	case l.scan.Limit > 0:
		opts = append(opts, clientv3.WithLimit(int64(min(l.page, l.scan.Limit-len(l.items)))))
	default:
		opts = append(opts, clientv3.WithLimit(int64(l.page)))
	}
	before := l.backend.newest.Load()
	resp, err := l.backend.client.Get(ctx, s.start, opts...)
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil, err
	}
	if err != nil {
		return nil, readError(ctx, "listing", err)
	}
	if err := l.backend.observe(resp.Header, before); err != nil {
		return nil, err
	}
	if l.at == 0 {
		l.at = store.Revision(resp.Header.Revision)
	}
	return resp, nil
}

// add adds the objects of an answer.
func (l *listing) add(resp *clientv3.GetResponse) {
	now := time.Now()
	for _, kv := range resp.Kvs {
		if !l.backend.nameable(kv.Key) {
			continue
		}
		o, unknown := l.backend.values.decode(kv, now)
		if unknown != nil && len(l.unknown) < maxUndecodable {
			l.unknown = append(l.unknown, unknown)
		}
		l.items = append(l.items, o)
		kv.Value = nil // frees the bytes, which are decoded
	}
	if l.full() {
		l.remaining += int(resp.Count) - len(resp.Kvs)
	}
}

// nameable reports whether a place below the prefix can be an object's. Other programs
// may have written keys that cannot.
func (b *Backend) nameable(place []byte) bool {
	err := store.ValidateKey(b.keys.key(place))
	if err != nil {
		b.report(fmt.Errorf("%q in etcd is left out: it is below the prefix, but not an object's: %w", place, err))
	}
	return err == nil
}
