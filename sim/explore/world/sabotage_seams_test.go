package world

import (
	"errors"
	"reflect"
	"strings"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// changeConfig gives the engine another configuration than the scenario says.
func changeConfig(spoil func(*engine.Config[Thing])) func(*once) seams[Thing] {
	return func(*once) seams[Thing] { return seams[Thing]{config: spoil} }
}

// deliver is a seam's change to the events that a watch's consumer receives.
type deliver func(*watch[Thing], engine.Event[Thing]) []engine.Event[Thing]

func onDelivery(spoil func(*once) deliver) func(*once) seams[Thing] {
	return func(o *once) seams[Thing] { return seams[Thing]{deliver: spoil(o)} }
}

// repeatEvent repeats an event.
func repeatEvent(o *once) deliver {
	return func(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Type != engine.Bookmark && o.now() {
			return []engine.Event[Thing]{ev, ev}
		}
		return []engine.Event[Thing]{ev}
	}
}

// swapEvents exchanges an event with the next of its watch.
func swapEvents(o *once) deliver {
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

// bookmarkBeforeEvent delivers a bookmark of an event's revision before that event.
func bookmarkBeforeEvent(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Marks != 0 || ev.Type == engine.Bookmark || !r.Options.Bookmarks || !o.now() {
			return []engine.Event[Thing]{ev}
		}
		return []engine.Event[Thing]{{Type: engine.Bookmark, Revision: ev.Revision}, ev}
	}
}

// registerLate delays a registration: the consumer assumes that its watch has begun, but the engine
// receives the request only after another write.
func registerLate(o *once) seams[Thing] {
	return seams[Thing]{ask: func(w *World[Thing], r *watch[Thing], call func()) (adjustRecord func()) {
		if r.Options.From > 0 || r.Options.Last > 0 || !o.now() {
			call()
			return func() {}
		}
		requested := w.newest()
		w.write(script.Step{Do: script.Write, Seed: uint64(requested)})
		w.sched.Settle()
		call()
		return func() { r.Earliest, r.Latest = min(r.Earliest, requested), min(r.Latest, requested) }
	}}
}

// loseTurnsOfStopped loses the turn in which the actor of a stopped watch would end, so that its
// supervisor never learns of the end.
func loseTurnsOfStopped(o *once) seams[Thing] {
	return lose(o, func(r *watch[Thing]) bool { return errors.Is(r.handle.Err(), engine.ErrStopped) })
}

// loseTurnsOfStalled loses all turns of a watch after it was marked as stalled.
func loseTurnsOfStalled(o *once) seams[Thing] {
	return lose(o, func(r *watch[Thing]) bool { return r.handle.Stalled() })
}

// lose loses all further turns of one of the watches for which when has become true.
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

// watchOf returns the watch whose actor has the turn, nil if it is the turn of another
// actor.
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

// mailboxIn returns the mailbox in the unexported fields of a watch's handle; the zero
// Value if the watch is not an actor.
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
	return mailboxIn(v.Field(0)) // v wraps another handle
}

// startOneLater starts a watch one revision after the one that was requested.
func startOneLater(o *once) seams[Thing] {
	return seams[Thing]{start: func(_ *World[Thing], opts engine.WatchOptions) engine.WatchOptions {
		if opts.From > 0 && !opts.InitialState && o.now() {
			opts.From++
		}
		return opts
	}}
}

