package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var (
	// ErrDraining: the engine is being drained, and accepts neither writes nor new watches.
	// It is an [ErrEngineClosed]. A write that took effect so late that watches may not be told
	// fails with an error that is a [backend.ErrUncertain], too.
	ErrDraining = fmt.Errorf("%w: it is being drained", ErrEngineClosed)
	// ErrUndelivered: a Drain has not delivered everything. The error is an
	// [*UndeliveredError].
	ErrUndelivered = errors.New("not everything was delivered")
)

// Undelivered is a watch that was ended before it had delivered everything that was
// committed.
type Undelivered struct {
	// Name is the name of the watch; see [WatchOptions].Name.
	Name string
	// Events is how many events it had not delivered; see [Watch.Lag]. Initial says whether
	// it had not delivered the rest of its initial state, either.
	Events  uint64
	Initial bool
	// Revision is where its consumer stood; see [Watch.Revision].
	Revision Revision
}

// String returns the name, the number of events and the revision, for people.
func (u Undelivered) String() string {
	events := "events"
	if u.Events == 1 {
		events = "event"
	}
	text := fmt.Sprintf("%s: %d %s behind, at revision %d", u.Name, u.Events, events, u.Revision)
	if u.Initial {
		text += ", and the rest of its initial state"
	}
	return text
}

// UndeliveredError lists the watches that had not delivered everything when a Drain
// stopped waiting. The engine is closed nevertheless.
type UndeliveredError struct {
	// Watches has those watches, the one that was furthest behind first, a thousand at most. It
	// is empty if none was behind what had arrived from storage.
	Watches []Undelivered
	// Cause is why Drain stopped waiting, usually the cause of its context; [ErrEngineClosed] if
	// another call has closed the engine.
	Cause error
}

// maxNamed is how many watches an error names.
const maxNamed = 10

func (e *UndeliveredError) Error() string {
	if len(e.Watches) == 0 {
		return fmt.Sprintf("not known whether everything was delivered: %v; no watch is behind what has arrived from storage", e.Cause)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "not everything was delivered: %v", e.Cause)
	more := "; and %d more"
	if len(e.Watches) == maxUndelivered {
		more = "; and at least %d more"
	}
	for i, w := range e.Watches {
		if i == maxNamed {
			fmt.Fprintf(&text, more, len(e.Watches)-i)
			break
		}
		fmt.Fprintf(&text, "; %v", w)
	}
	return text.String()
}

// Is makes errors.Is(err, ErrUndelivered) true.
func (e *UndeliveredError) Is(target error) bool { return target == ErrUndelivered }

// Unwrap returns Cause.
func (e *UndeliveredError) Unwrap() error { return e.Cause }

// draining is what an engine has to deliver before a Drain closes it.
type draining struct {
	// over is closed when everything has been delivered, or is not waited for any more.
	over chan struct{}
	// delivered: everything has been.
	delivered atomic.Bool

	mu sync.Mutex
	// final is the newest revision that was acknowledged.
	final Revision
	// sealed: later writes are neither delivered nor acknowledged.
	sealed bool
}

// admit acknowledges a write that was in progress when the draining began.
func (d *draining) admit(o *store.Object) (*store.Object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed && o.Revision > d.final {
		return nil, &untoldError{o.Key, o.Revision}
	}
	d.final = max(d.final, o.Revision)
	return o, nil
}

// untoldError reports a write that took effect after the last one that a Drain has to deliver.
// It is a [backend.ErrUncertain], without which an error of a write says that nothing was
// written.
type untoldError struct {
	key string
	at  Revision
}

func (e *untoldError) Error() string {
	return fmt.Sprintf("%v: the write of %q took effect at revision %d, and watches may not be told", ErrDraining, e.key, e.at)
}

// Is makes errors.Is(err, [backend.ErrUncertain]) true.
func (e *untoldError) Is(target error) bool { return target == backend.ErrUncertain }

// Unwrap returns ErrDraining.
func (e *untoldError) Unwrap() error { return ErrDraining }

// seal ends the admission of writes, unless some were admitted after reached.
func (d *draining) seal(reached Revision) (final Revision, sealed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sealed = d.final <= reached
	d.final = max(d.final, reached)
	return d.final, d.sealed
}

// Drain closes the engine after everything that was acknowledged has been delivered: it
// refuses writes and new watches with [ErrDraining], waits until every watch has
// delivered all committed events and ended with [ErrEngineClosed], and closes. A handler
// counts as served when it has returned. A watch without a handler must be read to its
// end, unless it has nothing to read.
//
// An informer or another client of [Engine.Source] counts as served when it has taken the
// events; its own handlers may be behind. If it comes back meanwhile, it gets what it has not had,
// and its watch ends again. Without a cache such clients are the backend's, and Drain does not wait
// for them.
//
// Give ctx a deadline: if storage goes back in time meanwhile, it never shows what
// was acknowledged before, and Drain waits for that until ctx is done. If ctx is done at
// the beginning, for example after another Drain that took all the time, Drain fails even if
// there is nothing to deliver.
//
// If ctx is done first, the engine is closed all the same, and the error is an
// [*UndeliveredError] that names each watch that has not delivered everything, joined
// with Close's error. Close then waits for handlers that still run, so that Drain can take
// the host's CloseTimeout longer than ctx. A Drain while another one runs waits for that, as
// long as its own ctx. If one of them, Close, or the end of the host drops events, or the first Drain
// does not learn whether everything was delivered, each returns the error. In a handler, which it
// would wait for, it only returns [ErrInHandler].
func (e *Engine[T]) Drain(ctx context.Context) error { return e.core.drain(ctx) }

