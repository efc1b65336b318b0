package inspect_test

import (
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/inspect"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store/backend"
)

// The figures of a state are those of the engine, of its watches, and of the ends of others.
func TestState_HasTheFiguresOfItsEngine(t *testing.T) {
	began := time.Now()
	host, pods := newPods(t)
	stalled, err := pods.Watch(t.Context(), engine.WatchOptions{Name: "stalled", Policy: engine.Conflate, Buffer: 1})
	require.NoError(t, err)
	read, err := pods.Watch(t.Context(), engine.WatchOptions{Name: "read", From: 1})
	require.NoError(t, err)
	for range 5 {
		_, err := pods.Create(t.Context(), pod{"c"})
		require.NoError(t, err)
		deleted, err := pods.Delete(t.Context(), "c", engine.DeleteOptions{})
		require.NoError(t, err)
		require.NoError(t, pods.WaitForRevision(t.Context(), deleted.Revision))
	}
	for !stalled.Stalled() {
		runtime.Gosched()
	}
	_, err = stalled.Next(t.Context())
	require.NoError(t, err)
	_, err = read.Next(t.Context())
	require.NoError(t, err)
	read.Stop()
	// The actors publish their figures after their turns.
	for now := pods.Stats(); len(host.Engines()[0].Ends()) < 2 || now.Source.Revision < now.Revision || now.Dispatched < now.Events; now = pods.Stats() {
		runtime.Gosched()
	}

	clocktest.Tick()
	s := inspect.StateOf(host)
	stats, window := pods.Stats(), host.Engines()[0].Window()
	require.WithinRange(t, s.At, began, time.Now())
	require.Positive(t, s.Timers)
	e := s.Engines[0]
	for name, pair := range map[string][2]any{
		"Revision": {stats.Revision, e.Revision}, "Floor": {stats.WindowFloor, e.Floor}, "Generation": {stats.Generation, e.Generation},
		"WindowEvents": {stats.WindowEvents, e.WindowEvents}, "MaxEvents": {window.MaxEvents, e.MaxEvents}, "MaxBytes": {window.MaxBytes, e.MaxBytes},
		"StateBytes": {stats.StateBytes, e.StateBytes}, "WindowBytes": {stats.WindowBytes, e.WindowBytes}, "HistoryBytes": {stats.HistoryBytes, e.HistoryBytes},
		"Events": {stats.Events, e.Events}, "Dispatched": {stats.Dispatched, e.Dispatched}, "Stalls": {stats.Stalls, e.Stalls},
		"Running": {stats.Watches, e.Running}, "Stalled": {stats.Stalled, e.Stalled}, "Source": {stats.Source.Revision, e.Source.Revision},
	} {
		require.NotZero(t, pair[0], name)
		require.Equal(t, pair[0], pair[1], name)
	}

	watches := map[string]inspect.Watch{}
	for _, w := range e.Watches {
		watches[w.Name] = w
		require.Positive(t, w.AgeSeconds)
	}
	w := watches["stalled"]
	require.Equal(t, []any{"conflate", "pull", stalled.Revision(), stalled.Delivered(), stalled.Lag()}, []any{w.Policy, w.Consumer, w.Revision, w.Delivered, w.Lag})
	require.NotZero(t, w.Delivered)
	require.Positive(t, w.StalledSeconds)
	require.Zero(t, watches["stuck"].StalledSeconds)

	end := e.Ends[0]
	require.Equal(t, []any{"read", "stopped", "read: watch stopped", read.Delivered()}, []any{end.Name, end.Reason, end.Why, end.Delivered})
	require.NotZero(t, end.Delivered)
	require.WithinRange(t, end.At, began, s.At)
}

// No cache keeps a state, which is old at once, and no other page learns of it or shows it in a frame.
func TestHandler_AnswersForTheMomentAndThePageAlone(t *testing.T) {
	head := get(inspect.Handler(), http.MethodGet, "http://localhost/state").Header
	require.Equal(t, "no-store", head.Get("Cache-Control"))
	require.Equal(t, "no-referrer", head.Get("Referrer-Policy"))
	require.Equal(t, "default-src 'none'; frame-ancestors 'none'", head.Get("Content-Security-Policy"))
	require.Equal(t, "text/html; charset=utf-8", get(inspect.Handler(), http.MethodGet, "http://localhost/").Header.Get("Content-Type"))
}

