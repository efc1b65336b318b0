package engine

import (
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// Stage is a point of an event's delivery at which its age is measured.
type Stage string

// The stages, in their order.
const (
	// StageCached: the cache has applied the event.
	StageCached Stage = "cached"
	// StageDispatched: the dispatcher has offered it to every watch.
	StageDispatched Stage = "dispatched"
	// StageDelivered: a watch has handed it to its consumer.
	StageDelivered Stage = "delivered"
)

// Wait names something that waits for the cache.
type Wait string

// The waits.
const (
	// WaitRead: a call waited until the cache was ready, or had reached a revision. Its end
	// may also be that the call gave up. [Stats].Waits counts those that have begun.
	WaitRead Wait = "read"
	// WaitReady: the cache became ready, since the engine was made, or since the cache had
	// ceased to be ready. [Readiness].Generation counts them.
	WaitReady Wait = "ready"
)

// Metrics gets measurements that the counters of [Stats] and [WatchInfo] do not have. Set
// it as [HostConfig].Metrics, or for one engine as [Config].Metrics. The engines call its
// methods from several goroutines in the middle of their work: they must be quick and
// must not block.
//
// It may gain methods. An implementation embeds [NoMetrics], which will have them, too.
type Metrics interface {
	// Latency is called once for each batch that reaches a stage, with the time since
	// its oldest event was committed. It is not called for initial states.
	Latency(engine string, stage Stage, age time.Duration)
	// Ended is called for each watch that has ended.
	Ended(engine string, end WatchEnd)
	// Waited is called for each wait that is over, with how long it took.
	Waited(engine string, wait Wait, took time.Duration)

	embedsNoMetrics()
}

// NoMetrics is the [Metrics] that measures nothing. An implementation embeds it, and has methods
// for what it measures.
type NoMetrics struct{}

// Latency does nothing.
func (NoMetrics) Latency(string, Stage, time.Duration) {}

// Ended does nothing.
func (NoMetrics) Ended(string, WatchEnd) {}

// Waited does nothing.
func (NoMetrics) Waited(string, Wait, time.Duration) {}

func (NoMetrics) embedsNoMetrics() {}

// metrics returns the engine's, or its host's; nil for none.
func (e *core) metrics() Metrics {
	if e.cfg.metrics != nil {
		return e.cfg.metrics
	}
	return e.host.metrics
}

func (e *core) clockNow() time.Time { return e.host.system.Clock().Now() }

// measureRound measures the oldest event that came with next.
func (e *core) measureRound(m Metrics, prev, next *window.Snapshot) {
	events, _ := next.Window.Read(max(prev.Window.Next(), next.Window.First()))
	e.measure(m, StageCached, events, func() time.Time { return next.At })
	e.measure(m, StageDispatched, events, e.clockNow)
}

func (e *core) measure(m Metrics, stage Stage, events []store.Event, now func() time.Time) {
	if len(events) == 0 || events[0].Object == nil || events[0].Is(store.Initial) || events[0].Object.Written.IsZero() {
		return
	}
	e.contain("Metrics.Latency", func() { m.Latency(e.cfg.name, stage, max(now().Sub(events[0].Object.Written), 0)) })
}

// waited measures a wait.
func (e *core) waited(m Metrics, wait Wait, took time.Duration) {
	e.contain("Metrics.Waited", func() { m.Waited(e.cfg.name, wait, max(took, 0)) })
}

// onReady returns what the cache is to call when it becomes ready, nil without metrics.
func (e *core) onReady() func(took time.Duration) {
	m := e.metrics()
	if m == nil {
		return nil
	}
	return func(took time.Duration) { e.waited(m, WaitReady, took) }
}
