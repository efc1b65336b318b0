package etcd

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/apart"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// Compact drops the history of the objects below the prefix only, since etcd's own
// compaction affects the whole cluster. A key beside the objects has the compacted
// revision. Reads and watches here respect it at once, those of other processes as soon
// as they have received it. It frees no space.
//
// Errors: [*store.FutureError] if rev has not happened, and as for [Backend.Put].
func (b *Backend) Compact(ctx context.Context, rev store.Revision) error {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer call.end()
	for {
		at, err := b.position(ctx)
		if err != nil {
			return err
		}
		switch {
		case rev > at.revision:
			return &store.FutureError{Requested: rev, Current: at.revision}
		case rev <= at.floor:
			return nil
		}
		written, err := b.writeFloor(ctx, rev, at.version)
		if err != nil {
			return err
		}
		if written {
			b.raiseFloor(ctx, rev)
			return nil
		}
	}
}

// writeFloor sets the floor, if its key still has the version.
func (b *Backend) writeFloor(ctx context.Context, rev store.Revision, version int64) (bool, error) {
	before := b.newest.Load()
	unchanged := clientv3.Compare(clientv3.ModRevision(b.keys.floor), "=", version)
	resp, err := b.transact(ctx, "compaction", b.config.Prefix, unchanged, clientv3.OpPut(b.keys.floor, rev.String()), clientv3.OpGet(b.keys.floor))
	if err != nil {
		return false, err
	}
	return resp.Succeeded, b.observe(resp.Header, before)
}

// parseFloor parses what writeFloor wrote; it returns zero for anything else. A floor is
// never above the revision at which it was written, unless it was copied from another
// cluster: then that revision is the floor, as the objects came with it.
func parseFloor(kv *mvccpb.KeyValue) store.Revision {
	n, err := strconv.ParseUint(string(kv.Value), 10, 63)
	if err != nil {
		return 0
	}
	return store.Revision(min(n, uint64(kv.ModRevision)))
}

// floorPatience is how long raiseFloor waits for watches that may have nothing left to
// read below the floor, until their progress shows it.
const floorPatience = 5 * time.Second

// raiseFloor makes rev the floor. Watches that have read everything up to rev continue;
// the others end.
func (b *Backend) raiseFloor(ctx context.Context, rev store.Revision) {
	ctx, cancel := context.WithTimeout(ctx, floorPatience)
	defer cancel()
	watches := b.watching()
	for _, w := range watches {
		w.chase(rev)
	}
	for _, w := range watches {
		w.awaitArrival(ctx, rev)
	}
	for {
		floor := b.floor.Load()
		if uint64(rev) <= floor || b.floor.CompareAndSwap(floor, uint64(rev)) {
			break
		}
	}
	var woken []*waiting.Follower
	for _, w := range b.watching() {
		woken = append(woken, w.reader()...)
	}
	waiting.WakeAll(woken)
}

// followTo is raiseFloor in the goroutine that follows the floor, which the Notify of a watch
// must not end.
func (b *Backend) followTo(ctx context.Context, rev store.Revision) {
	_ = apart.Call("WatchOptions.Notify", func() { b.raiseFloor(ctx, rev) })
}

// floorRetry is how long to wait before the floor is watched again.
const floorRetry = time.Second

// followFloor watches the floor's key after a revision, since other processes raise it.
func (b *Backend) followFloor(from store.Revision) {
	for b.life.Err() == nil {
		ctx, stop := context.WithCancel(b.newStream(b.life))
		for resp := range b.client.Watch(ctx, b.keys.floor, clientv3.WithRev(int64(from)+1)) {
			for _, ev := range resp.Events {
				b.followTo(b.life, parseFloor(ev.Kv))
				from = store.Revision(ev.Kv.ModRevision)
			}
		}
		stop()
		if !sleep(b.life, floorRetry) {
			return
		}
		ctx, stop = context.WithTimeout(b.life, b.config.RequestTimeout)
		if at, err := b.position(ctx); err == nil {
			b.followTo(ctx, at.floor)
			from = at.revision
		}
		stop()
	}
}

// sleep waits for d, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Compacted returns the oldest revision that can be listed at and watched from, after
// Compact and etcd's own compactions. It is zero if no history was discarded.
//
// etcd has no request for that. If it has been compacted since the previous call, a binary
// search finds the revision, in as many requests as the logarithm of the history's length.
// Errors as for [Backend.Revision].
func (b *Backend) Compacted(ctx context.Context) (store.Revision, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer call.end()
	at, err := b.position(ctx)
	if err != nil {
		return 0, err
	}
	oldest, err := b.findCompacted(ctx)
	return max(oldest, at.floor), err
}

// findCompacted returns the revision that etcd itself is compacted to.
func (b *Backend) findCompacted(ctx context.Context) (store.Revision, error) {
	known := store.Revision(b.compacted.Load())
	readable, err := b.readable(ctx, max(known, 1))
	if err != nil || readable {
		return known, err
	}
	at, err := b.position(ctx)
	if err != nil {
		return 0, err
	}
	gone, oldest := known, at.revision
	for gone+1 < oldest {
		middle := gone + (oldest-gone)/2
		if readable, err = b.readable(ctx, middle); err != nil {
			return 0, err
		}
		if readable {
			oldest = middle
		} else {
			gone = middle
		}
	}
	b.noteCompacted(oldest)
	return oldest, nil
}

// readable reports whether etcd still has the state at a revision.
func (b *Backend) readable(ctx context.Context, rev store.Revision) (bool, error) {
	_, err := b.client.Get(ctx, b.keys.floor, clientv3.WithRev(int64(rev)))
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return false, nil
	case err != nil:
		return false, readError(ctx, "looking for the oldest revision", err)
	}
	return true, nil
}

// noteCompacted records that etcd is compacted to rev.
func (b *Backend) noteCompacted(rev store.Revision) {
	for {
		known := b.compacted.Load()
		if uint64(rev) <= known || b.compacted.CompareAndSwap(known, uint64(rev)) {
			return
		}
	}
}

// checkStart reports whether a watch can begin after from.
func (b *Backend) checkStart(ctx context.Context, opts backend.WatchOptions, at position) error {
	oldest := max(at.floor, store.Revision(b.compacted.Load()))
	if err := opts.Check(oldest, at.revision); err != nil || opts.From == 0 || opts.From == at.revision {
		return err
	}
	readable, err := b.readable(ctx, opts.From)
	if err != nil || readable {
		return err
	}
	if oldest, err = b.findCompacted(ctx); err != nil {
		return err
	}
	return &store.ExpiredError{Requested: opts.From, Oldest: oldest}
}
