package kinetest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/kinetest"
)

// prefixes numbers the places in a kine that checks share.
var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("/test/%d", prefixes.Add(1)) }

// The suite's waits are real time here. kine has whole seconds, and a machine that is
// busy takes longer.
const (
	ttlSlack = 3 * time.Second
	mostDown = 6 * time.Second // longer than anything in the suite takes to expire
)

func wait(d time.Duration) { <-time.After(d) }

// differs are the checks that kine fails, and why.
var differs = map[string]string{
	"Remove_ReturnsTheLastStateAtANewRevision": "the revision of a deletion is taken for that of an object: what Remove returned can be removed again",
}

// The suite, each check below a prefix of its own. kine has no transactions of several
// keys, so there is no Transact, and the checks of what is changed at one revision do
// nothing.
func TestConformance_OnKine(t *testing.T) {
	endpoint := kinetest.Start(t).Endpoint
	found := 0
	for _, check := range backendtest.Checks() {
		t.Run(check.Name, func(t *testing.T) {
			if differs[check.Name] == "" {
				runOn(t, check, t, endpoint)
				return
			}
			found++
			r := &recorder{TB: t}
			r.run(func() { runOn(t, check, r, endpoint) })
			require.NotEmpty(t, r.failures, "kine has become better; it does not differ here")
		})
	}
	require.Len(t, differs, found, "there are no such checks")
}

// runOn runs a check, which reports to r.
func runOn(t *testing.T, check backendtest.Check, r backendtest.T, endpoint string) {
	prefix := newPrefix()
	now := newBackend(t, prefix, endpoint, backendtest.Schema())
	defer func() { require.NoError(t, now.Close()) }()
	check.Run(r, backendtest.Harness{
		Backend: now, Pass: wait, TTLSlack: ttlSlack,
		Another: func() backend.Backend { return newBackend(t, prefix, endpoint, backendtest.Schema()) },
		Reopen: func(down time.Duration) backend.Backend {
			require.NoError(t, now.Close())
			wait(min(down, mostDown))
			now = newBackend(t, prefix, endpoint, backendtest.Schema())
			return now
		},
	})
}

// recorder records failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) FailNow() { runtime.Goexit() }

// run runs f, which may end in FailNow.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// newBackend returns a backend, which is closed by the caller.
func newBackend(t testing.TB, prefix, endpoint string, schema store.Schema) *etcd.Backend {
	t.Helper()
	b, err := etcd.New(context.Background(), etcd.Config{
		Prefix: prefix, Schema: schema, Endpoints: []string{endpoint}, ProgressEvery: time.Minute, // kine may take a while to start again
	})
	require.NoError(t, err)
	return b
}

// What was acknowledged is there after kine was killed, and a watch goes on behind it.
func TestKill_KeepsWhatWasAcknowledged(t *testing.T) {
	kine := kinetest.Start(t)
	b := newBackend(t, newPrefix(), kine.Endpoint, backendtest.Schema())
	defer func() { require.NoError(t, b.Close()) }()
	ctx := context.Background()
	first, err := b.Put(ctx, backendtest.Draft(backendtest.Value{Key: "a", Text: "1"}), nil, backend.PutOptions{})
	require.NoError(t, err)
	notified := make(chan struct{}, 1)
	w, err := b.Watch(ctx, backend.WatchOptions{From: first.Revision, Notify: func() {
		select {
		case notified <- struct{}{}:
		default:
		}
	}})
	require.NoError(t, err)
	kine.Restart()
	var o *store.Object
	require.Eventually(t, func() bool { o, err = b.Get(ctx, "a"); return err == nil }, time.Minute, 10*time.Millisecond)
	require.Equal(t, first.Revision, o.Revision)
	second, err := b.Put(ctx, backendtest.Draft(backendtest.Value{Key: "a", Text: "2"}), o, backend.PutOptions{})
	require.NoError(t, err)
	for {
		batch, err := w.Next(10)
		require.NoError(t, err)
		if len(batch.Events) > 0 {
			require.Equal(t, second.Revision, batch.Events[0].Revision)
			return
		}
		<-notified
	}
}
