package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/internal/caughtup"
	"github.com/watchmill/watchmill/sim/load/internal/clients"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// History is a recorded history and the watchers that must see all of it. Changes
// and Watchers are required.
type History struct {
	// Changes are made one after the other, by one writer, Speed times faster than
	// they happened; zero means as fast as possible.
	Changes []trace.Change
	Speed   float64

	// Watchers is the number of watchers, and Via how they see the objects. The last
	// Slow of them read at most [SlowRate] events a second; only watchers that follow
	// the engine can be slow.
	Watchers int
	Via      Via
	Slow     int
	// Fields is the field selector of the watchers; scenario.TraceFields names the
	// fields of objects of traces. Policy is the policy of their watches.
	Fields string
	Policy engine.Policy
	// Breaks is how often each watcher disconnects and resumes, at random points of the
	// history that Seed determines.
	Breaks int
	Seed   uint64
	// Window is how many events the engine keeps; zero means its default.
	Window int
	// Open opens the storage for objects of a schema; nil means memory. The storage
	// must be empty, unless Resume says what is in it, and is closed at the end. The
	// objects can be encoded as JSON.
	Open func(store.Schema) (backend.Backend, error)

	// Resume, if not nil, continues a replay of the same history, with the same watchers,
	// over the same storage: writing continues after the last change that is there, and
	// each watcher from its checkpoint. The result is that of a replay that was never
	// interrupted, except for what a watcher lost before a list in an earlier process.
	Resume *Saved
	// Save, if any, is called with the position of the replay: before the first change,
	// every SaveEvery (zero means 200 ms), and at the end, never twice at a time. If it
	// returns an error, the replay ends with [ErrNotSaved]. With Save or Resume the
	// storage must outlive the process and have no changes of other writers, and Via
	// must follow the engine; otherwise the replay fails with [ErrCannotContinue].
	Save      func(*Saved) error
	SaveEvery time.Duration

	// OnProgress, if any, is called every ProgressEvery (zero means a second) and at
	// the end, never twice at a time.
	OnProgress    func(ReplayProgress)
	ProgressEvery time.Duration
}

// ReplayProgress is how far a replay has come.
type ReplayProgress struct {
	// Written is how many of the Changes have been made.
	Written, Changes int
	// Finished is how many of the Watchers have read everything or are lost.
	Finished, Watchers int
	// Delivered is how many events the watchers have received.
	Delivered uint64
}

// ErrNotEmpty: the storage has objects, which the comparison could not tell from those of
// the history.
var ErrNotEmpty = errors.New("the storage for the history is not empty")

// SlowRate is the highest number of events per second that a slow watcher of a history
// reads.
const SlowRate = 1000

// Via is how watchers see the objects of a history.
type Via uint8

const (
	// ViaWatch: each follows the engine with watches.
	ViaWatch Via = iota
	// ViaObjectCache: each has a reference to every selected object, in one of a few
	// object caches over the engine. They share caches, since a cache watches every
	// object by itself, which would dominate the measurement.
	ViaObjectCache
	// ViaInformer: each is a handler of one of a few informers over the engine.
	ViaInformer
	// ViaQueue: each follows the engine and passes the changes through a DeltaFIFO
	// to an indexer.
	ViaQueue
)

// ViaNames are the names of the values of [Via].
var ViaNames = []string{ViaWatch: "watch", ViaObjectCache: "objectcache", ViaInformer: "informer", ViaQueue: "queue"}

// String returns the name.
func (v Via) String() string {
	if int(v) < len(ViaNames) {
		return ViaNames[v]
	}
	return fmt.Sprintf("Via(%d)", uint8(v))
}

// UnmarshalText reads a name that String returns.
func (v *Via) UnmarshalText(text []byte) error {
	i := slices.Index(ViaNames, string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a way to watch; there are %s", text, strings.Join(ViaNames, ", "))
	}
	*v = Via(i)
	return nil
}

