package etcd_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/usercode"
)

// A revision that others have moved is known at once when it is asked for, though
// nothing happened below the prefix.
func TestRevision_BringsWatchesUpToIt(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = time.Hour })
	w := f.watch(f.revision(), "")
	_, err := f.raw.Put(f.ctx, "/elsewhere", "x")
	require.NoError(t, err)
	require.Empty(t, w.read(f.revision()))
}

func TestWatch_HearsOfProgressWithoutAsking(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = etcd.DefaultProgressEvery })
	w := f.watch(f.revision(), "")
	resp, err := f.raw.Put(f.ctx, "/elsewhere", "x")
	require.NoError(t, err)
	require.Empty(t, w.read(store.Revision(resp.Header.Revision)))
}

// The objects that share a lease end at one revision, in one batch, in key order.
func TestLeasePool_ObjectsEndAtOneRevision(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.LeasePool = 10 })
	w := f.watch(f.revision(), "")
	var last *store.Object
	for i := range 8 {
		var err error
		last, err = f.Put(f.ctx, draft(fmt.Sprint("k", 7-i), "x"), nil, backend.PutOptions{TTL: time.Hour})
		require.NoError(t, err)
	}
	leases, err := f.raw.Leases(f.ctx)
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
	require.Len(t, w.read(last.Revision), 8)
	_, err = f.raw.Revoke(f.ctx, leases.Leases[0].ID) // as etcd does at its end
	require.NoError(t, err)
	for {
		batch, err := w.Next(1)
		require.NoError(t, err)
		if len(batch.Events) == 0 {
			w.await()
			continue
		}
		require.Len(t, batch.Events, 8, "a revision is not split, whatever the limit")
		for i, ev := range batch.Events {
			require.Equal(t, store.Deleted, ev.Type)
			require.Equal(t, fmt.Sprint("k", i), ev.Key())
			require.Equal(t, batch.Through, ev.Revision)
		}
		return
	}
}

// An object does not share a lease that ends too early or much too late for it, nor one that is full.
func TestLeasePool_SharesALeaseAmongObjectsThatEndTogether(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.LeasePool = 3 })
	put := func(key string, ttl time.Duration) int64 {
		_, err := f.Put(f.ctx, draft(key, "1"), nil, backend.PutOptions{TTL: ttl})
		require.NoError(t, err)
		resp, err := f.raw.Get(f.ctx, f.place(key))
		require.NoError(t, err)
		return resp.Kvs[0].Lease
	}
	hour := put("a", time.Hour)
	two := put("b", 2*time.Hour)
	require.NotEqual(t, hour, two, "it ends too early")
	full := put("c", time.Hour)
	require.NotEqual(t, two, full, "it ends too late")
	require.Equal(t, []int64{full, full}, []int64{put("d", time.Hour), put("e", time.Hour)})
	require.NotEqual(t, full, put("f", time.Hour), "it has three objects")
}

func TestLease_OfAWriteThatFailsIsRevoked(t *testing.T) {
	f := newFixture(t)
	f.create("a", "1")
	_, err := f.Put(f.ctx, draft("a", "2"), nil, backend.PutOptions{TTL: time.Hour})
	require.ErrorIs(t, err, store.ErrExists)
	require.NoError(t, f.Close())
	leases, err := f.raw.Leases(f.ctx)
	require.NoError(t, err)
	require.Empty(t, leases.Leases)
}

// A watch that is not read holds no more than its buffer, and loses nothing.
func TestBuffer_BreaksAWatchOffAndGoesOn(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.Buffer = etcd.Buffer{Events: 16} })
	w := f.watch(f.revision(), "")
	var want []string
	for i := range 200 {
		key := fmt.Sprintf("k/%03d", i)
		f.foreign(key, "x")
		want = append(want, "ADDED "+key+"=x was -")
	}
	require.Equal(t, want, w.read(f.revision()))
}

// A closed watch leaves no goroutine.
func TestWatch_LeavesNothingBehind(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = time.Hour })
	before := f.goroutines()
	for range 20 {
		f.watch(f.revision(), "").Close()
	}
	require.Zero(t, f.Watching())
	f.awaitNoneBut(before)
}

// The client keeps a stream whose context has ended before etcd has accepted its watch, until it is closed.
func TestWatch_LeavesNoStreamIfItsContextEndsBeforeEtcdHasAcceptedIt(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = time.Hour })
	before := f.goroutines()
	f.proxy.Delay(10 * time.Millisecond)
	for i := range 10 {
		ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i)*5*time.Millisecond)
		_ = f.OpenStream(ctx) // which of them come through depends on the machine
		cancel()
	}
	f.proxy.Delay(0)
	f.awaitNoneBut(before)
}

