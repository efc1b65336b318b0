package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// log is what was logged, to be read while more comes.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newHost(t *testing.T, cfg engine.HostConfig) *engine.Host {
	host, err := engine.NewHost(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	return host
}

func ExampleConfig_onEnd() {
	ctx := context.Background()
	pods, err := engine.New(engine.Config[Pod]{
		Key: func(p Pod) string { return p.Namespace + "/" + p.Name },
		OnEnd: func(end engine.WatchEnd) {
			fmt.Println(end.Name, "ended, by a panic:", errors.Is(end.Err, engine.ErrHandlerPanic))
		},
	})
	must(err)
	w, err := pods.Handle(ctx, engine.WatchOptions{Name: "billing"}, func(engine.Event[Pod]) { panic("oops") })
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	must(err)
	<-w.Done()
	must(pods.Close())
	// Output: billing ended, by a panic: true
}

func TestOnEnd_IsToldOfEachWatchOnce(t *testing.T) {
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprintf("cached=%v", cached), func(t *testing.T) {
			var mu sync.Mutex
			told := map[string][]error{}
			config := cfg()
			config.NoCache = !cached
			config.OnEnd = func(end engine.WatchEnd) {
				mu.Lock()
				defer mu.Unlock()
				told[end.Name] = append(told[end.Name], end.Err)
				panic("which goes no further")
			}
			e, err := engine.New(config)
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(t.Context())
			watch := func(name string, timeout time.Duration) *engine.Watch[pod] {
				w, err := e.Watch(ctx, engine.WatchOptions{Name: name, Timeout: timeout})
				require.NoError(t, err)
				return w
			}
			stopped, late := watch("stopped", 0), watch("late", time.Nanosecond)
			panicked, err := e.Handle(ctx, engine.WatchOptions{Name: "panicked"}, func(engine.Event[pod]) { panic("oops") })
			require.NoError(t, err)
			stopped.Stop()
			_, err = e.Create(t.Context(), pod{Name: "a"})
			require.NoError(t, err)
			<-panicked.Done()
			<-late.Done()
			left, err := e.Watch(t.Context(), engine.WatchOptions{Name: "left"})
			require.NoError(t, err)
			handled, err := e.Handle(t.Context(), engine.WatchOptions{Name: "handled"}, func(engine.Event[pod]) {})
			require.NoError(t, err)
			cancelled := watch("cancelled", 0)
			cancel(errOutage)
			<-cancelled.Done()
			require.NoError(t, e.Close())
			want := map[string]error{
				"stopped": engine.ErrStopped, "late": engine.ErrDeadline, "panicked": engine.ErrHandlerPanic,
				"left": engine.ErrEngineClosed, "handled": engine.ErrEngineClosed, "cancelled": errOutage,
			}
			require.Len(t, told, len(want))
			for name, reason := range want {
				require.Len(t, told[name], 1, name)
				require.ErrorIs(t, told[name][0], reason)
			}
			for _, w := range []*engine.Watch[pod]{stopped, late, panicked, left, handled, cancelled} {
				require.Equal(t, told[w.Name()][0], w.Err())
			}
		})
	}
}

// An OnEnd that ends its goroutine, as t.FailNow does, costs no call that waits behind it its
// answer, and no watch is counted for ever.
func TestOnEnd_ThatEndsItsGoroutineHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		e := newOrders(t, func(c *engine.Config[pod]) {
			c.Host = hostFor(t, engine.HostConfig{Workers: 1})
			c.OnEnd = func(engine.WatchEnd) { once.Do(runtime.Goexit) }
		})
		entered, leave := make(chan struct{}), make(chan struct{})
		_, err := e.Handle(t.Context(), engine.WatchOptions{OnPool: true}, func(engine.Event[pod]) {
			close(entered)
			<-leave
		})
		require.NoError(t, err)
		ends, err := e.Watch(t.Context(), engine.WatchOptions{})
		require.NoError(t, err)
		creating(t, e)()
		<-entered // and holds the only worker, while others come
		ends.Stop()
		begun := make(chan error, 1)
		go func() {
			_, err := e.Watch(t.Context(), engine.WatchOptions{})
			begun <- err
		}()
		synctest.Wait()
		close(leave)
		synctest.Wait()
		answered, watches := len(begun), e.Stats().Watches
		require.NoError(t, e.Close())
		require.NoError(t, <-begun)
		require.Equal(t, 1, answered, "without anything else that happens")
		require.EqualValues(t, 2, watches)
	})
}

