package interop_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/lease"
)

// candidate takes part in an election until stop is called, and sends its name when it
// leads.
func candidate(t *testing.T, client coordination.CoordinationV1Interface, name string, leads chan<- string, edit ...func(*leaderelection.LeaderElectionConfig)) (stop func()) {
	t.Helper()
	cfg := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "controller"}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads <- name },
			OnStoppedLeading: func() {},
		},
	}
	for _, e := range edit {
		e(&cfg)
	}
	elector, err := leaderelection.NewLeaderElector(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// reporting has a candidate send the name of each leader that it learns of, "" for none.
func reporting(leaders chan<- string) func(*leaderelection.LeaderElectionConfig) {
	return func(c *leaderelection.LeaderElectionConfig) {
		c.Callbacks.OnNewLeader = func(name string) { leaders <- name }
	}
}

// serveLeases serves leases until the end of the test.
func serveLeases(t *testing.T) (host string, leases *registry.Store[lease.Lease]) {
	t.Helper()
	leases, err := lease.New(engine.Config[lease.Lease]{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, leases.Close()) })
	_, cfg := served(t, serve.Config{Resources: []serve.Provider{leases}})
	return cfg.Host, leases
}

// holder returns the name of the candidate that has the lease.
func holder(t *testing.T, leases *registry.Store[lease.Lease]) string {
	t.Helper()
	o, err := leases.Engine().Get(t.Context(), "default/controller", engine.GetOptions{})
	require.NoError(t, err)
	return *o.Value.Spec.HolderIdentity
}

// hanging is a transport whose requests get no answer while it hangs.
type hanging struct {
	http.RoundTripper
	hangs atomic.Bool
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.hangs.Load() {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	return h.RoundTripper.RoundTrip(r)
}

// skewed is a lock whose candidate has a clock that is wrong by that much.
type skewed struct {
	resourcelock.Interface
	by time.Duration
}

func (s skewed) skew(r resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	r.RenewTime = metav1.NewTime(r.RenewTime.Add(s.by))
	r.AcquireTime = metav1.NewTime(r.AcquireTime.Add(s.by))
	return r
}

func (s skewed) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return s.Interface.Create(ctx, s.skew(r))
}

func (s skewed) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return s.Interface.Update(ctx, s.skew(r))
}

// A leader whose connection hangs learns that it leads no more, and the other candidate
// takes over when the lease has run out, whatever time the leader has written into it.
func TestLease_PassesFromALeaderWhoseConnectionHangs(t *testing.T) {
	for name, skew := range map[string]time.Duration{"same clock": 0, "a day ahead": 24 * time.Hour, "a day behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, leases := serveLeases(t)
			connection := &hanging{}
			a, err := coordination.NewForConfig(&rest.Config{Host: host, QPS: -1, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
				connection.RoundTripper = next
				return connection
			}})
			require.NoError(t, err)
			b, err := coordination.NewForConfig(&rest.Config{Host: host, QPS: -1})
			require.NoError(t, err)

			leads, lost := make(chan string, 2), make(chan struct{})
			stopA := candidate(t, a, "a", leads, func(c *leaderelection.LeaderElectionConfig) {
				c.Lock = skewed{c.Lock, skew}
				c.LeaseDuration, c.RenewDeadline, c.ReleaseOnCancel = 3*time.Second, 2*time.Second, false
				c.Callbacks.OnStoppedLeading = func() { close(lost) }
			})
			require.Equal(t, "a", <-leads)
			leaders := make(chan string, 3) // a, none, b
			stopB := candidate(t, b, "b", leads, reporting(leaders))
			require.Equal(t, "a", <-leaders)
			require.Empty(t, leads, "one of them leads")
			connection.hangs.Store(true)
			<-lost
			require.Equal(t, "b", <-leads)
			stopA()
			require.Equal(t, "b", holder(t, leases))
			stopB()
		})
	}
}

// Stock leader election works: one leads, and when it releases its lease the other does.
func TestLease_ElectsALeader(t *testing.T) {
	host, leases := serveLeases(t)
	client, err := coordination.NewForConfig(&rest.Config{Host: host, QPS: -1})
	require.NoError(t, err)

	leads := make(chan string, 2)
	stopA := candidate(t, client, "a", leads)
	require.Equal(t, "a", <-leads)
	leaders := make(chan string, 3) // a, none, b
	stopB := candidate(t, client, "b", leads, reporting(leaders))
	require.Equal(t, "a", <-leaders)
	require.Empty(t, leads, "one of them leads")
	stopA()
	require.Equal(t, "b", <-leads)
	require.Equal(t, "b", holder(t, leases))
	stopB()
}
