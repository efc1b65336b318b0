package inspect

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
)

// MaxWatches is the largest number of watches of an engine, and of handlers of an informer, in a
// [State]: those that are the furthest behind.
const MaxWatches = 100

// State is what engines, informers and controllers are doing at one moment.
type State struct {
	At          time.Time
	Engines     []Engine
	Informers   []Informer
	Controllers []Controller
	// Actors are the actors that have queues, of all hosts. Timers is how many timers are
	// armed.
	Actors []actors.MailboxInfo
	Timers int
}

// Engine is the state of one engine. ID tells it from others in the states of the same hosts, also
// from those of its name that began before it and have ended.
type Engine struct {
	ID, Name string
	// Cached: there is a cache. Ready: it can serve. Ended: it never can again, since
	// storage has ended for good.
	Cached, Ready, Ended bool
	// Revision is the cache's, Floor the oldest one from which a watch can resume.
	Revision, Floor engine.Revision
	Generation      uint64
	Objects         int
	// WindowEvents is how many events the window has. MaxEvents and MaxBytes are its
	// bounds; they are zero without a cache.
	WindowEvents, MaxEvents int
	MaxBytes                int64
	// StateBytes, WindowBytes and HistoryBytes are estimates of memory.
	StateBytes, WindowBytes, HistoryBytes int64
	// Events, Dispatched and Wakes are totals, for rates.
	Events, Dispatched, Wakes uint64
	Stalls, Relists, Failures uint64
	Running, Stalled          int64
	Source                    Source
	// Watches are sorted, the slowest first.
	Watches []Watch
	// Ends are sorted, the newest first.
	Ends []End
}

// Source is the state of the Reflector of an engine or informer. Errors counts those of the backend, and
// LastError is the last of them, "" for none.
type Source struct {
	Phase     string
	Revision  engine.Revision
	Errors    uint64
	LastError string
}

// Watch is the state of one watch. Lag, Delivered and Lost are numbers of events: those
// ahead of the consumer, those that it has received, and those that were left out under
// the policy Conflate. BehindSeconds is the age of the oldest event ahead, AgeSeconds
// that of the watch.
type Watch struct {
	Name, Selector, Policy, Consumer string
	Revision                         engine.Revision
	Lag                              uint64
	BehindSeconds, AgeSeconds        float64
	Delivered, Lost                  uint64
	// StalledSeconds is for how long it has been stalled; zero if it is not.
	StalledSeconds float64
}

// End is the end of a watch. Reason is its kind in a word, and Why the error.
type End struct {
	Name, Reason, Why string
	At                time.Time
	Delivered         uint64
}

// Informer is the state of an informer. Objects and Quarantined are numbers of its objects, Running
// that of its handlers, of which Handlers has the slowest.
type Informer struct {
	Name                 string
	Revision             engine.Revision
	Objects, Quarantined int
	Source               Source
	Running              int
	Handlers             []InformerHandler
}

// InformerHandler is the state of a handler of an informer. Lag is how many notifications are pending. Synced:
// it has handled its initial state. Called: it is being called.
type InformerHandler struct {
	Name, Policy   string
	Lag            int
	Synced, Called bool
}

// Controller is the state of a controller. Queued, Running and Delayed are numbers of keys: those
// that wait for one of the Workers, are being reconciled, and wait for their delay. Lag is how many
// changes of objects have not been queued yet.
type Controller struct {
	Name                              string
	Workers, Queued, Running, Delayed int
	Lag                               int
	// LongestSeconds is how long the longest of the calls of Reconcile that run has been running.
	LongestSeconds float64
	// Reconciled, Failed and GivenUp are totals: calls that succeeded and that failed, and keys that
	// were given up.
	Reconciled, Failed, GivenUp uint64
}

// StateOf returns the state of all engines on the hosts.
func StateOf(hosts ...*engine.Host) State { return Options{Engines: hosts}.State() }