// An OnEnd that ends its goroutine in Close leaves no consumer waiting.
func TestOnEnd_ThatEndsItsGoroutineInCloseHoldsNoConsumerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		e := newOrders(t, func(c *engine.Config[pod]) {
			c.OnEnd = func(engine.WatchEnd) {
				if told.Add(1) == 1 {
					runtime.Goexit()
				}
			}
		})
		var consumers sync.WaitGroup
		for range 2 {
			w, err := e.Watch(t.Context(), engine.WatchOptions{})
			require.NoError(t, err)
			consumers.Go(func() {
				for range w.Events() {
				}
			})
		}
		synctest.Wait()
		require.NoError(t, e.Close())
		consumers.Wait()
		require.EqualValues(t, 2, told.Load())
		require.Zero(t, e.Stats().Watches)
	})
}

func TestLog_TellsEndsStallsAndRelists(t *testing.T) {
	var log logged
	source := enginetest.NewSource(cfg())
	config := cfgOver(source)
	config.Name = "pods"
	config.Host = newHost(t, engine.HostConfig{Logger: log.logger()})
	e, err := engine.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()); require.NoError(t, source.Close()) })
	require.NoError(t, e.WaitForRevision(t.Context(), 1))
	slow, err := e.Watch(t.Context(), engine.WatchOptions{Name: "slow", Buffer: 1})
	require.NoError(t, err)
	clumsy, err := e.Handle(t.Context(), engine.WatchOptions{Name: "clumsy"}, func(engine.Event[pod]) { panic("oops") })
	require.NoError(t, err)
	for i := range 10 {
		_, err := e.Create(t.Context(), pod{Name: fmt.Sprint(i)})
		require.NoError(t, err)
	}
	<-clumsy.Done()
	// The failure of its actor is reported after the watch has ended.
	for _, line := range []string{`msg="watch ended"`, `msg="watch stalled"`, `(clumsy)`} {
		require.Eventually(t, func() bool { return strings.Contains(log.String(), line) }, time.Minute, time.Millisecond)
	}
	slow.Stop()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), `why="slow: watch stopped"`) }, time.Minute, time.Millisecond)
	source.ResetWatches(&store.ExpiredError{Requested: 1, Oldest: 2})
	_, err = e.Create(t.Context(), pod{Name: "more"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), `msg="listed again"`) }, time.Minute, time.Millisecond)
	text := log.String()
	require.Contains(t, text, `level=WARN msg="watch stalled" engine=pods watch=slow policy=park`)
	require.Contains(t, text, `level=ERROR msg="watch ended" engine=pods watch=clumsy why="clumsy: watch handler panicked`)
	require.Contains(t, text, `level=WARN msg=error engine=pods error=`)
	require.Contains(t, text, `(clumsy)`, "the panic's report names the handler")
}

func TestLog_TellsOnceThatAnEngineWasNeverClosed(t *testing.T) {
	var log logged
	host := newHost(t, engine.HostConfig{Logger: log.logger()})
	leak := func() {
		config := cfg()
		config.Name, config.Host = "forgotten", host
		_, err := engine.New(config)
		require.NoError(t, err)
		engine.NewTopicWith[int](engine.TopicOptions{Name: "bus", Host: host})
		config.Name = "closed"
		e, err := engine.New(config)
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
	leak()
	require.Eventually(t, func() bool { runtime.GC(); return strings.Count(log.String(), "never closed") == 2 }, time.Minute, time.Millisecond)
	runtime.GC()
	require.Equal(t, 1, strings.Count(log.String(), "engine=forgotten"))
	require.Equal(t, 1, strings.Count(log.String(), "engine=bus"))
	require.NotContains(t, log.String(), "engine=closed")
	require.Len(t, host.Engines(), 2)
}

// ages is metrics that keep what they are told.
type ages struct {
	engine.NoMetrics
	mu    sync.Mutex
	ages  map[engine.Stage][]time.Duration
	ended []engine.WatchEnd
	waits map[engine.Wait][]time.Duration
}

func (a *ages) Latency(_ string, stage engine.Stage, age time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ages == nil {
		a.ages = map[engine.Stage][]time.Duration{}
	}
	a.ages[stage] = append(a.ages[stage], age)
}

func (a *ages) Waited(_ string, wait engine.Wait, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits == nil {
		a.waits = map[engine.Wait][]time.Duration{}
	}
	a.waits[wait] = append(a.waits[wait], took)
}

// waited returns the waits of that kind so far.
func (a *ages) waited(wait engine.Wait) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.waits[wait])
}

