package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
	"github.com/watchmill/watchmill/store/codec"
)

// awaitKey waits until a key is in etcd, or its value is another one.
func (f *fixture) awaitKey(place string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	for resp := range f.raw.Watch(ctx, place, clientv3.WithRev(1)) {
		if len(resp.Events) > 0 {
			return
		}
	}
	require.Fail(f, "nothing was written", place)
}

// The answer to a write is lost: it was done, but Put cannot know.
func TestPut_CutOffFromItsAnswerIsUncertain(t *testing.T) {
	f := newFixture(t)
	f.proxy.Mute()
	next := draft("a", "1")
	answer := make(chan error, 1)
	go func() {
		_, err := f.Put(f.ctx, next, nil, backend.PutOptions{})
		answer <- err
	}()
	f.awaitKey(f.place("a"))
	f.proxy.Cut()
	err := <-answer
	require.ErrorIs(t, err, backend.ErrUncertain)
	var uncertain *backend.UncertainError
	require.ErrorAs(t, err, &uncertain)
	require.Equal(t, "put", uncertain.Verb)
	require.Equal(t, "a", uncertain.Key)
	require.False(t, backend.Retryable(err), "a second try would conflict with the first")
	require.Zero(t, next.Revision, "the draft is the caller's again")

	f.proxy.Heal()
	o, err := f.Get(f.ctx, "a")
	require.NoError(t, err, "it was written")
	require.Equal(t, "1", textOf(o))
}

func TestRemove_WhoseContextEndsBeforeTheAnswerIsUncertain(t *testing.T) {
	f := newFixture(t)
	o := f.create("a", "1")
	f.proxy.Mute()
	ctx, cancel := context.WithCancelCause(f.ctx)
	answer := make(chan error, 1)
	go func() {
		_, err := f.Remove(ctx, o)
		answer <- err
	}()
	gone, stop := context.WithTimeout(f.ctx, patience)
	defer stop()
	<-f.raw.Watch(gone, f.place("a"), clientv3.WithRev(int64(o.Revision)+1))
	cause := errors.New("no time")
	cancel(cause)
	err := <-answer
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.ErrorIs(t, err, cause)
}