func (e *core) drain(ctx context.Context) error {
	if actors.InTurn() {
		return fmt.Errorf("drain %s: %w", e.cfg.name, ErrInHandler)
	}
	var err error
	d := &draining{over: make(chan struct{})}
	switch {
	case e.alive() != nil: // what was not delivered has been dropped
	case e.draining.CompareAndSwap(nil, d):
		err = e.deliverAll(ctx, d)
	default:
		err = e.host.await(ctx, e.draining.Load().over)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	closed := e.close()
	if first := e.draining.Load(); err == nil && first != nil && !first.delivered.Load() {
		err = ErrEngineClosed // by a call that did not wait for everything
	}
	if late := e.dropped.all(); err != nil || len(late) > 0 {
		err = &UndeliveredError{Watches: late, Cause: cmp.Or(err, ErrEngineClosed)}
	}
	return errors.Join(err, closed)
}

// deliverAll is deliver for the first Drain, for which the others wait.
func (e *core) deliverAll(ctx context.Context, d *draining) error {
	defer close(d.over)
	err := e.deliver(ctx, d)
	d.delivered.Store(err == nil)
	return err
}

// deliver returns when every watch has delivered everything and ended, or when ctx is
// done.
func (e *core) deliver(ctx context.Context, d *draining) error {
	final, err := e.finalRevision(ctx)
	if err != nil {
		return err
	}
	for sealed := false; !sealed; final, sealed = d.seal(final) {
		if err := e.waitUntimed(ctx, final); err != nil {
			return err
		}
	}
	if e.cfg.cached() {
		reply := make(chan error, 1)
		if !e.parts.dispatcher.Tell(dispatcher.Drain{Reason: ErrEngineClosed, Reply: reply}) {
			return ErrEngineClosed
		}
		if err := e.host.reply(ctx, reply); err != nil {
			return err
		}
	}
	return e.drainWatches(ctx, final)
}

// drainWatches makes each watch deliver what storage has up to final and end, and returns when all have. A
// watch may be opened meanwhile, so it looks again until there is none.
func (e *core) drainWatches(ctx context.Context, final Revision) error {
	for running := e.registry.Watches(); len(running) > 0; running = e.registry.Watches() {
		for _, w := range running {
			w.Drain(ctx, final)
		}
		for _, w := range running {
			if err := e.host.await(ctx, w.Done()); err != nil {
				return err
			}
		}
	}
	return nil
}

// finalRevision returns storage's revision, which it asks for until storage answers, unless that
// or the engine is closed.
func (e *core) finalRevision(ctx context.Context) (Revision, error) {
	for failures := 1; ; failures++ {
		final, err := e.storage.Backend().Revision(ctx)
		if err == nil || errors.Is(err, store.ErrClosed) {
			return final, e.translateStorage(err)
		}
		e.reportUncached(err)
		if err := cmp.Or(wait(ctx, e, pauseAfter(failures)), e.alive()); err != nil {
			return 0, err
		}
	}
}

// maxUndelivered is the most watches that Stats.Undelivered and an [UndeliveredError] have.
const maxUndelivered = 1000

// undelivered returns the watches that have not delivered everything, the one that is
// furthest behind first, at most maxUndelivered, and how many there are in all.
func (e *core) undelivered() (late []Undelivered, all int) {
	for _, w := range e.registry.Watches() {
		revision, lag := w.Revision(), w.Lag()
		if initial := revision == 0; (lag > 0 || initial) && !w.HasEverything() {
			late = append(late, Undelivered{Name: w.Name(), Events: lag, Initial: initial, Revision: revision})
		}
	}
	slices.SortFunc(late, func(a, b Undelivered) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(late[:min(len(late), maxUndelivered)]), len(late)
}

// noteUndelivered records and logs the watches whose events the end of the engine drops. The first
// call counts, which comes before the watches end.
func (e *core) noteUndelivered() {
	var late []Undelivered
	all := 0
	e.closing.note.Do(func() {
		if late, all = e.undelivered(); all > 0 {
			e.dropped.Store(&late)
		}
	})
	if all > 0 {
		e.host.system.Logger().Warn("engine closed before everything was delivered",
			"engine", e.cfg.name, "watches", all, "furthest", late[0].String())
	}
}

// droppedAtClose has the watches that had not delivered everything when the engine ended.
type droppedAtClose struct{ atomic.Pointer[[]Undelivered] }

// all returns the watches.
func (d *droppedAtClose) all() []Undelivered {
	if late := d.Load(); late != nil {
		return *late
	}
	return nil
}
