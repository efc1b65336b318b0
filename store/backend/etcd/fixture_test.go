package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// patience is how long tests wait for what is bound to happen.
const patience = 3 * time.Minute

// fixture is a backend behind a proxy, and a client that goes straight to the
// server.
type fixture struct {
	testing.TB
	ctx    context.Context
	server *etcdtest.Server
	proxy  *etcdtest.Proxy
	raw    *clientv3.Client
	cfg    etcd.Config
	*etcd.Backend
}

func newFixture(t testing.TB, change ...func(*etcd.Config)) *fixture {
	t.Helper()
	f := &fixture{TB: t, ctx: context.Background(), server: etcdtest.Start(t, nil)}
	f.proxy = etcdtest.StartProxy(t, f.server.Endpoint)
	f.raw = etcdtest.Client(t, f.server.Endpoint)
	f.cfg = etcd.Config{
		Prefix: newPrefix(), Schema: backendtest.Schema(), Endpoints: []string{f.proxy.Endpoint},
		ProgressEvery: time.Minute, // which is longer than any machine is slow
	}
	for _, c := range change {
		c(&f.cfg)
	}
	f.Backend = f.open()
	return f
}

// open opens one more backend, as another process would. It takes its time, whatever
// RequestTimeout the test has chosen.
func (f *fixture) open() *etcd.Backend {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	b, err := open(ctx, f.cfg)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Close()) })
	return b
}

// open opens a backend, and tries again while ctx lasts: a member has seconds to say that it is there, and a
// machine may be slow.
func open(ctx context.Context, cfg etcd.Config) (*etcd.Backend, error) {
	for {
		b, err := etcd.New(ctx, cfg)
		if err == nil || !backend.Retryable(err) || ctx.Err() != nil {
			return b, err
		}
	}
}

func draft(key, text string) *store.Object {
	return backendtest.Draft(backendtest.Value{Key: key, Text: text})
}

func textOf(o *store.Object) string { return store.As[backendtest.Item](o).Value.Text }

func (f *fixture) create(key, text string) *store.Object {
	f.Helper()
	o, err := f.Put(f.ctx, draft(key, text), nil, backend.PutOptions{})
	require.NoError(f, err)
	return o
}

// foreign writes through no backend, and returns the revision.
func (f *fixture) foreign(key, text string) store.Revision {
	f.Helper()
	return transact(f, f.raw, f.cfg.Prefix, []backendtest.Value{{Key: key, Text: text}}, nil)
}

// place is where the object under key is in etcd.
func (f *fixture) place(key string) string { return f.cfg.Prefix + "/" + key }

func (f *fixture) revision() store.Revision {
	f.Helper()
	rev, err := f.Revision(f.ctx)
	require.NoError(f, err)
	return rev
}

// goroutines returns those that there are once both clients are connected, and the backend follows the floor
// of its history.
func (f *fixture) goroutines() goleak.Option {
	f.Helper()
	_, err := f.raw.Put(f.ctx, f.cfg.Prefix+"!//compacted", fmt.Sprint(f.revision()))
	require.NoError(f, err)
	require.Eventually(f, func() bool { return f.Floor() > 0 }, patience, time.Millisecond)
	return goleak.IgnoreCurrent()
}

// awaitNoneBut waits until there are no goroutines but those before. etcd's end some time after a call.
func (f *fixture) awaitNoneBut(before goleak.Option) {
	f.Helper()
	require.EventuallyWithT(f, func(c *assert.CollectT) { assert.NoError(c, goleak.Find(before)) }, patience, time.Millisecond)
}

// follower is a watch that can wait for what comes.
type follower struct {
	*fixture
	backend.Watcher
	notified chan struct{}
	through  store.Revision
}

func (f *fixture) watch(from store.Revision, prefix string) *follower {
	f.Helper()
	fo := &follower{fixture: f, notified: make(chan struct{}, 1), through: from}
	var err error
	fo.Watcher, err = f.Watch(f.ctx, backend.WatchOptions{From: from, Prefix: prefix, Notify: func() {
		select {
		case fo.notified <- struct{}{}:
		default:
		}
	}})
	require.NoError(f, err)
	return fo
}

// await waits for a notification.
func (fo *follower) await() {
	fo.Helper()
	select {
	case <-fo.notified:
	case <-time.After(patience):
		require.Fail(fo, "not notified", "at revision %d", fo.through)
	}
}

// read returns the events up to a revision.
func (fo *follower) read(through store.Revision) (events []string) {
	fo.Helper()
	for fo.through < through {
		batch, err := fo.Next(100)
		require.NoError(fo, err)
		require.Equal(fo, fo.through, batch.After)
		fo.through = batch.Through
		for _, ev := range batch.Events {
			events = append(events, tell(ev))
		}
		if len(batch.Events) == 0 && fo.through < through {
			fo.await()
		}
	}
	return events
}

// end returns the events before the error that ends the watch, and that.
func (fo *follower) end() (events []string, err error) {
	fo.Helper()
	for {
		batch, err := fo.Next(100)
		if err != nil {
			return events, err
		}
		for _, ev := range batch.Events {
			events = append(events, tell(ev))
		}
		if len(batch.Events) == 0 {
			fo.await()
		}
	}
}

// tell describes an event, without its revision.
func tell(ev store.Event) string {
	was := "-"
	if ev.Prev != nil {
		was = textOf(ev.Prev)
	}
	return fmt.Sprintf("%v %s=%s was %s", ev.Type, ev.Key(), textOf(ev.Object), was)
}

// rev makes a client read at a revision.
func rev(at store.Revision) clientv3.OpOption { return clientv3.WithRev(int64(at)) }

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// isConflict reports whether a write was refused because of what is there.
func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || isNotFound(err)
}
