package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// maxTTL is the longest time to live: leases and the times in a header, which end in 2262,
// have no room for much more.
const maxTTL = 100 * 365 * 24 * time.Hour

// Put stores draft if the object under its key is still prev, in one request, and
// another one for a lease if there is a TTL. kine needs another one, too, for a prev of which
// only the revision is known. The object lives for at least its TTL: etcd rounds it up to
// whole seconds, at least two, and starts it again whenever its leader changes. The longest
// TTL is 100 years.
//
// Errors besides those of [backend.Backend]: [backend.ErrFull], [backend.ErrDenied],
// [backend.ErrUnavailable], [*backend.TooLargeError], those of codec and sealer, and
// [*backend.UncertainError] if the answer did not come: then the write may have been
// done, or may still be done.
func (b *Backend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.TTL > maxTTL {
		return nil, &usercode.ConfigError{Field: "PutOptions.TTL", Problem: fmt.Sprintf("is %v, which is more than %v; zero means that the object never expires", opts.TTL, maxTTL)}
	}
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer call.end()
	if err := store.ValidateKey(draft.Key); err != nil {
		return nil, err
	}
	if prev != nil && prev.Revision == 0 {
		prev = nil
	}
	w := write{verb: "put", key: draft.Key, prev: prev}
	if err := b.completeOnKine(ctx, &w); err != nil {
		return nil, err
	}
	if opts.KeepExpiry && !w.complete() {
		if w.prev, err = b.whole(ctx, prev); err != nil {
			return nil, err
		}
	}
	written := time.Now()
	expires := opts.Expires(written, w.prev)
	ttl := b.chooseLease(&w, opts, expires)
	if w.value, err = b.values.encode(draft, written, expires); err != nil {
		return nil, err
	}
	at, err := b.put(ctx, &w, ttl)
	if err != nil {
		return nil, err
	}
	if err := b.values.schema.Stamp(draft, at); err != nil {
		return nil, &backend.UncertainError{Verb: w.verb, Key: w.key, Cause: err}
	}
	draft.Revision, draft.Created, draft.Written, draft.Expires = at, at, written, expires
	if prev != nil {
		draft.Created = w.created
		store.ShareAttributes(draft, prev)
	}
	return draft, nil
}

// chooseLease returns the time to live of the lease that w needs, or zero if it needs none or keeps that of
// the object it replaces.
func (b *Backend) chooseLease(w *write, opts backend.PutOptions, expires time.Time) time.Duration {
	switch {
	case !opts.KeepExpiry || w.prev == nil:
		return opts.TTL
	case b.cluster != 0:
		w.keepLease = true // even one of another program, which the object does not show
	case !expires.IsZero():
		// kine, which names no cluster, would drop the lease: it takes one for the rest.
		return max(time.Until(expires), 1)
	}
	return 0
}

// completeOnKine reads the complete object that w replaces, if only its key and revision are known:
// the answer of kine, which names no cluster, does not have it. One that cannot be decoded stays
// as it is, so that it can be replaced.
func (b *Backend) completeOnKine(ctx context.Context, w *write) error {
	if b.cluster != 0 || w.complete() {
		return nil
	}
	prev, err := b.whole(ctx, w.prev)
	switch {
	case errors.Is(err, backend.ErrUndecodable):
		return nil
	case err == nil:
		w.prev = prev
	}
	return err
}

