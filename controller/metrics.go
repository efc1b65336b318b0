package controller

import (
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

// Metrics gets measurements that [Stats] does not have. Set it as [Config].Metrics. Package
// controller/prommetrics exports them to Prometheus.
//
// A controller calls the methods from several goroutines in the middle of its work, all but
// Reconciled with its queue locked: they must be quick, must not block, and must not use the
// controller. A panic in Reconciled is logged. After one in another method none of these is
// called any more: Stats.Queue.MetricsErr has it.
//
// It may gain methods. An implementation embeds [NoMetrics], which will have them, too.
type Metrics interface {
	// Queued is called for each key that is added to those to be reconciled, and was not
	// among them.
	Queued(controller string)
	// Waited is called when a worker takes a key, with how long that was queued.
	Waited(controller string, waited time.Duration)
	// Delayed is called for each key that is to be queued after a delay: after a failed call,
	// by Result.RequeueAfter, or by EnqueueAfter.
	Delayed(controller string)
	// Reconciled is called for each call of Reconcile that has returned, unless the limiter or OnError ends the
	// goroutine after it.
	Reconciled(controller string, call Call)

	embedsNoMetrics()
}

// NoMetrics is the [Metrics] that measures nothing. An implementation embeds it, and has methods
// for what it measures.
type NoMetrics struct{}

// Queued does nothing.
func (NoMetrics) Queued(string) {}

// Waited does nothing.
func (NoMetrics) Waited(string, time.Duration) {}

// Delayed does nothing.
func (NoMetrics) Delayed(string) {}

// Reconciled does nothing.
func (NoMetrics) Reconciled(string, Call) {}

func (NoMetrics) embedsNoMetrics() {}

// Call is a call of Reconcile that has returned.
type Call struct {
	Key string
	// Took is how long it took, by the host's clock.
	Took time.Duration
	// RequeueAfter is that of its Result.
	RequeueAfter time.Duration
	// Err is nil if the call succeeded, a [*ReconcileError] if it failed, and [ErrClosed] if it
	// was ended by Close.
	Err error
}

// queueMetrics are the metrics of the work queue, which contains their panics. They do not measure
// how long an item took: Reconciled says more.
type queueMetrics struct {
	queue.NoWorkQueueMetrics
	of         Metrics
	controller string
}

func (m queueMetrics) Added(int) { m.of.Queued(m.controller) }

func (m queueMetrics) Started(_ int, waited time.Duration) { m.of.Waited(m.controller, waited) }

func (m queueMetrics) Retried() { m.of.Delayed(m.controller) }

// measure tells the metrics of a call that began at that time, and adds how long it took.
func (c *core) measure(began time.Time, call Call) {
	if c.cfg.metrics == nil {
		return
	}
	if now := c.now(); now.After(began) && !began.IsZero() {
		call.Took = now.Sub(began)
	}
	if panicked := usercode.Call("Metrics.Reconciled", call.Key, func() { c.cfg.metrics.Reconciled(c.cfg.name, call) }); panicked != nil {
		engine.SystemOf(c.host).Logger().Error("metrics failed", "controller", c.cfg.name, "reason", panicked)
	}
}

// now returns the host's time if there are metrics, and zero otherwise, or if the clock panics.
func (c *core) now() (now time.Time) {
	if c.cfg.metrics != nil {
		_ = usercode.Call("Clock.Now", "", func() { now = c.host.Clock().Now() })
	}
	return now
}