// dropFutureDeletion withholds a deletion, which the engine learned of by a list, from a watch that was
// to start at a revision above that of the engine.
func dropFutureDeletion(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.Options.From > r.reached && ev.Type == engine.Deleted && ev.Is(engine.Synthetic) && o.now() {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// dropFromChannel loses an event between a channel and its consumer.
func dropFromChannel(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.consumer == script.Channel && o.now() {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// changePolicy gives Processors another policy than the scenario says.
func changePolicy(spoil func(*engine.ErrorPolicy)) func(*once) seams[Thing] {
	return func(*once) seams[Thing] {
		return seams[Thing]{policy: func(p engine.ErrorPolicy) engine.ErrorPolicy {
			spoil(&p)
			return p
		}}
	}
}

// forgetFailure loses the error with which the function of a Processor fails.
func forgetFailure(o *once) seams[Thing] {
	return seams[Thing]{processed: func(err error) error {
		if err != nil && o.now() {
			return nil
		}
		return err
	}}
}

// dropNotification withholds a notification from the handler of an informer.
func dropNotification(o *once) seams[Thing] {
	return seams[Thing]{notify: func(_ *World[Thing], n informer.Notification[Thing]) []informer.Notification[Thing] {
		if o.now() {
			return nil
		}
		return []informer.Notification[Thing]{n}
	}}
}

// mergeNotifications merges an update with the next one of its object, for a handler that is to be told
// of each.
func mergeNotifications(o *once) seams[Thing] {
	var held *informer.Notification[Thing]
	return seams[Thing]{notify: func(w *World[Thing], n informer.Notification[Thing]) []informer.Notification[Thing] {
		updates := n.Type == store.Modified && n.Cause == informer.Change
		switch {
		case held == nil && updates && w.scenario.Setup.InformerPolicy == informer.Block && o.now():
			held = &n
			return nil
		case held == nil || n.Key() != held.Key():
			return []informer.Notification[Thing]{n}
		}
		first := *held
		if held = nil; !updates {
			return []informer.Notification[Thing]{first, n}
		}
		n.Old = first.Old
		return []informer.Notification[Thing]{n}
	}}
}

// spoilDeleted tells the handler of an informer of a deletion with another state than the last.
func spoilDeleted(o *once) seams[Thing] {
	return seams[Thing]{notify: func(_ *World[Thing], n informer.Notification[Thing]) []informer.Notification[Thing] {
		if n.Type == store.Deleted && o.now() {
			object := *n.Object
			object.Value.N++
			n.Object = &object
		}
		return []informer.Notification[Thing]{n}
	}}
}

// staleInformer makes the informer show the same snapshot from some time on.
func staleInformer(o *once) seams[Thing] {
	var had *informer.Snapshot[Thing]
	return seams[Thing]{snapshot: func(now informer.Snapshot[Thing]) informer.Snapshot[Thing] {
		if !o.since() || had == nil || had.Revision() == 0 {
			had = &now
		}
		return *had
	}}
}

// omitIndexed leaves an object out of what the informer shows by an index.
func omitIndexed(o *once) seams[Thing] {
	return seams[Thing]{indexed: func(_ *World[Thing], objects []*engine.Object[Thing]) []*engine.Object[Thing] {
		if len(objects) > 0 && o.now() {
			return objects[1:]
		}
		return objects
	}}
}

// staleIndex makes an index show what it had for another value, or before, from some time on.
func staleIndex(o *once) seams[Thing] {
	var had []*engine.Object[Thing]
	return seams[Thing]{indexed: func(_ *World[Thing], objects []*engine.Object[Thing]) []*engine.Object[Thing] {
		if !o.since() {
			had = objects
		}
		return had
	}}
}

// staleReference makes a reference return the same object from some time on.
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

// dropWithoutCache loses an event of a watch without a cache.
func dropWithoutCache(o *once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.Uncached && o.now() {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// resumeInsideTransaction makes a watch that has delivered part of a transaction report the revision of the
// whole.
func resumeInsideTransaction(o *once) seams[Thing] {
	return seams[Thing]{resumeRevision: func(r *watch[Thing], rev store.Revision) store.Revision {
		if n := len(r.Events); n > 0 && r.history.Shown(r.Events[n-1].Revision) > r.Events[n-1].Revision && o.now() {
			return r.history.Shown(r.Events[n-1].Revision)
		}
		return rev
	}}
}

// dropAfterGapMark removes the mark AfterGap, by which a watch that conflates tells of emitted
// values that it has left out.
func dropAfterGapMark(*once) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if r.Options.Policy == engine.Conflate {
			ev.Marks &^= engine.AfterGap
		}
		return []engine.Event[Thing]{ev}
	}
}

// markOne adds the marks to an event that has none, if fits returns true.
func markOne(o *once, marks engine.Marks, fits func(*watch[Thing], engine.Event[Thing]) bool) deliver {
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Marks == 0 && fits(r, ev) && o.now() {
			ev.Marks = marks
		}
		return []engine.Event[Thing]{ev}
	}
}

// isChange reports whether ev is a change of an object.
func isChange(_ *watch[Thing], ev engine.Event[Thing]) bool {
	return ev.Type != engine.Bookmark && ev.Type != engine.Emitted
}

// markSynthetic marks a change as if the engine had found it by listing.
func markSynthetic(o *once) deliver { return markOne(o, engine.Synthetic, isChange) }

// markConflated marks a change of a watch that conflates as if it stood for several.
func markConflated(o *once) deliver {
	return markOne(o, engine.Conflated, func(r *watch[Thing], ev engine.Event[Thing]) bool {
		return r.Options.Policy == engine.Conflate && isChange(r, ev)
	})
}

// markAfterGap marks an emitted value as if others before it were lost.
func markAfterGap(o *once) deliver {
	return markOne(o, engine.AfterGap, func(_ *watch[Thing], ev engine.Event[Thing]) bool { return ev.Type == engine.Emitted })
}

// markAfterConflation marks the emitted values that follow a conflation as if that had left out others.
func markAfterConflation(*once) deliver {
	conflated := map[*watch[Thing]]bool{}
	return func(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Type == engine.Emitted && conflated[r] {
			ev.Marks |= engine.AfterGap
			conflated[r] = false
		}
		conflated[r] = conflated[r] || ev.Is(engine.Conflated)
		return []engine.Event[Thing]{ev}
	}
}

// dropChangeMark removes the mark AfterGap from changes, by which a watch that conflates tells of
// objects that came and went.
func dropChangeMark(*once) deliver {
	return func(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Type != engine.Emitted {
			ev.Marks &^= engine.AfterGap
		}
		return []engine.Event[Thing]{ev}
	}
}

// reportNoneLost makes watches report that they have lost no events.
func reportNoneLost(*once) seams[Thing] {
	return seams[Thing]{lost: func(uint64) uint64 { return 0 }}
}

// forgetTimeline starts watches without the timeline that they require: before a restart, or after one.
func forgetTimeline(restarted bool) func(*once) seams[Thing] {
	return func(*once) seams[Thing] {
		return seams[Thing]{start: func(w *World[Thing], opts engine.WatchOptions) engine.WatchOptions {
			if w.restarted == restarted {
				opts.Timeline = engine.Timeline{}
			}
			return opts
		}}
	}
}

// takeAnyCheckpoint takes the checkpoints of any storage.
func takeAnyCheckpoint(*once) seams[Thing] {
	return seams[Thing]{revisionOf: func(c engine.Checkpoint) (store.Revision, error) { return c.Revision, nil }}
}

// forgetListStart lists from the first key on.
func forgetListStart(*once) seams[Thing] {
	return seams[Thing]{list: func(_ *World[Thing], opts engine.ListOptions) engine.ListOptions {
		opts.Start = ""
		return opts
	}}
}

// listBeforeNoticing lists what the cache has as the newest state, until it has noticed that storage has gone back.
func listBeforeNoticing(*once) seams[Thing] {
	return seams[Thing]{list: func(w *World[Thing], opts engine.ListOptions) engine.ListOptions {
		if opts.Read == engine.Latest() && opts.Continue == "" && w.unnoticed() {
			opts.Read = engine.Cached()
		}
		return opts
	}}
}

// forgetTokenTimeline removes the timeline from such continue tokens.
func forgetTokenTimeline(such func(*World[Thing], *paging[Thing]) bool) func(*once) seams[Thing] {
	return func(*once) seams[Thing] {
		return seams[Thing]{page: func(w *World[Thing], p *paging[Thing], text string) string {
			token, err := backend.ParseToken(text)
			if err != nil || !such(w, p) {
				return text
			}
			token.Timeline = ""
			return token.Encode()
		}}
	}
}

// ofPaging reports whether a token is used before a restart, and ofOther whether by another engine than its maker.
func ofPaging(_ *World[Thing], p *paging[Thing]) bool { return p != nil }
func ofOther(_ *World[Thing], p *paging[Thing]) bool  { return p != nil && p.maker != p.read.by }

// afterRestart reports whether a token is used after a restart.
func afterRestart(_ *World[Thing], p *paging[Thing]) bool { return p == nil }

// refuse refuses a call of an engine with a cache for no reason, other than at rest: a read of that name,
// or a watch, whose names begin with w.
func refuse(name string, err error) func(*once) seams[Thing] {
	return func(o *once) seams[Thing] {
		return seams[Thing]{refuse: func(w *World[Thing], called string) error {
			if !w.resting && w.uncached == nil && strings.HasPrefix(called, name) && o.now() {
				return err
			}
			return nil
		}}
	}
}

// sameRevisions makes the storage after a restart begin at revision one, too.
func sameRevisions(*once) seams[Thing] {
	return seams[Thing]{restart: func(opts memory.Options) memory.Options {
		opts.FirstRevision = 1
		return opts
	}}
}

// withSameRevisions adds sameRevisions to other seams.
func withSameRevisions(others func(*once) seams[Thing]) func(*once) seams[Thing] {
	return func(o *once) seams[Thing] {
		s := others(o)
		s.restart = sameRevisions(o).restart
		return s
	}
}