func (a *ages) Ended(_ string, end engine.WatchEnd) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, end)
}

func TestMetrics_MeasureEventsAtEachStage(t *testing.T) {
	var told ages
	clock := enginetest.NewVirtualClock()
	host := newHost(t, engine.HostConfig{Clock: clock, Executor: engine.NewSeededExecutor(1), Metrics: &told})
	config := cfg()
	config.Host = host
	e, err := engine.New(config)
	require.NoError(t, err)
	w, err := e.Watch(t.Context(), engine.WatchOptions{Name: "w"})
	require.NoError(t, err)
	o, err := e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(t.Context(), o.Revision))
	clock.Advance(3 * time.Second)
	_, err = w.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Equal(t, []time.Duration{3 * time.Second}, told.ages[engine.StageDelivered])
	require.Equal(t, []time.Duration{0}, told.ages[engine.StageCached])
	require.Len(t, told.ages[engine.StageDispatched], 1)
	require.Len(t, told.ended, 1)
	require.Equal(t, "closed", told.ended[0].Reason())
	require.Equal(t, uint64(1), told.ended[0].Delivered)
}

// quittingMetrics end the goroutine once, as t.FailNow does, before a consumer is given a batch.
type quittingMetrics struct {
	ages
	once sync.Once
}

func (m *quittingMetrics) Latency(_ string, stage engine.Stage, _ time.Duration) {
	if stage == engine.StageDelivered {
		m.once.Do(runtime.Goexit)
	}
}

func TestMetrics_ThatEndTheTurnOfAHandlerEndItsWatch(t *testing.T) {
	e := newOrders(t, func(c *engine.Config[pod]) { c.Metrics = new(quittingMetrics) })
	w, err := e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {})
	require.NoError(t, err)
	creating(t, e)()
	<-w.Done()
	require.ErrorIs(t, w.Err(), engine.ErrHandlerPanic)
	require.NotErrorIs(t, w.Err(), engine.ErrEngineClosed)
	require.EqualError(t, w.Err(), w.Name()+": watch could not deliver: goroutine ended by runtime.Goexit")
	require.NoError(t, e.Close())
}

// A channel is closed when its watch has ended.
func TestMetrics_ThatEndTheGoroutineOfAChannelEndItsWatch(t *testing.T) {
	e := newOrders(t, func(c *engine.Config[pod]) { c.Metrics = new(quittingMetrics) })
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	events := w.Chan()
	creating(t, e)()
	_, open := <-events
	require.False(t, open)
	require.ErrorIs(t, w.Err(), engine.ErrHandlerPanic)
	require.NoError(t, e.Close())
}

// The next call gets what was taken for the one that has ended.
func TestMetrics_ThatEndTheGoroutineOfACallerOfNextLoseNothing(t *testing.T) {
	e := newOrders(t, func(c *engine.Config[pod]) { c.Metrics = new(quittingMetrics) })
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	creating(t, e)()
	var calls sync.WaitGroup
	calls.Go(func() {
		_, err := w.Next(t.Context())
		t.Errorf("Next has returned: %v", err)
	})
	calls.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := w.Next(ctx)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.EqualValues(t, 1, w.Delivered())
	require.NoError(t, e.Close())
}