// State returns the state of the engines, informers and controllers.
func (o Options) State() State {
	s := State{At: time.Now(), Engines: []Engine{}, Informers: []Informer{}, Controllers: []Controller{}, Actors: []actors.MailboxInfo{}}
	for i, h := range o.Engines {
		now := h.Clock().Now()
		for _, r := range h.Engines() {
			e := engineState(r, now)
			e.ID = fmt.Sprint(i, "-", r.ID()) // hosts of one seed give their engines the same
			s.Engines = append(s.Engines, e)
		}
		s.Actors = append(s.Actors, engine.SystemOf(h).Mailboxes()...)
		s.Timers += h.Timers()
	}
	for _, i := range o.Informers {
		s.Informers = append(s.Informers, informerState(i))
	}
	for _, c := range o.Controllers {
		s.Controllers = append(s.Controllers, controllerState(c))
	}
	return s
}

func informerState(i informer.Observed) Informer {
	stats, handlers := i.Stats(), i.Handlers()
	s := Informer{
		Name: i.Name(), Revision: stats.Revision, Objects: stats.Objects, Quarantined: stats.Quarantined,
		Source: sourceState(stats.Source), Running: len(handlers), Handlers: []InformerHandler{},
	}
	for _, h := range handlers[:min(len(handlers), MaxWatches)] {
		s.Handlers = append(s.Handlers, InformerHandler{Name: h.Name, Policy: h.Policy.String(), Lag: h.Lag, Synced: h.Synced, Called: h.Running})
	}
	return s
}

func sourceState(stats engine.SourceStats) Source {
	s := Source{Phase: stats.Phase.String(), Revision: stats.Revision, Errors: stats.Errors}
	if err := stats.LastError; err != nil {
		s.LastError = err.Error()
	}
	return s
}

func controllerState(c controller.Observed) Controller {
	stats := c.Stats()
	return Controller{
		Name: c.Name(), Workers: stats.Workers, Queued: stats.Queue.Queued, Running: stats.Queue.Running, Delayed: stats.Queue.Delayed,
		Lag: stats.Lag, LongestSeconds: stats.Queue.Longest.Seconds(), Reconciled: stats.Reconciled, Failed: stats.Failed, GivenUp: stats.GivenUp,
	}
}

func engineState(r engine.View, now time.Time) Engine {
	stats, window := r.Stats(), r.Window()
	e := Engine{
		Name: r.Name(), Cached: r.Cached(), Ready: stats.Ready, Ended: stats.Ended,
		Revision: stats.Revision, Floor: stats.WindowFloor, Generation: stats.Generation, Objects: stats.Objects,
		WindowEvents: stats.WindowEvents, MaxEvents: window.MaxEvents, MaxBytes: window.MaxBytes,
		StateBytes: stats.StateBytes, WindowBytes: stats.WindowBytes, HistoryBytes: stats.HistoryBytes,
		Events: stats.Events, Dispatched: stats.Dispatched, Wakes: stats.Wakes,
		Stalls: stats.Stalls, Relists: stats.Relists, Failures: stats.Failures, Running: stats.Watches, Stalled: stats.Stalled,
		Source: sourceState(stats.Source), Watches: []Watch{}, Ends: []End{},
	}
	watches := r.Watches()
	for _, w := range watches[:min(len(watches), MaxWatches)] {
		e.Watches = append(e.Watches, watchState(w, now))
	}
	for _, end := range r.Ends() {
		e.Ends = append(e.Ends, End{end.Name, end.Reason(), end.Err.Error(), end.At, end.Delivered})
	}
	return e
}

func watchState(w engine.WatchInfo, now time.Time) Watch {
	s := Watch{
		Name: w.Name, Selector: w.Selector, Policy: w.Policy.String(), Consumer: w.Consumer, Revision: w.Revision,
		Lag: w.Lag, BehindSeconds: w.Behind.Seconds(), AgeSeconds: w.Age.Seconds(), Delivered: w.Delivered, Lost: w.Lost,
	}
	if !w.StalledSince.IsZero() {
		s.StalledSeconds = max(now.Sub(w.StalledSince).Seconds(), 0)
	}
	return s
}
