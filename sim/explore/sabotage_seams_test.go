package explore

import (
	"errors"
	"reflect"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// deliver is what a seam makes of what a watch's consumer is given.
type deliver func(*watch[Thing], engine.Event[Thing]) []engine.Event[Thing]

func onDelivery(spoil func(*once) deliver) func(*once) seams[Thing] {
	return func(o *once) seams[Thing] { return seams[Thing]{deliver: spoil(o)} }
}

// twice repeats an event.
func twice(o *once) deliver {
	return func(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Type != engine.Bookmark && o.now() {
			return []engine.Event[Thing]{ev, ev}
		}
		return []engine.Event[Thing]{ev}
	}
}

// swap exchanges an event with the next of its watch.
func swap(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if o.now() {
			r.held = []engine.Event[Thing]{ev}
			return nil
		}
		events := append([]engine.Event[Thing]{ev}, r.held...)
		r.held = nil
		return events
	}
}

// passedByBookmark has a bookmark go before the event that it is of.
func passedByBookmark(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Marks != 0 || ev.Type == engine.Bookmark || !r.Options.Bookmarks || !o.now() {
			return []engine.Event[Thing]{ev}
		}
		return []engine.Event[Thing]{{Type: engine.Bookmark, Revision: ev.Revision}, ev}
	}
}

// late: a consumer is told that its watch has begun, but the engine hears of it
// only after another write.
func late(o *once) seams[Thing] {
	return seams[Thing]{ask: func(w *World[Thing], r *watch[Thing], call func()) (believe func()) {
		if r.Options.From > 0 || r.Options.Last > 0 || !o.now() {
			call()
			return func() {}
		}
		told := w.newest()
		w.write(Step{Do: Write, Seed: uint64(told)})
		w.sched.settle()
		call()
		return func() { r.Earliest, r.Latest = min(r.Earliest, told), min(r.Latest, told) }
	}}
}

// unheard: a watch that its consumer stops never has the turn in which its actor
// would end, so that its supervisor never hears of it.
func unheard(o *once) seams[Thing] {
	return lose(o, func(r *watch[Thing]) bool { return errors.Is(r.handle.Err(), engine.ErrStopped) })
}

// forgotten: a watch that was called stalled never has a turn again.
func forgotten(o *once) seams[Thing] {
	return lose(o, func(r *watch[Thing]) bool { return r.handle.Stalled() })
}

// lose has one watch lose its turns, of those of which when has become true.
func lose(o *once, when func(*watch[Thing]) bool) seams[Thing] {
	met := map[*watch[Thing]]bool{}
	var lost *watch[Thing]
	return seams[Thing]{turn: func(w *World[Thing], t actors.Task) bool {
		r := watchOf(w, t)
		if r != nil && !met[r] && when(r) {
			if met[r] = true; o.now() {
				lost = r
			}
		}
		return r != nil && r == lost
	}}
}

// watchOf returns the watch whose actor has the turn, nil if it is another actor's.
func watchOf(w *World[Thing], t actors.Task) *watch[Thing] {
	task := reflect.ValueOf(t).Pointer()
	for _, r := range w.started {
		box := mailboxIn(reflect.ValueOf(r.handle))
		if box.IsValid() && box.Addr().Pointer() <= task && task < box.Addr().Pointer()+box.Type().Size() {
			return r
		}
	}
	return nil
}

// mailboxIn returns the mailbox inside a watch's handle, which hides it from its
// users; the zero Value if the watch is no actor.
func mailboxIn(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.Type() == reflect.TypeFor[actors.WakeBox]() {
			return f
		}
	}
	if target := v.FieldByName("target"); target.IsValid() {
		return mailboxIn(target)
	}
	return mailboxIn(v.Field(0)) // it wraps another one
}

// oneFurther has a watch from a revision start one later.
func oneFurther(o *once) seams[Thing] {
	return seams[Thing]{start: func(_ *World[Thing], opts engine.WatchOptions) engine.WatchOptions {
		if opts.From > 0 && !opts.InitialState && o.now() {
			opts.From++
		}
		return opts
	}}
}

// uncut keeps a deletion that a list has shown from a watch which was to start
// later than the engine was.
func uncut(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.Options.From > r.reached && ev.Type == engine.Deleted && ev.Is(engine.Synthetic) && o.now() {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// unreceived loses an event between a channel and its consumer.
func unreceived(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.consumer == Channel && o.now() {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// untoldHandler keeps a notification from the handler of an informer.
func untoldHandler(o *once) seams[Thing] {
	return seams[Thing]{notify: func(informer.Notification[Thing]) bool { return !o.now() }}
}

// staleInformer has the informer show from some time on what it showed then.
func staleInformer(o *once) seams[Thing] {
	var had informer.Snapshot[Thing]
	return seams[Thing]{snapshot: func(now informer.Snapshot[Thing]) informer.Snapshot[Thing] {
		if !o.since() || had.Revision() == 0 {
			had = now
		}
		return had
	}}
}

// staleReference has a reference show from some time on what it showed then.
func staleReference(o *once) seams[Thing] {
	had := map[*objectcache.Ref[Thing]]*engine.Object[Thing]{}
	return seams[Thing]{fetched: func(r *objectcache.Ref[Thing], now *engine.Object[Thing]) *engine.Object[Thing] {
		if before, shown := had[r]; shown && o.since() {
			return before
		}
		had[r] = now
		return now
	}}
}

// undirected loses an event of a watch without a cache.
func undirected(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.Direct && o.now() {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// amidst has a watch that has given its consumer some of what happened at one
// revision say that it was all.
func amidst(o *once) seams[Thing] {
	return seams[Thing]{stands: func(r *watch[Thing], rev store.Revision) store.Revision {
		if n := len(r.Events); n > 0 && r.history.Shown(r.Events[n-1].Revision) > r.Events[n-1].Revision && o.now() {
			return r.history.Shown(r.Events[n-1].Revision)
		}
		return rev
	}}
}

// unmarked has a watch that conflates say nothing of emitted values.
func unmarked(*once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.Options.Policy == engine.Conflate {
			ev.Marks &^= engine.AfterGap
		}
		return []engine.Event[Thing]{ev}
	}
}

// uncounted has watches say that they have lost nothing.
func uncounted(*once) seams[Thing] {
	return seams[Thing]{lost: func(uint64) uint64 { return 0 }}
}

// sameRevisions has storage count from one in each life.
func sameRevisions(*once) seams[Thing] {
	return seams[Thing]{life: func(opts memory.Options) memory.Options {
		opts.FirstRevision = 1
		return opts
	}}
}
