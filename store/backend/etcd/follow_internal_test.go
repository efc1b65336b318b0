package etcd

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
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