// Nothing was sent, so nothing was written: the write can be made again.
func TestPut_WithoutConnectionIsUnavailable(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.RequestTimeout = 200 * time.Millisecond })
	f.proxy.Cut()
	_, err := f.Put(f.ctx, draft("b", "1"), nil, backend.PutOptions{})
	for backend.Uncertain(err) { // it went out on the connection that was breaking
		_, err = f.Put(f.ctx, draft("b", "1"), nil, backend.PutOptions{})
	}
	require.ErrorIs(t, err, backend.ErrUnavailable)
	require.True(t, backend.Retryable(err))
	for known := false; !known; known = !backend.Uncertain(err) { // unless a busy machine has not begun to send it in time
		ctx, cancel := context.WithTimeout(f.ctx, 50*time.Millisecond)
		_, err = f.Put(ctx, draft("b", "1"), nil, backend.PutOptions{})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// A client may take only small answers. A write whose answer has the object before it may have
// been done when that is too large; any other was refused, by either side.
func TestPut_WhoseAnswerIsTooLargeIsUncertain(t *testing.T) {
	f := newFixture(t)
	o := f.create("a", strings.Repeat("x", 5000))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{f.server.Endpoint}, MaxCallRecvMsgSize: 1000, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	f.cfg.Endpoints, f.cfg.Client = nil, client
	b := f.open()

	_, err = b.Put(f.ctx, draft("a", "2"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.False(t, backend.Uncertain(err), "the answer to a write that is done is small")

	bare := draft("a", "")
	bare.Revision = o.Revision
	_, err = b.Put(f.ctx, draft("a", "2"), bare, backend.PutOptions{TTL: time.Hour})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.NoError(t, b.Close())
	o, err = f.Get(f.ctx, "a")
	require.NoError(t, err, "its lease was not given back")
	require.Equal(t, "2", textOf(o), "it was done")
}

// endingCodec ends a context while it encodes.
type endingCodec struct {
	codec.JSON
	end func()
}

func (c endingCodec) Encode(v any) (uint8, []byte, error) {
	c.end()
	return c.JSON.Encode(v)
}

// A write whose context ends before it is sent is not done, and Put says so.
func TestPut_WhoseContextEndsBeforeItIsSentIsNotUncertain(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no time")
	f := newFixture(t, func(c *etcd.Config) { c.Codec = endingCodec{end: func() { cancel(cause) }} })
	_, err := f.Put(ctx, draft("a", "1"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, cause)
	require.False(t, backend.Uncertain(err))
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestCall_WithoutDeadlineEndsByTheRequestTimeout(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.RequestTimeout = 200 * time.Millisecond })
	f.proxy.BlackHole()
	_, err := f.Get(f.ctx, "a")
	require.ErrorIs(t, err, backend.ErrUnavailable)
	_, err = f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
	for !backend.Uncertain(err) { // a busy machine has not sent it in time
		require.ErrorIs(t, err, backend.ErrUnavailable)
		_, err = f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
	}
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.ErrorContains(t, err, "RequestTimeout")
	require.ErrorIs(t, f.Compact(f.ctx, 1), backend.ErrUnavailable, "it begins with a read")
}

// A watch whose connection is cut goes on by itself where it was.
func TestWatch_GoesOnAfterACutWithoutLossOrRepetition(t *testing.T) {
	f := newFixture(t)
	w := f.watch(f.revision(), "")
	var want []string
	for round := range 3 {
		for i := range 20 {
			key := fmt.Sprintf("k/%d/%d", round, i)
			f.foreign(key, "x")
			want = append(want, "ADDED "+key+"=x was -")
			if i == 10 {
				f.proxy.Cut()
			}
		}
		f.proxy.Heal()
	}
	last := f.foreign("last", "x")
	require.Equal(t, append(want, "ADDED last=x was -"), w.read(last))
}

func TestWatch_GoesOnThroughASlowConnection(t *testing.T) {
	f := newFixture(t)
	w := f.watch(f.revision(), "")
	f.proxy.Delay(20 * time.Millisecond)
	for i := range 10 {
		f.create(fmt.Sprint("k", i), "x")
	}
	require.Len(t, w.read(f.foreign("last", "x")), 11)
}

// etcd sends what is too large for one message in several, which may divide a revision.
func TestWatch_TakesARevisionThatComesInParts(t *testing.T) {
	f := newFixture(t)
	var values []backendtest.Value
	for i := range 100 {
		values = append(values, backendtest.Value{Key: fmt.Sprintf("k%02d", i), Text: strings.Repeat("x", 13_500)})
	}
	first := transact(t, f.raw, f.cfg.Prefix, values, nil)
	w := f.watch(first, "")
	for i := range values {
		values[i].Text = strings.Repeat("y", 13_500)
	}
	last := transact(t, f.raw, f.cfg.Prefix, values, nil) // 1.4 MB, and as much of the states before, in messages of 2 MB
	require.Equal(t, len(values), len(w.read(last)))
	last = f.foreign("last", "z")
	require.Equal(t, []string{"ADDED last=z was -"}, w.read(last))
}

// A connection that says nothing is found out, though it stays open.
func TestWatch_ThatHearsNothingEnds(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = 100 * time.Millisecond })
	w := f.watch(f.revision(), "")
	f.proxy.BlackHole()
	_, err := w.end()
	require.ErrorIs(t, err, backend.ErrUnavailable)
	f.proxy.Heal()
	_, err = w.Next(1)
	require.ErrorIs(t, err, backend.ErrUnavailable, "it has ended for good")
	f.cfg.ProgressEvery = time.Minute
	f.Backend = f.open()
	last := f.foreign("a", "1")
	require.Equal(t, []string{"ADDED a=1 was -"}, f.watch(w.through, "").read(last))
}

// What etcd itself has compacted while the watch was away cannot be had any more.
func TestWatch_OvertakenByCompactionWhileAwayExpires(t *testing.T) {
	f := newFixture(t)
	w := f.watch(f.revision(), "")
	first := f.foreign("a", "1")
	require.Len(t, w.read(first), 1)
	f.proxy.Cut()
	f.foreign("a", "2")
	newest := f.foreign("a", "3")
	_, err := f.raw.Compact(f.ctx, int64(newest))
	require.NoError(t, err)
	f.proxy.Heal()
	events, err := w.end()
	require.Empty(t, events)
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, newest, expired.Oldest)

	_, err = f.Watch(f.ctx, backend.WatchOptions{From: first, Notify: func() {}})
	require.ErrorIs(t, err, store.ErrExpired)
	_, err = f.List(f.ctx, backend.ListOptions{Revision: first})
	require.ErrorIs(t, err, store.ErrExpired)
	oldest, err := f.Compacted(f.ctx)
	require.NoError(t, err)
	require.Equal(t, newest, oldest, "etcd does not say, but it can be found out")
}