// Follows reports whether each watcher has a watch of its own, which can be slow and
// has a policy.
func (v Via) Follows() bool { return v == ViaWatch || v == ViaQueue }

// plan returns the plan of a run that replays the history.
func (h *History) plan() *scenario.Plan {
	s := scenario.Scenario{
		Name: "replay", Seed: h.Seed, Engine: scenario.Engine{Window: h.Window},
		Writers: []scenario.Writer{{Name: "writer", Count: 1, Trace: "history"}},
	}
	if h.Via.Follows() {
		w := scenario.Watcher{
			Name: "watchers", Count: h.Watchers - h.Slow, Fields: h.Fields,
			Policy: scenario.Policy(h.Policy.String()), Consumer: scenario.Follow,
		}
		if h.Via == ViaQueue {
			w.Consumer = scenario.Queue
		}
		slow := w
		slow.Name, slow.Count, slow.Consume.Rate = "slow", h.Slow, SlowRate
		s.Watchers = []scenario.Watcher{w, slow}
	}
	return &scenario.Plan{Scenario: s}
}

// replay is the part of a run that replays a history.
type replay struct {
	*History
	// base is the revision before the first write; last is that of the last write,
	// valid once everything is written.
	base, last engine.Revision
	// start is how many changes were in storage when the replay was continued, and
	// inherited their last revision; zero otherwise. origin is base as a checkpoint, set
	// if the replay is saved or continued.
	start     int
	inherited engine.Revision
	origin    engine.Checkpoint
	noOps     int
	written   atomic.Int64
	finished  atomic.Int64
	// clients are the watchers without a watch of their own.
	clients []clients.Client
	// finalState is the final state in the backend, valid once everything is written.
	finalState states.Objects
	selected   *store.Filter
	informers  []*informer.SharedInformer[content.Item]
}

// Replay writes the changes of a history to an engine while its watchers watch that
// engine. It returns when each watcher has read everything or is lost, and all resources of
// the run are released. If ctx is done it stops and reports what ran so far, as
// interrupted, without an error.
//
// Errors: those of [History.Validate], an [engine.ConfigError] of Changes, and those of the
// engine and its backend. With Resume or Save [ErrCannotContinue], [ErrNotSaved], and
// [engine.ErrForeignCheckpoint].
func Replay(ctx context.Context, h History) (_ *Replayed, err error) {
	if err := errors.Join(h.validateChanges(), h.Validate(), h.validateSaved()); err != nil {
		return nil, err
	}
	selected, err := h.filter()
	if err != nil {
		return nil, err
	}
	r := newRun(h.plan(), Options{})
	r.history = &replay{History: &h, selected: selected}
	if err := r.start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.replay(ctx); err != nil && (ctx.Err() == nil || errors.Is(err, ErrNotSaved)) {
		return nil, err
	}
	return r.replayed(ctx)
}

// replay starts the watchers, writes the history, and waits until the watchers have read
// all of it.
func (r *run) replay(ctx context.Context) (err error) {
	h := r.history
	if err := r.open(ctx); err != nil {
		return err
	}
	living, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopSaving := r.keepSaving(stop)
	defer func() { err = cmp.Or(stopSaving(), err) }()
	r.reading, r.written = context.WithCancelCause(living)
	defer r.written(nil)

	r.begin()
	defer h.show(r.replayProgress)()
	defer func() { r.took = r.stopwatch.Elapsed() }()
	var watching, opening sync.WaitGroup
	defer watching.Wait()
	for w := range r.everyWatcher() {
		opening.Add(1)
		watching.Go(func() {
			w.watchUntilRead(living, opening.Done)
			h.finished.Add(1)
		})
	}
	opening.Wait()
	for _, o := range h.clients {
		watching.Go(func() {
			o.Consume(living, r.reading)
			h.finished.Add(1)
		})
	}
	err = r.writeHistory(living)
	if err == nil {
		h.finalState, err = r.backendState(living)
	}
	if err != nil {
		stop(nil)
		return err
	}
	r.expect()
	r.written(errWritten)
	defer r.endFollowing()()
	watching.Wait()
	return nil
}

