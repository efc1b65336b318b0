package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// clusterFixture is a fixture of several members, with a proxy before each of them for the backend, and a client of the
// first alone.
type clusterFixture struct {
	*fixture
	*etcdtest.Cluster
	proxies []*etcdtest.Proxy
}

func newClusterFixture(t testing.TB, members int, change ...func(*etcd.Config)) *clusterFixture {
	t.Helper()
	f := &clusterFixture{Cluster: etcdtest.StartCluster(t, members)}
	f.fixture = &fixture{TB: t, ctx: context.Background(), raw: etcdtest.Client(t, f.Members[0].Endpoint)}
	f.cfg = etcd.Config{Prefix: newPrefix(), Schema: backendtest.Schema(), ProgressEvery: time.Minute}
	for _, m := range f.Members {
		p := etcdtest.StartProxy(t, m.Endpoint)
		f.proxies = append(f.proxies, p)
		f.cfg.Endpoints = append(f.cfg.Endpoints, p.Endpoint)
	}
	for _, c := range change {
		c(&f.cfg)
	}
	return f
}

// A member may be in touch with its leader and not receive what is written: its disk has stalled, say. Then a watch that it
// serves ends, so that it can be resumed at another member.
func TestWatch_AtAMemberThatHasStalledEnds(t *testing.T) {
	f := newClusterFixture(t, 3, func(c *etcd.Config) { c.ProgressEvery = time.Second })
	leader := f.Leader()
	stalled := (leader + 1) % 3
	for i, p := range f.proxies {
		if i != stalled {
			p.Cut()
		}
	}
	f.Backend = f.open()
	f.raw = etcdtest.Client(t, f.Members[leader].Endpoint)
	w := f.watch(f.revision(), "")
	first := f.foreign("a", "1")
	require.Len(t, w.read(first), 1)
	for _, p := range f.proxies {
		p.Heal()
	}
	f.HoldBack(stalled)
	ctx, stop := context.WithCancel(f.ctx)
	var writing sync.WaitGroup
	writing.Go(func() { // more than once, as a write may slip through while the members connect anew
		for ctx.Err() == nil {
			_, _ = f.raw.Put(ctx, f.cfg.Prefix+"-elsewhere", "")
			wait(100 * time.Millisecond)
		}
	})
	defer func() { stop(); writing.Wait() }()
	defer time.AfterFunc(patience, w.Close).Stop() // or it is told for ever that there is nothing new
	_, err := w.end()
	require.ErrorIs(t, err, backend.ErrUnavailable)

	f.cfg.Endpoints = []string{f.Members[leader].Endpoint}
	f.Backend = f.open()
	last := f.foreign("a", "2")
	require.Equal(t, []string{"MODIFIED a=2 was 1"}, f.watch(first, "").read(last))
}

// A member that is cut off from the others, or receives nothing from its leader, answers neither reads nor writes. They are
// made at the other members as soon as that is known.
func TestCalls_PassOverAMemberThatDoesNotAnswer(t *testing.T) {
	f := newClusterFixture(t, 3)
	f.Backend = f.open()
	for _, fault := range []func(int){f.Isolate, f.HoldBack} {
		fault((f.Leader() + 1) % 3)
		rounds := 0 // in a row in which all is answered: without that there is never one
		for end := time.Now().Add(patience); rounds < 10; {
			require.True(t, time.Now().Before(end), "a third of the calls fail")
			if rounds++; f.callAll(fmt.Sprint("a", rounds)) != nil {
				rounds = 0
			}
		}
		f.Heal()
	}
}

// callAll makes calls of all kinds, more than there are members, and returns the first error.
func (f *clusterFixture) callAll(key string) error {
	_, err := f.Put(f.ctx, draft(key, "1"), nil, backend.PutOptions{})
	if err != nil && !isConflict(err) {
		return err
	}
	if _, err = f.Get(f.ctx, key); err != nil {
		return err
	}
	if _, err = f.List(f.ctx, backend.ListOptions{}); err != nil {
		return err
	}
	w, err := f.Watch(f.ctx, backend.WatchOptions{Notify: func() {}})
	if err == nil {
		w.Close()
	}
	return err
}

// A learner serves no watch, and a client may know of one: it was added to the cluster, and is to get a vote later.
func TestWatch_BesideALearner(t *testing.T) {
	f := newClusterFixture(t, 1)
	learner := f.AddLearner()
	f.cfg.Endpoints = append(f.cfg.Endpoints, f.Members[learner].Endpoint)
	f.Backend = f.open()
	for n := range 4 { // the client takes turns at the members
		w := f.watch(f.revision(), "")
		last := f.foreign(fmt.Sprint(n), "1")
		require.Equal(t, []string{fmt.Sprintf("ADDED %d=1 was -", n)}, w.read(last))
		w.Close()
	}

	f.cfg.Endpoints = []string{f.Members[learner].Endpoint}
	_, err := etcd.New(f.ctx, f.cfg)
	require.ErrorIs(t, err, backend.ErrUnavailable)
}

// A watch from the newest revision on gets no answers from etcd until there is a newer one.
func TestWatch_OfAClusterWithoutWritesGoesOn(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.ProgressEvery = time.Second })
	var w *follower
	for end := time.Now().Add(patience); ; { // a busy machine may not read the cluster's revision in time
		w = f.watch(f.revision(), "")
		wait(4 * time.Second)
		_, err := w.Next(1)
		if err == nil {
			break
		}
		require.True(t, time.Now().Before(end), "%v", err)
	}
	last := f.foreign("a", "1")
	require.Equal(t, []string{"ADDED a=1 was -"}, w.read(last))
}

// Each new leader begins all times to live anew, so an object lives for longer, and not for ever.
func TestPut_WithATTLThroughAChangeOfTheLeader(t *testing.T) {
	f := newClusterFixture(t, 3)
	leader := f.Leader()
	f.Backend = f.open()
	const ttl = 3 * time.Second
	begun := time.Now()
	o, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{TTL: ttl})
	require.NoError(t, err)
	w := f.watch(o.Revision, "")
	f.Members[leader].Kill()
	batch, err := w.Next(1)
	for ; len(batch.Events) == 0; batch, err = w.Next(1) {
		require.NoError(t, err)
		w.await()
	}
	require.Equal(t, "DELETED a=1 was 1", tell(batch.Events[0]))
	require.GreaterOrEqual(t, time.Since(begun), ttl)
}