// A cluster that was restored with the ID that it had knows less than its watches.
func TestWatch_FurtherThanARestoredClusterEnds(t *testing.T) {
	f := newFixture(t)
	w := f.watch(f.revision(), "")
	for range 5 {
		f.foreign("a", "1")
	}
	newest := f.revision()
	require.Len(t, w.read(newest), 5)
	f.proxy.Redirect(etcdtest.Start(t, nil).Endpoint)
	require.Eventually(t, func() bool { now, err := f.Revision(f.ctx); return err == nil && now < newest }, patience, time.Millisecond)
	_, err := w.end()
	var future *store.FutureError
	require.ErrorAs(t, err, &future)
	require.Equal(t, newest, future.Requested)
	_, err = f.Watch(f.ctx, backend.WatchOptions{From: newest, Notify: func() {}})
	require.ErrorIs(t, err, store.ErrFuture)
}

// What was compacted before a cluster was restored says nothing about its history now: a
// reader that lists can watch from there.
func TestWatch_BeginsInARestoredClusterBelowWhatWasCompacted(t *testing.T) {
	f := newFixture(t)
	for range 5 {
		f.foreign("a", "1")
	}
	newest := f.revision()
	require.NoError(t, f.Compact(f.ctx, newest))
	_, err := f.raw.Compact(f.ctx, int64(newest))
	require.NoError(t, err)
	_, err = f.Compacted(f.ctx)
	require.NoError(t, err)

	restored := etcdtest.Start(t, nil)
	f.proxy.Redirect(restored.Endpoint)
	require.Eventually(t, func() bool { now, err := f.Revision(f.ctx); return err == nil && now < newest }, patience, time.Millisecond)
	list, err := f.List(f.ctx, backend.ListOptions{})
	require.NoError(t, err)
	w := f.watch(list.Revision, "")
	f.raw = etcdtest.Client(t, restored.Endpoint)
	last := f.foreign("a", "1")
	require.Equal(t, []string{"ADDED a=1 was -"}, w.read(last))
	oldest, err := f.Compacted(f.ctx)
	require.NoError(t, err)
	require.Less(t, oldest, newest)
}

// Another cluster's revisions mean something else.
func TestBackend_OfAnotherClusterFails(t *testing.T) {
	f := newFixture(t)
	o := f.create("a", "1")
	require.NoError(t, f.Failure())
	other := etcdtest.Start(t, func(c *embed.Config) { c.InitialClusterToken = "other" })
	f.proxy.Redirect(other.Endpoint)
	var err error
	require.Eventually(t, func() bool { _, err = f.Get(f.ctx, "a"); return errors.Is(err, backend.ErrFailed) }, patience, time.Millisecond)
	var cluster *etcd.ClusterError
	require.ErrorAs(t, err, &cluster)
	require.NotEqual(t, cluster.Was, cluster.Is)
	_, err = f.Remove(f.ctx, o)
	require.ErrorIs(t, err, backend.ErrFailed)
	require.ErrorIs(t, err, backend.ErrUncertain, "the other one may have done it")
	_, err = f.Put(f.ctx, draft("b", "1"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrFailed)
	require.ErrorIs(t, err, backend.ErrUncertain)
	_, err = f.Watch(f.ctx, backend.WatchOptions{Notify: func() {}})
	require.ErrorIs(t, err, backend.ErrFailed)
	_, err = f.Revision(f.ctx)
	require.ErrorIs(t, err, backend.ErrFailed)
	_, err = f.List(f.ctx, backend.ListOptions{})
	require.ErrorIs(t, err, backend.ErrFailed)
	_, err = f.List(f.ctx, backend.ListOptions{Revision: 1})
	require.ErrorIs(t, err, backend.ErrFailed)
	_, err = f.Compacted(f.ctx)
	require.ErrorIs(t, err, backend.ErrFailed)
	require.ErrorIs(t, f.Compact(f.ctx, 1), backend.ErrFailed)
	require.ErrorAs(t, f.Failure(), &cluster, "a new backend must be made")

	f.proxy.Redirect(f.server.Endpoint)
	require.Eventually(t, func() bool { _, err = f.Get(f.ctx, "a"); return err == nil }, patience, time.Millisecond)
	require.NoError(t, f.Failure())
}