// beforeFirst waits until the engine serves the state before the first write.
func (r *run) beforeFirst(ctx context.Context) (err error) {
	h := r.history
	there, err := r.storage.List(ctx, backend.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if len(there.Items) > 0 {
		return fmt.Errorf("%w: it has the object %q: give a new storage or another prefix", ErrNotEmpty, there.Items[0].Key)
	}
	if h.base, err = r.storage.Revision(ctx); err != nil {
		return err
	}
	h.last = h.base
	return caughtup.Wait(ctx, r.engine, h.base)
}

// open brings the engine to the state before the first write, and makes the clients.
func (r *run) open(ctx context.Context) error {
	begin := r.beforeFirst
	if r.history.Resume != nil {
		begin = r.afterLast
	}
	if err := r.validateTraits(); err != nil {
		return err
	}
	if err := begin(ctx); err != nil {
		return err
	}
	if err := r.originOf(ctx); err != nil {
		return err
	}
	return r.openClients()
}

// progressAt returns which part of the history had been written at rev, from 0 to 1.
func (r *run) progressAt(rev engine.Revision) float64 {
	if r.history == nil {
		return 0
	}
	return float64(rev-r.history.base) / float64(len(r.history.Changes))
}

// writeHistory writes the changes, each when it is due. It returns the first error, such
// as the cause of ctx.
func (r *run) writeHistory(ctx context.Context) error {
	h := r.history
	g := r.callersOf("writers", r.plan.Writers[0].Name)
	w := newWriter(r, g, &r.plan.Writers[0], 0, 0)
	for i := h.start; i < len(h.Changes); i++ {
		c := &h.Changes[i]
		due := r.stopwatch.Now()
		if h.Speed > 0 {
			due = r.stopwatch.At(h.due(c))
		}
		if err := r.stopwatch.Until(ctx, due); err != nil {
			return err
		}
		rev, err := w.apply(ctx, due, c)
		if err != nil {
			return fmt.Errorf("%s %s: %w", c.Op, c.Key, err)
		}
		if rev > h.last {
			h.last = rev
		} else {
			h.noOps++
		}
		h.written.Add(1)
	}
	return nil
}

// show reports progress until stop is called, and then once more.
func (h *replay) show(progress func() ReplayProgress) (stop func()) {
	if h.OnProgress == nil {
		return func() {}
	}
	showOnce := func() { h.OnProgress(progress()) }
	end := repeat(context.Background(), h.ProgressEvery, showOnce)
	return func() {
		end()
		showOnce()
	}
}

func (r *run) replayProgress() ReplayProgress {
	h := r.history
	p := ReplayProgress{
		Written: int(h.written.Load()), Changes: len(h.Changes),
		Finished: int(h.finished.Load()), Watchers: h.Watchers, Delivered: r.delivered(),
	}
	for _, o := range h.clients {
		p.Delivered += o.Result().Delivered.Load()
	}
	return p
}

// maxWait is the longest delay of a change: a century, since a Duration cannot
// represent much more.
const maxWait = 100 * 365 * 24 * time.Hour

// due returns when a change is due, after the start of the replay. The start corresponds
// to the time of the first change or, if the replay is continued, of the last one in
// storage. A change that is earlier than that is due at the start, and one that is earlier than
// its predecessor at once.
func (h *replay) due(c *trace.Change) time.Duration {
	// In floating point, since a Duration cannot represent several centuries.
	first := h.Changes[max(0, h.start-1)].Time
	seconds := float64(c.Time.Unix()-first.Unix()) + float64(c.Time.Nanosecond()-first.Nanosecond())/1e9
	return time.Duration(math.Round(max(0, min(seconds/h.Speed, maxWait.Seconds())) * 1e9))
}
