package etcd_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/codec"
)

// fill writes the objects k/0000 and so on, and returns their keys.
func (f *fixture) fill(n int, text string) (keys []string) {
	f.Helper()
	for len(keys) < n {
		var values []backendtest.Value
		for range min(100, n-len(keys)) {
			keys = append(keys, fmt.Sprintf("k/%04d", len(keys)))
			values = append(values, backendtest.Value{Key: keys[len(keys)-1], Text: text})
		}
		transact(f, f.raw, f.cfg.Prefix, values, nil)
	}
	return keys
}

func keysOf(l *backend.List) (keys []string) {
	for _, o := range l.Items {
		keys = append(keys, o.Key)
	}
	return keys
}

// compactor is a codec that has etcd compact everything while it decodes, a number of times.
type compactor struct {
	codec.JSON
	times   *atomic.Int32
	compact func()
}

func (c compactor) Decode(tag uint8, data []byte, into any) error {
	if strings.Contains(string(data), "k/0000") && c.times.Add(-1) >= 0 {
		c.compact()
	}
	return c.JSON.Decode(tag, data, into)
}

// compacting returns a fixture whose etcd is compacted that often, each time that the first of
// many objects is listed.
func compacting(t *testing.T, times int32) *fixture {
	c := compactor{times: &atomic.Int32{}}
	var f *fixture
	c.compact = func() {
		_, err := f.raw.Compact(f.ctx, int64(f.foreign("other", "x")))
		require.NoError(t, err)
	}
	f = newFixture(t, func(cfg *etcd.Config) { cfg.Codec = c })
	c.times.Store(times)
	return f
}

// What is compacted between two requests of a list of the newest state is listed anew.
func TestList_BeginsAnewAfterACompaction(t *testing.T) {
	f := compacting(t, 2)
	keys := f.fill(600, "x")
	l, err := f.List(f.ctx, backend.ListOptions{Prefix: "k"})
	require.NoError(t, err)
	require.Equal(t, keys, keysOf(l))
	require.Equal(t, f.revision(), l.Revision, "it is the state after the last compaction")
}

// It gives up if that happens each time, and says which revision it could not read.
func TestList_GivesUpIfItIsCompactedEachTime(t *testing.T) {
	f := compacting(t, 100)
	f.fill(600, "x")
	_, err := f.List(f.ctx, backend.ListOptions{Prefix: "k"})
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, f.revision(), expired.Oldest)
	require.Equal(t, expired.Oldest-1, expired.Requested)
}

// A list that is continued does not begin anew, but says how to continue in the newest state.
func TestList_SaysHowToGoOnAfterACompaction(t *testing.T) {
	f := newFixture(t)
	keys := f.fill(10, "x")
	l, err := f.List(f.ctx, backend.ListOptions{Prefix: "k", Limit: 4})
	require.NoError(t, err)
	oldest := f.foreign("other", "x")
	_, err = f.raw.Compact(f.ctx, int64(oldest))
	require.NoError(t, err)
	_, err = f.List(f.ctx, backend.ListOptions{Prefix: "k", Limit: 4, Continue: l.Continue})
	var expired *backend.ExpiredContinueError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, store.ExpiredError{Requested: l.Revision, Oldest: oldest}, *expired.Expired)
	rest, err := f.List(f.ctx, backend.ListOptions{Prefix: "k", Continue: expired.Continue})
	require.NoError(t, err)
	require.Equal(t, keys[4:], keysOf(rest))

	_, err = f.List(f.ctx, backend.ListOptions{Revision: l.Revision})
	require.ErrorIs(t, err, store.ErrExpired)
}

// A prefix that is a key, too, is two ranges in etcd, which a page may end between.
func TestList_CountsBothRangesOfAPrefix(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{"foo", "foo-1", "foo/a", "foo/b"} {
		f.create(key, "x")
	}
	l, err := f.List(f.ctx, backend.ListOptions{Prefix: "foo", Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"foo"}, keysOf(l))
	require.Equal(t, 2, l.Remaining)
	l, err = f.List(f.ctx, backend.ListOptions{Prefix: "foo", Limit: 2, Continue: l.Continue})
	require.NoError(t, err)
	require.Equal(t, []string{"foo/a", "foo/b"}, keysOf(l))
	require.Empty(t, l.Continue)
}

// Keys that cannot name an object are in etcd's counts, and on no page: the last one may be empty.
func TestList_EndsAmongKeysThatCannotNameAnObject(t *testing.T) {
	f := newFixture(t)
	keys := f.fill(2, "x")
	for _, key := range []string{"k//first", "k/0000//between", "k/0001//last"} {
		_, err := f.raw.Put(f.ctx, f.place(key), "x")
		require.NoError(t, err)
	}
	var listed []string
	var remaining []int
	opts := backend.ListOptions{Prefix: "k", Limit: 1}
	for more := true; more; more = opts.Continue != "" {
		l, err := f.List(f.ctx, opts)
		require.NoError(t, err)
		listed, remaining, opts.Continue = append(listed, keysOf(l)...), append(remaining, l.Remaining), l.Continue
	}
	require.Equal(t, keys, listed)
	require.Equal(t, []int{3, 1, 0}, remaining)
}

// A client that takes only small answers gets as few objects at once as fit.
func TestList_RequestsAsMuchAsTheClientTakes(t *testing.T) {
	f := newFixture(t)
	keys := f.fill(40, strings.Repeat("x", 1000))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{f.server.Endpoint}, MaxCallRecvMsgSize: 5000, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	f.cfg.Endpoints, f.cfg.Client = nil, client
	b := f.open()
	l, err := b.List(f.ctx, backend.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, keys, keysOf(l))

	f.create("large", strings.Repeat("x", 10_000))
	_, err = b.List(f.ctx, backend.ListOptions{})
	require.ErrorIs(t, err, backend.ErrTooLarge)
}

// A lease that objects share may be gone before its time: an operator can revoke it.
func TestLeasePool_TakesAnotherLeaseIfThatIsGone(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.LeasePool = 10 })
	put := func(key string) int64 {
		_, err := f.Put(f.ctx, draft(key, "1"), nil, backend.PutOptions{TTL: time.Hour})
		require.NoError(t, err)
		resp, err := f.raw.Get(f.ctx, f.place(key))
		require.NoError(t, err)
		return resp.Kvs[0].Lease
	}
	first := put("a")
	require.Equal(t, first, put("b"))
	_, err := f.raw.Revoke(f.ctx, clientv3.LeaseID(first))
	require.NoError(t, err)
	second := put("c")
	require.NotEqual(t, first, second)
	require.Equal(t, second, put("d"))
}
