package interop_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/lease"
)

// candidate takes part in an election until stop is called, and sends its name when it
// leads.
func candidate(t *testing.T, client coordination.CoordinationV1Interface, name string, leads chan<- string) (stop func()) {
	t.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
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
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// Stock leader election works: one leads, and when it releases its lease the other does.
func TestLease_ElectsALeader(t *testing.T) {
	leases, err := lease.New(engine.Config[lease.Lease]{})
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{leases}})
	require.NoError(t, err)
	h := httptest.NewServer(handler)
	defer func() {
		h.CloseClientConnections()
		h.Close()
		require.NoError(t, leases.Close())
	}()
	client, err := coordination.NewForConfig(&rest.Config{Host: h.URL, QPS: -1})
	require.NoError(t, err)

	leads := make(chan string, 2)
	stopA := candidate(t, client, "a", leads)
	require.Equal(t, "a", <-leads)
	stopB := candidate(t, client, "b", leads)
	stopA()
	require.Equal(t, "b", <-leads)
	o, err := leases.Engine().Get(t.Context(), "default/controller", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "b", *o.Value.Spec.HolderIdentity)
	stopB()
}
