package etcd

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/codec"
)

// A member that catches up sends changes whose last states it has compacted. The watch ends
// before the first of them, and before all others of its revision.
func TestNext_EndsBeforeAChangeWithoutItsLastState(t *testing.T) {
	b := &Backend{life: context.Background(), watches: map[*watcher]struct{}{}, keys: newKeyspace("/p")}
	b.config.Buffer = Buffer{Events: 10, Bytes: 1000}
	b.values = values{prefix: "/p", keys: b.keys, schema: backendtest.Schema(), codec: codec.JSON{}}
	w := b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
	put := func(key string, created, modified int64) *clientv3.Event {
		return &clientv3.Event{Kv: &mvccpb.KeyValue{
			Key: []byte("/p/" + key), Value: []byte(`{}`), CreateRevision: created, ModRevision: modified,
		}}
	}
	full, err := w.add(clientv3.WatchResponse{Events: []*clientv3.Event{put("a", 2, 2), put("c", 2, 3), put("b", 3, 3)}})
	require.False(t, full)
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, LostError{Key: "c", Revision: 3}, *lost)
	require.ErrorIs(t, err, store.ErrExpired, "the state is to be listed again")
	w.finish(err)

	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
	require.Equal(t, "a", batch.Events[0].Key())
	require.Equal(t, store.Revision(2), batch.Through)
	_, err = w.Next(10)
	require.ErrorIs(t, err, lost)
}

// cluster answers reads by its revision alone.
type cluster struct {
	clientv3.KV
	revision atomic.Int64
	// out: it cannot be read.
	out atomic.Bool
}

func newCluster(revision int64) *cluster {
	c := &cluster{}
	c.revision.Store(revision)
	return c
}

func (c *cluster) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if c.out.Load() {
		return nil, rpctypes.ErrNoLeader
	}
	return &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: c.revision.Load()}}, nil
}

// A member that catches up by a snapshot sends a watch that is ahead of it what it has had already. If the cluster
// itself has gone back, the watch ends.
func TestAdd_LeavesOutWhatWasSentBefore(t *testing.T) {
	kv := newCluster(9)
	b := &Backend{life: context.Background(), client: &clientv3.Client{KV: kv}, watches: map[*watcher]struct{}{}, keys: newKeyspace("/p")}
	b.newest.Store(9)
	b.config.Buffer, b.config.RequestTimeout = Buffer{Events: 10, Bytes: 1000}, time.Minute
	b.values = values{prefix: "/p", keys: b.keys, schema: backendtest.Schema(), codec: codec.JSON{}}
	w := b.newWatcher(backend.WatchOptions{From: 5, Notify: func() {}})
	b.watches[w] = struct{}{}
	send := func(revisions ...int64) {
		var resp clientv3.WatchResponse
		for _, rev := range revisions {
			resp.Events = append(resp.Events, &clientv3.Event{Kv: &mvccpb.KeyValue{
				Key: []byte("/p/a"), Value: []byte(`{}`), CreateRevision: rev, ModRevision: rev,
			}})
		}
		_, err := w.add(resp)
		require.NoError(t, err)
	}
	for _, response := range [][]int64{{3, 4, 5}, {5, 7, 8}, {6, 8}, {8, 9}} {
		send(response...)
	}
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Equal(t, store.Revision(5), batch.After)
	require.Equal(t, store.Revision(9), batch.Through)
	var got []store.Revision
	for _, e := range batch.Events {
		got = append(got, e.Revision)
	}
	require.Equal(t, []store.Revision{7, 8, 9}, got)

	kv.revision.Store(6)
	send(6)
	_, err = w.Next(10)
	require.ErrorIs(t, err, store.ErrFuture)
}

// A watch is full at either bound of its buffer, and has room again when at most half of both is left.
func TestAppend_IsFullAtTheBoundsOfTheBuffer(t *testing.T) {
	for name, buffer := range map[string]Buffer{"events": {Events: 4, Bytes: 1000}, "bytes": {Events: 1000, Bytes: 40}} {
		b := &Backend{life: context.Background(), watches: map[*watcher]struct{}{}, config: Config{Buffer: buffer}}
		w := b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
		for rev := store.Revision(2); rev <= 5; rev++ {
			full := w.append([]change{{store.Event{Revision: rev}, 10}}, rev)
			require.Equal(t, rev == 5, full, "%s, at %d", name, rev)
		}
		for rev := store.Revision(2); rev <= 5; rev++ {
			batch, err := w.Next(1)
			require.NoError(t, err)
			require.Equal(t, rev, batch.Through)
			require.Equal(t, rev >= 3, len(w.room) == 1, "%s, at %d", name, rev)
		}
		<-w.room
		_, err := w.Next(1)
		require.NoError(t, err)
		require.Empty(t, w.room, "it was told once that there is room")
		require.False(t, w.append(nil, 4), name)
		require.Equal(t, store.Revision(5), w.position(), "a member that is behind takes nothing back")
		w.finish(store.ErrClosed)
	}
}

// Revisions of one prefix may be far apart, also for a process of 32 bits.
func TestInOrder_IsThatOfRevisionsThenKeys(t *testing.T) {
	at := func(key string, revision int64) *clientv3.Event {
		return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision}}
	}
	require.Negative(t, inOrder(at("b", 1), at("a", 1+1<<32)))
	require.Positive(t, inOrder(at("a", 1+1<<31), at("b", 1)))
	require.Negative(t, inOrder(at("a", 1), at("b", 1)))
	require.Zero(t, inOrder(at("a", 1), at("a", 1)))
}