func TestHost_ShowsTheEnginesThatRun(t *testing.T) {
	host := newHost(t, engine.HostConfig{})
	require.Empty(t, host.Engines())
	config := cfg()
	config.Host, config.Name, config.Window.MaxEvents = host, "pods", 77
	e, err := engine.New(config)
	require.NoError(t, err)
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host, Name: "bus"})
	running := host.Engines()
	require.Len(t, running, 2)
	require.Equal(t, []string{"bus", "pods"}, []string{running[0].Name(), running[1].Name()})
	require.Equal(t, 77, running[1].Window().MaxEvents)
	require.True(t, running[1].Cached())
	for i := range 70 {
		w, err := e.Watch(t.Context(), engine.WatchOptions{Name: fmt.Sprint(i)})
		require.NoError(t, err)
		require.Len(t, running[1].Watches(), 1)
		w.Stop()
	}
	require.Eventually(t, func() bool { return running[1].Stats().Watches == 0 }, time.Minute, time.Millisecond)
	ends := running[1].Ends()
	require.Len(t, ends, 64)
	for i, end := range ends {
		require.Equal(t, fmt.Sprint(69-i), end.Name)
	}
	require.Equal(t, "stopped", ends[63].Reason())
	require.NoError(t, topic.Close())
	require.NoError(t, e.Close())
	require.Empty(t, host.Engines())
	require.Zero(t, running[1].Stats().Watches)
}

func TestView_WindowIsTheOneThatWatchesResumeFrom(t *testing.T) {
	defaults := engine.Window{MinAge: window.DefaultMinAge, MaxEvents: window.DefaultMaxEvents, MaxBytes: window.DefaultMaxBytes, ChunkSize: window.DefaultChunkSize}
	lasting := defaults
	lasting.MinAge, lasting.MaxEvents = math.MaxInt64, engine.DefaultDurableEvents
	storage := newLasting(t)
	for name, test := range map[string]struct {
		change func(*engine.Config[pod])
		want   engine.Window
	}{
		"as it is left out":    {func(*engine.Config[pod]) {}, defaults},
		"over lasting storage": {func(c *engine.Config[pod]) { c.Backend = storage }, lasting},
		"without a cache":      {func(c *engine.Config[pod]) { c.NoCache = true }, engine.Window{}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(t, test.change)
			require.Equal(t, test.want, e.Host().Engines()[0].Window())
		})
	}
}

// So a scrape of their metrics takes none for another.
func TestHost_EnginesOfOneNameAreInTheOrderOfTheirBeginning(t *testing.T) {
	host := newHost(t, engine.HostConfig{})
	for n := 1; n <= 5; n++ {
		config := cfg()
		config.Host, config.Name, config.Window.MaxEvents = host, "pods", n
		e, err := engine.New(config)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
	}
	for range 20 {
		var order []int
		for _, running := range host.Engines() {
			order = append(order, running.Window().MaxEvents)
		}
		require.Equal(t, []int{1, 2, 3, 4, 5}, order)
	}
}

func TestWatchEnd_HasAWordForEachReason(t *testing.T) {
	var words []string
	for _, why := range []error{
		engine.ErrStopped, &store.ExpiredError{}, engine.ErrSlowConsumer, &engine.PanicError{}, engine.ErrDeadline, engine.ErrEngineClosed, errOutage,
	} {
		words = append(words, engine.WatchEnd{Err: why}.Reason())
	}
	require.Equal(t, []string{"stopped", "expired", "slow", "panicked", "deadline", "closed", "failed"}, words)
}

// A handler may fail with the end of another watch, which is not an end that was asked for.
func TestWatchEnd_OfAHandlerIsNotWhatItsErrorWraps(t *testing.T) {
	var told ages
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Metrics = &told })
	for name, err := range map[string]error{"closed": engine.ErrEngineClosed, "stopped": engine.ErrStopped, "slow": engine.ErrSlowConsumer} {
		failing, began := e.Process(ctx, engine.WatchOptions{Name: name}, engine.ErrorPolicy{Attempts: 1},
			func(context.Context, engine.Event[pod]) error { return fmt.Errorf("pass on: %w", err) })
		require.NoError(t, began)
		panicking, began := e.Handle(ctx, engine.WatchOptions{Name: name + " panic"}, func(engine.Event[pod]) { panic(err) })
		require.NoError(t, began)
		_, written := e.Create(ctx, pod{Name: name})
		require.NoError(t, written)
		<-failing.Done()
		<-panicking.Done()
	}
	require.NoError(t, e.Close())
	words := map[string]string{}
	for _, end := range told.ended {
		words[end.Name] = end.Reason()
	}
	require.Equal(t, map[string]string{
		"closed": "failed", "stopped": "failed", "slow": "failed",
		"closed panic": "panicked", "stopped panic": "panicked", "slow panic": "panicked",
	}, words)
	s := e.Stats()
	require.Equal(t, [2]uint64{0, 3}, [2]uint64{s.Terminated, s.Panicked})
}