// A browser that is sent to the server's address finds the page.
func TestListen_LeadsToThePage(t *testing.T) {
	s, err := inspect.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(s.URL()[:len(s.URL())-len(inspect.Path)])
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, s.URL(), answer.Request.URL.String())
}

// counted is a controller with these figures.
type counted struct {
	controller.Observed
	stats controller.Stats
}

func (counted) Name() string              { return "counted" }
func (c counted) Stats() controller.Stats { return c.stats }

func TestState_HasTheFiguresOfAController(t *testing.T) {
	stats := controller.Stats{
		Queue:   queue.WorkQueueStats{Queued: 1, Running: 2, Delayed: 3, Longest: 4 * time.Second},
		Workers: 5, Lag: 6, Reconciled: 7, Failed: 8, GivenUp: 9,
	}
	require.Equal(t, []inspect.Controller{{
		Name: "counted", Queued: 1, Running: 2, Delayed: 3, LongestSeconds: 4,
		Workers: 5, Lag: 6, Reconciled: 7, Failed: 8, GivenUp: 9,
	}}, inspect.Options{Controllers: []controller.Observed{counted{stats: stats}}}.State().Controllers)
}

// sourced is an informer with these figures, and without handlers.
type sourced struct {
	informer.Observed
	stats informer.Stats
}

func (sourced) Name() string                     { return "sourced" }
func (s sourced) Stats() informer.Stats          { return s.stats }
func (sourced) Handlers() []informer.HandlerInfo { return nil }

func TestState_HasTheFiguresOfAnInformer(t *testing.T) {
	stats := informer.Stats{
		Revision: 1, Objects: 2, Quarantined: 3,
		Source: engine.SourceStats{Revision: 4, Errors: 5, LastError: errors.New("down")},
	}
	require.Equal(t, []inspect.Informer{{
		Name: "sourced", Revision: 1, Objects: 2, Quarantined: 3,
		Source:   inspect.Source{Phase: stats.Source.Phase.String(), Revision: 4, Errors: 5, LastError: "down"},
		Handlers: []inspect.InformerHandler{}, // a list in JSON, of none
	}}, inspect.Options{Informers: []informer.Observed{sourced{stats: stats}}}.State().Informers)
}

// An engine whose storage was compacted, whose dispatcher failed once, and whose storage then ended for good.
func TestState_HasTheMisfortunesOfAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		cfg := engine.Config[pod]{
			Key: func(pod) string { return "one" }, Name: "pods",
			Labels: func(p pod) labels.Set { return labels.Set{"name": p.Name} },
			SetRevision: func(p pod, _ engine.Revision) pod {
				if actors.InTurn() && fails.Swap(false) {
					runtime.Goexit()
				}
				return p
			},
		}
		source := enginetest.NewSource(cfg)
		cfg.Backend = source
		pods, err := engine.New(cfg)
		require.NoError(t, err)
		state := func() (engine.Stats, inspect.Engine) {
			synctest.Wait()
			return pods.Stats(), inspect.StateOf(pods.Host()).Engines[0]
		}
		w, err := pods.Watch(t.Context(), engine.WatchOptions{Labels: "name=a"})
		require.NoError(t, err)
		go func() {
			for range w.Events() {
			}
		}()
		synctest.Wait()
		source.Stall()
		_, err = source.Add(pod{"a"})
		require.NoError(t, err)
		require.NoError(t, source.Forget())
		source.ResetWatches(backend.ErrUnavailable)
		source.Resume()
		time.Sleep(time.Minute) // until the watchCache has listed it
		synctest.Wait()
		fails.Store(true) // the dispatcher, which makes the deletion that the waiting watch sees
		_, err = source.Modify(pod{"b"})
		require.NoError(t, err)
		stats, shown := state()
		require.Equal(t, []uint64{stats.Relists, stats.Failures}, []uint64{shown.Relists, shown.Failures})
		require.NotZero(t, stats.Relists)
		require.NotZero(t, stats.Failures)
		require.False(t, shown.Ended)

		require.NoError(t, source.Close())
		time.Sleep(time.Minute) // the Reflector pauses before it tries again
		_, shown = state()
		require.True(t, shown.Ended)
		require.NoError(t, pods.Close())
	})
}