// whole reads the complete object of a prev that has only a key and a revision.
func (b *Backend) whole(ctx context.Context, prev *store.Object) (*store.Object, error) {
	o, err := b.Get(ctx, prev.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return o, backend.CheckExpected(prev.Key, o, prev.Revision)
}

// put writes, on a lease if there is a TTL. If the lease no longer exists it tries once
// more, on another one.
func (b *Backend) put(ctx context.Context, w *write, ttl time.Duration) (store.Revision, error) {
	if ttl == 0 {
		return b.commit(ctx, w, clientv3.NoLease)
	}
	for attempt := 0; ; attempt++ {
		lease, err := b.leases.take(ctx, b, ttl)
		if err != nil {
			return 0, err
		}
		at, err := b.commit(ctx, w, lease.id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) && attempt == 0 {
			lease.gone.Store(true)
			continue
		}
		if err != nil && !backend.Uncertain(err) {
			b.leases.giveBack(b, lease)
		}
		return at, err
	}
}

// Remove deletes the object under prev's key if it is still prev, in one request.
// Errors as for Put.
func (b *Backend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer call.end()
	if prev == nil || prev.Revision == 0 {
		return nil, &usercode.ConfigError{Field: "prev", Problem: "has no revision; give the object to remove as storage returned it"}
	}
	if err := store.ValidateKey(prev.Key); err != nil {
		return nil, err
	}
	w := write{verb: "remove", key: prev.Key, prev: prev}
	if err := b.completeOnKine(ctx, &w); err != nil {
		return nil, err
	}
	at, err := b.commit(ctx, &w, clientv3.NoLease)
	if err != nil {
		return nil, err
	}
	last := w.prev
	if w.before != nil {
		last, _ = b.values.decode(w.before, time.Now())
	}
	return b.values.schema.Gone(last, at, time.Now()), nil
}

// write is one conditional write.
type write struct {
	verb, key string
	// prev is the object that must be under the key; nil for none.
	prev *store.Object
	// value is what to write; nil deletes.
	value []byte
	// keepLease: the key stays on its present lease.
	keepLease bool

	// created is the revision of the key's creation, known once prev was replaced.
	// before is the replaced value, if the request had to return it.
	created store.Revision
	before  *mvccpb.KeyValue
}

// complete reports whether prev is an object as storage returned it, and not just a key
// and a revision. Then the answer need not have the replaced value.
func (w *write) complete() bool { return w.prev == nil || w.prev.Created != 0 }

func (w *write) expected() store.Revision {
	if w.prev == nil {
		return 0
	}
	return w.prev.Revision
}

// request returns the transaction: these shapes are all that kine understands.
func (w *write) request(place string, lease clientv3.LeaseID) (clientv3.Cmp, clientv3.Op, clientv3.Op) {
	return clientv3.Compare(clientv3.ModRevision(place), "=", int64(w.expected())), w.change(place, lease), clientv3.OpGet(place)
}

// change returns what the transaction does if the condition holds.
func (w *write) change(place string, lease clientv3.LeaseID) clientv3.Op {
	var opts []clientv3.OpOption
	if !w.complete() {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if w.value == nil {
		return clientv3.OpDelete(place, opts...)
	}
	if lease != clientv3.NoLease {
		opts = append(opts, clientv3.WithLease(lease))
	}
	if w.keepLease {
		opts = append(opts, clientv3.WithIgnoreLease())
	}
	return clientv3.OpPut(place, string(w.value), opts...)
}

// commit makes the write, and returns its revision.
func (b *Backend) commit(ctx context.Context, w *write, lease clientv3.LeaseID) (store.Revision, error) {
	condition, then, otherwise := w.request(b.keys.of(w.key), lease)
	before := b.newest.Load()
	resp, err := b.transact(ctx, w.verb, w.key, condition, then, otherwise)
	if tooLargeToReceive(err) && !w.complete() {
		// Perhaps it is the answer that is too large, which has the replaced value.
		return 0, &backend.UncertainError{Verb: w.verb, Key: w.key, Cause: err}
	}
	if err != nil {
		return 0, err
	}
	if err := b.observe(resp.Header, before); err != nil {
		return 0, &backend.UncertainError{Verb: w.verb, Key: w.key, Cause: err}
	}
	if !resp.Succeeded {
		return 0, b.conflict(w, resp)
	}
	if w.prev != nil {
		w.learn(resp)
	}
	return store.Revision(resp.Header.Revision), nil
}

// transact makes a transaction that writes. It sends nothing if ctx has ended, as it may have while
// an object was encoded or a lease was granted: then it is certain that etcd has not done the write.
func (b *Backend) transact(ctx context.Context, verb, key string, condition clientv3.Cmp, then, otherwise clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, unsentError(ctx, verb, key, err)
	}
	ctx, sending := b.observeSending(ctx)
	resp, err := b.client.Txn(ctx).If(condition).Then(then).Else(otherwise).Commit()
	if err != nil {
		return nil, writeError(ctx, verb, key, sending, err)
	}
	return resp, nil
}

// learn takes the replaced value from the answer.
func (w *write) learn(resp *clientv3.TxnResponse) {
	w.created = w.prev.Created
	if w.complete() {
		return
	}
	for _, r := range resp.Responses {
		if put := r.GetResponsePut(); put != nil {
			w.before = put.PrevKv
		}
		if deleted := r.GetResponseDeleteRange(); deleted != nil && len(deleted.PrevKvs) > 0 {
			w.before = deleted.PrevKvs[0]
		}
	}
	if w.before != nil {
		w.created = store.Revision(w.before.CreateRevision)
	}
}

// conflict returns the error of a write whose condition did not hold.
func (b *Backend) conflict(w *write, resp *clientv3.TxnResponse) error {
	var current *store.Object
	for _, r := range resp.Responses {
		if found := r.GetResponseRange(); found != nil && len(found.Kvs) > 0 {
			var unknown *backend.UndecodableError
			if current, unknown = b.values.decode(found.Kvs[0], time.Now()); unknown != nil {
				return b.undecodableConflict(w, current, unknown)
			}
		}
	}
	return backend.CheckExpected(w.key, current, w.expected())
}

// undecodableConflict returns the error of a conflict with an object whose value cannot be
// decoded: a conflict without the current object.
func (b *Backend) undecodableConflict(w *write, current *store.Object, unknown error) error {
	err := errors.Unwrap(backend.CheckExpected(w.key, current, w.expected()))
	return errors.Join(err, unknown)
}
