package prommetrics_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/inspect/prommetrics"
	"github.com/watchmill/watchmill/usercode"
)

func ExampleMetrics_ObserveInformer() {
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	mirror, err := informer.New(informer.Config[pod]{Source: pods.Source(), Host: pods.Host(), Name: "mirror"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mirror.Close()
	handler, err := mirror.AddEventHandler(informer.HandlerFuncs[pod]{}, informer.HandlerOptions{Name: "audit"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = informer.WaitFor(context.Background(), mirror, handler)
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics := prommetrics.New(prommetrics.Options{})
	metrics.ObserveInformer(mirror)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "watchmill_informer_handler_lag_notifications" {
			m := f.GetMetric()[0]
			fmt.Println(m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue(), m.GetGauge().GetValue())
		}
	}
	// Output: audit mirror 0
}

// mirrorOf starts an informer of pods on a host of its own.
func mirrorOf(t *testing.T, pods *engine.Engine[pod], name string) *informer.SharedInformer[pod] {
	mirror, err := informer.New(informer.Config[pod]{Source: pods.Source(), Name: name})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mirror.Close()) })
	require.NoError(t, mirror.WaitSynced(t.Context()))
	for mirror.Stats().Source.Lists == 0 { // the Reflector publishes its figures after its turn
		runtime.Gosched()
	}
	return mirror
}

// awaitLag waits until so many notifications wait for a handler. Its informer has the objects before that.
func awaitLag(of *informer.Registration, n int) {
	for of.Lag() < n {
		runtime.Gosched()
	}
}

func newPods(t *testing.T) *engine.Engine[pod] {
	pods, err := engine.New(config(nil, "pods"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pods.Close()) })
	return pods
}

func TestInformers_ShowTheSlowHandler(t *testing.T) {
	pods := newPods(t)
	_, err := pods.Create(t.Context(), pod{"a"})
	require.NoError(t, err)
	metrics := prommetrics.New(prommetrics.Options{})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	mirror := mirrorOf(t, pods, "mirror")
	metrics.ObserveInformer(mirror)
	metrics.ObserveInformer(mirror) // has no effect
	var once sync.Once
	called, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	stuck, err := mirror.Subscribe(func(informer.Notification[pod]) {
		once.Do(func() { close(called) })
		<-hold
	}, informer.HandlerOptions{Name: "stuck\xff"})
	require.NoError(t, err)
	<-called
	for _, name := range []string{"b", "c"} {
		_, err := pods.Create(t.Context(), pod{name})
		require.NoError(t, err)
	}
	awaitLag(stuck, 3)
	another := mirrorOf(t, pods, "mirror")
	metrics.ObserveInformer(another)
	names := []string{"watchmill_informer_handler_lag_notifications", "watchmill_informer_handlers", "watchmill_informer_objects",
		"watchmill_informer_notifications_total", "watchmill_informer_lists_total", "watchmill_informer_source_errors_total",
		"watchmill_informer_quarantined_objects"}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP watchmill_informer_handler_lag_notifications Notifications that wait for the handler, the most of the handlers with this name.
# TYPE watchmill_informer_handler_lag_notifications gauge
watchmill_informer_handler_lag_notifications{handler="stuck`+"\uFFFD"+`",informer="mirror"} 3
# HELP watchmill_informer_handlers Handlers.
# TYPE watchmill_informer_handlers gauge
watchmill_informer_handlers{informer="mirror"} 1
# HELP watchmill_informer_lists_total Times that the source was listed.
# TYPE watchmill_informer_lists_total counter
watchmill_informer_lists_total{informer="mirror"} 2
# HELP watchmill_informer_notifications_total Changes that handlers were to be notified of, each once however many handlers there are.
# TYPE watchmill_informer_notifications_total counter
watchmill_informer_notifications_total{informer="mirror"} 2
# HELP watchmill_informer_objects Objects that the informer has.
# TYPE watchmill_informer_objects gauge
watchmill_informer_objects{informer="mirror"} 6
# HELP watchmill_informer_quarantined_objects Objects for which Transform has failed, and that are kept apart.
# TYPE watchmill_informer_quarantined_objects gauge
watchmill_informer_quarantined_objects{informer="mirror"} 0
# HELP watchmill_informer_source_errors_total Errors of the source.
# TYPE watchmill_informer_source_errors_total counter
watchmill_informer_source_errors_total{informer="mirror"} 0
`), names...))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)

	metrics.ForgetInformer(mirror)
	n, err := testutil.GatherAndCount(registry, names[0])
	require.NoError(t, err)
	require.Zero(t, n)
	metrics.ForgetInformer(another)
	n, err = testutil.GatherAndCount(registry, names...)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestInformers_BoundTheSeriesOfTheirHandlers(t *testing.T) {
	pods := newPods(t)
	metrics := prommetrics.New(prommetrics.Options{Watches: 2})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	mirror := mirrorOf(t, pods, "mirror")
	metrics.ObserveInformer(mirror)
	for i := range 10 {
		_, err := mirror.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{Name: fmt.Sprint("h", i%5)})
		require.NoError(t, err)
	}
	n, err := testutil.GatherAndCount(registry, "watchmill_informer_handler_lag_notifications")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// Informers of one name are one: the slowest of all their handlers has a series.
func TestInformers_OfOneNameShowTheSlowestHandlerOfAll(t *testing.T) {
	pods := newPods(t)
	metrics := prommetrics.New(prommetrics.Options{Watches: 1})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	quick, hold := make(chan string, 3), make(chan struct{})
	defer close(hold)
	var handler *informer.Registration
	for _, h := range []struct {
		name   string
		handle func(informer.Notification[pod])
	}{
		{"quick", func(n informer.Notification[pod]) { quick <- n.Object.Key }},
		{"stuck", func(informer.Notification[pod]) { <-hold }},
	} {
		mirror := mirrorOf(t, pods, "mirror")
		var err error
		handler, err = mirror.Subscribe(h.handle, informer.HandlerOptions{Name: h.name})
		require.NoError(t, err)
		require.NoError(t, handler.WaitSynced(t.Context()))
		metrics.ObserveInformer(mirror)
	}
	for _, name := range []string{"a", "b", "c"} {
		_, err := pods.Create(t.Context(), pod{name})
		require.NoError(t, err)
		require.Equal(t, name, <-quick)
	}
	awaitLag(handler, 3)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP watchmill_informer_handler_lag_notifications Notifications that wait for the handler, the most of the handlers with this name.
# TYPE watchmill_informer_handler_lag_notifications gauge
watchmill_informer_handler_lag_notifications{handler="stuck",informer="mirror"} 3
`), "watchmill_informer_handler_lag_notifications"))
}

func TestInformers_RefuseNil(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		require.ErrorIs(t, err, usercode.ErrConfig)
	}()
	prommetrics.New(prommetrics.Options{}).ObserveInformer(nil)
}
