package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// leases provides the leases of writes with a TTL. If objects share leases, it requests
// one for a little longer than the TTL, and uses it until its remaining time is too short
// or it has its number of objects.
type leases struct {
	// most is how many objects can share a lease; with one or less, each has its own.
	most int
	// shared has the lease that is shared at present, or nil. A call takes it out while
	// it uses it, and the others wait.
	shared chan *lease
}

func newLeases(most int) leases {
	l := leases{most: most, shared: make(chan *lease, 1)}
	l.shared <- nil
	return l
}

// lease is a lease of etcd.
type lease struct {
	id clientv3.LeaseID
	// until is the earliest time at which it ends.
	until time.Time
	// shared: other objects may be on it.
	shared bool
	// objects is how many objects a shared lease was taken for. Only the call that has
	// taken it out uses it.
	objects int
	// gone: etcd does not know it any more.
	gone atomic.Bool
}

// The most that an object on a shared lease lives longer than asked.
const (
	leaseSlackPart = 20 // of the TTL
	leaseSlackMost = time.Minute
)

// revokePatience is how long Close may wait for leases to be revoked.
const revokePatience = 5 * time.Second

// take returns a lease for an object that is to live for ttl.
func (l *leases) take(ctx context.Context, b *Backend, ttl time.Duration) (*lease, error) {
	if l.most <= 1 {
		return b.grant(ctx, ttl)
	}
	slack := min(ttl/leaseSlackPart, leaseSlackMost)
	var s *lease
	select {
	case s = <-l.shared:
	case <-ctx.Done():
		return nil, interrupted(ctx, "waiting for a lease")
	}
	defer func() { l.shared <- s }()
	if s != nil && s.objects < l.most && !s.gone.Load() {
		if rest := time.Until(s.until); rest >= ttl && rest <= ttl+slack+time.Second {
			s.objects++
			return s, nil
		}
	}
	next, err := b.grant(ctx, ttl+slack)
	if err != nil {
		return nil, err
	}
	next.shared, next.objects = true, 1
	s = next
	return s, nil
}

// giveBack revokes the lease of a write that was not done, in a goroutine. Other objects
// may be on a shared lease, so that stays.
func (l *leases) giveBack(b *Backend, unused *lease) {
	if unused.shared {
		return
	}
	b.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), revokePatience)
		defer cancel()
		_, err := b.client.Revoke(ctx, unused.id)
		if err != nil && ctx.Err() == nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			b.report(readError(ctx, "revoking a lease", err))
		}
	})
}

// grant requests a lease of at least ttl, in whole seconds.
func (b *Backend) grant(ctx context.Context, ttl time.Duration) (*lease, error) {
	start := time.Now()
	seconds := (ttl + time.Second - 1) / time.Second
	resp, err := b.client.Grant(ctx, int64(seconds))
	if err != nil {
		return nil, readError(ctx, "granting a lease", err)
	}
	return &lease{id: resp.ID, until: start.Add(time.Duration(resp.TTL) * time.Second)}, nil
}