// A stream that is broken off is closed when the next one is opened. It would outlast its watch.
func TestBuffer_LeavesNoStreamBehind(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.Buffer = etcd.Buffer{Events: 4} })
	before := f.goroutines()
	w := f.watch(f.revision(), "")
	for range 20 {
		var last store.Revision
		for i := range 5 {
			last = f.foreign(fmt.Sprint("k", i), "x")
		}
		require.Len(t, w.read(last), 5)
	}
	require.Len(t, w.read(f.foreign("last", "x")), 1, "the last stream is open")
	w.Close()
	f.awaitNoneBut(before)
}

func TestBuffer_CountsBytes(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.Buffer = etcd.Buffer{Bytes: 10_000} })
	w := f.watch(f.revision(), "")
	for i := range 50 {
		f.foreign(fmt.Sprint("k", i), strings.Repeat("x", 4_000))
	}
	require.Len(t, w.read(f.revision()), 50)
}

// A compaction by one process ends the watches that are behind in another, and
// leaves alone those that have read everything, though they may not know it.
func TestCompact_IsSeenByOtherProcesses(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = time.Hour })
	other := &fixture{TB: t, ctx: f.ctx, raw: f.raw, cfg: f.cfg, Backend: f.open()}
	start := f.revision()
	quiet, lagging := other.watch(start, "quiet"), other.watch(start, "")
	f.create("a", "1")
	newest := f.create("b", "1").Revision
	require.NoError(t, f.Compact(f.ctx, newest))
	require.Eventually(t, func() bool { return other.Floor() == newest }, patience, time.Millisecond)
	events, err := lagging.end()
	require.ErrorIs(t, err, store.ErrExpired)
	require.Empty(t, events, "what was given up is not told any more")
	require.Empty(t, quiet.read(newest))
	at, err := other.Compacted(f.ctx)
	require.NoError(t, err)
	require.Equal(t, newest, at)

	resp, err := f.raw.Get(f.ctx, f.place("a"))
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	_, err = f.raw.Get(f.ctx, "/elsewhere", rev(start))
	require.NoError(t, err, "the rest of the cluster keeps its history")
}

// Each of many concurrent compactions finds that at least its own revision is compacted.
func TestCompact_ManyAtATimeAreAllDone(t *testing.T) {
	f := newFixture(t)
	first := f.create("a", "1").Revision
	for i := range 20 {
		f.foreign("a", fmt.Sprint(i))
	}
	processes := []*etcd.Backend{f.Backend, f.open()}
	var compacting sync.WaitGroup
	for i := range 20 {
		compacting.Go(func() {
			b, rev := processes[i%2], first+store.Revision(i)
			assert.NoError(t, b.Compact(f.ctx, rev))
			oldest, err := b.Compacted(f.ctx)
			assert.NoError(t, err)
			assert.GreaterOrEqual(t, oldest, rev)
		})
	}
	compacting.Wait()
}

// The oldest revision is exact, even for a process that has just begun.
func TestCompacted_FindsTheRevisionOfEtcd(t *testing.T) {
	f := newFixture(t)
	for i := range 9 {
		at := f.foreign("a", fmt.Sprint(i))
		f.foreign("b", fmt.Sprint(i))
		_, err := f.raw.Compact(f.ctx, int64(at))
		require.NoError(t, err)
		for range i {
			f.foreign("a", "later")
		}
		for _, b := range []*etcd.Backend{f.Backend, f.open()} {
			oldest, err := b.Compacted(f.ctx)
			require.NoError(t, err)
			require.Equal(t, at, oldest)
		}
	}
}

// A process that was cut off learns of a compaction afterwards, even if etcd has dropped the record of it.
func TestCompact_IsSeenAfterACut(t *testing.T) {
	f := newFixture(t)
	f.cfg.Endpoints = []string{f.server.Endpoint}
	other := f.open()
	f.proxy.Cut()
	last := f.foreign("a", "1")
	require.NoError(t, other.Compact(f.ctx, last))
	now, err := other.Revision(f.ctx)
	require.NoError(t, err)
	_, err = f.raw.Compact(f.ctx, int64(now))
	require.NoError(t, err)
	f.proxy.Heal()
	require.Eventually(t, func() bool { return f.Floor() == last }, patience, time.Millisecond)
}

func TestStoreID_NamesClusterAndPrefix(t *testing.T) {
	f := newFixture(t)
	id, err := f.StoreID(f.ctx)
	require.NoError(t, err)
	again, err := f.open().StoreID(f.ctx)
	require.NoError(t, err)
	require.Equal(t, id, again)
	f.cfg.Prefix = newPrefix()
	elsewhere, err := f.open().StoreID(f.ctx)
	require.NoError(t, err)
	require.NotEqual(t, id, elsewhere, "revisions are the same, but the objects are others")
}

// A TTL that a lease has no room for is refused: as a number of seconds it would overflow.
func TestLease_OfATTLThatIsTooLongIsRefused(t *testing.T) {
	f := newFixture(t)
	_, err := f.Put(f.ctx, draft("a", "x"), nil, backend.PutOptions{TTL: math.MaxInt64})
	require.ErrorIs(t, err, usercode.ErrConfig)
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	const years = 100 * 365 * 24 * time.Hour
	o, err := f.Put(f.ctx, draft("a", "x"), nil, backend.PutOptions{TTL: years})
	require.NoError(t, err)
	found, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.True(t, found.Expires.Equal(o.Expires), "%v, not %v", found.Expires, o.Expires)
	leases, err := f.raw.Leases(f.ctx)
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
	left, err := f.raw.TimeToLive(f.ctx, leases.Leases[0].ID)
	require.NoError(t, err)
	require.Equal(t, int64(years/time.Second), left.GrantedTTL)
}

// Writers that share a lease do not disturb one another when some of them are refused.
func TestLeasePool_IsForConcurrentWriters(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.LeasePool = 1000 })
	f.create("taken", "x")
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 10 {
				_, err := f.Put(f.ctx, draft(fmt.Sprintf("k/%d/%d", w, i), "x"), nil, backend.PutOptions{TTL: time.Hour})
				assert.NoError(t, err)
				_, err = f.Put(f.ctx, draft("taken", "y"), nil, backend.PutOptions{TTL: time.Hour})
				assert.ErrorIs(t, err, store.ErrExists)
			}
		})
	}
	writers.Wait()
	leases, err := f.raw.Leases(f.ctx)
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
}

// Another program may have put an object on a lease, which the value does not show. An update
// that keeps the expiry keeps that, too.
func TestPut_KeepsTheLeaseOfAnotherProgram(t *testing.T) {
	f := newFixture(t)
	granted, err := f.raw.Grant(f.ctx, 3600)
	require.NoError(t, err)
	_, err = f.raw.Put(f.ctx, f.place("a"), `{"Key":"a","Text":"1"}`, clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	f.foreign("forever", "1")

	for key, want := range map[string]clientv3.LeaseID{"a": granted.ID, "forever": clientv3.NoLease} {
		o, err := f.Get(f.ctx, key)
		require.NoError(t, err)
		_, err = f.Put(f.ctx, draft(key, "2"), o, backend.PutOptions{KeepExpiry: true})
		require.NoError(t, err)
		resp, err := f.raw.Get(f.ctx, f.place(key))
		require.NoError(t, err)
		require.Equal(t, want, clientv3.LeaseID(resp.Kvs[0].Lease), key)
	}
	_, err = f.Put(f.ctx, draft("new", "1"), nil, backend.PutOptions{KeepExpiry: true})
	require.NoError(t, err, "there is nothing to keep")
}

// An object without a revision is none, also as the one that a write replaces.
func TestPut_OverAnObjectWithoutARevisionCreates(t *testing.T) {
	f := newFixture(t)
	for key, opts := range map[string]backend.PutOptions{"a": {}, "b": {KeepExpiry: true}} {
		o, err := f.Put(f.ctx, draft(key, "1"), draft(key, ""), opts)
		require.NoError(t, err)
		require.Equal(t, o.Revision, o.Created)
		_, err = f.Put(f.ctx, draft(key, "2"), draft(key, ""), opts)
		require.ErrorIs(t, err, store.ErrExists)
	}
}

// The floor of another cluster comes along when keys are copied from there, and means nothing
// beyond the revision at which it came.
func TestWatch_BeginsWhereTheFloorIsThatOfAnotherCluster(t *testing.T) {
	f := newFixture(t)
	before := f.create("a", "1").Revision
	copied, err := f.raw.Put(f.ctx, f.cfg.Prefix+"!//compacted", "1000000")
	require.NoError(t, err)
	floor := store.Revision(copied.Header.Revision)
	require.Eventually(t, func() bool { return f.Floor() > 0 }, patience, time.Millisecond)
	for _, b := range []*etcd.Backend{f.Backend, f.open()} {
		f.Backend = b
		list, err := f.List(f.ctx, backend.ListOptions{})
		require.NoError(t, err)
		w := f.watch(list.Revision, "")
		last := f.foreign("a", "2")
		require.Equal(t, []string{"MODIFIED a=2 was " + textOf(list.Items[0])}, w.read(last))
		w.Close()
		oldest, err := f.Compacted(f.ctx)
		require.NoError(t, err)
		require.Equal(t, floor, oldest)
		_, err = f.Watch(f.ctx, backend.WatchOptions{From: before, Notify: func() {}})
		require.ErrorIs(t, err, store.ErrExpired)
	}
}
