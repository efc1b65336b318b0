package backendtest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/tree"
)

// nth returns a function that is true on every n-th call.
func nth(n int32) func() bool {
	var calls atomic.Int32
	return func() bool { return calls.Add(1)%n == 0 }
}

var brokenWatches = []damage{
	{"drops an event", "Watch_ShowsEachChange", eachBatch(func(b batch) batch {
		b.Events = b.Events[1:]
		return b
	})},
	{"drops one event of seven, without a trace", "Watch_NoGapAndNoDuplicateAmongConcurrentWriters", func(h correct) *wrapper {
		drop := nth(7)
		return eachBatch(func(b batch) batch {
			if drop() {
				b.Events = b.Events[:len(b.Events)-1]
			}
			return b
		})(h)
	}},
	{"repeats an event", "Watch_BehindAListRebuildsTheState", eachBatch(func(b batch) batch {
		b.Events = append(slices.Clone(b.Events), b.Events[0])
		return b
	})},
	{"repeats a batch", "Watch_FromEachRevisionShowsTheRest", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			var last batch
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				if again := last; len(again.Events) > 0 {
					last = batch{}
					return again, nil
				}
				b, err := w.Next(limit)
				last = b
				return b, err
			}}
		})},
	{"skips a revision", "Watch_FromEachRevisionShowsTheRest", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if _, err := h.Emit(ctx, backendtest.Draft(backendtest.Value{Key: "hidden"})); err != nil {
				return nil, err
			}
			return h.Put(ctx, draft, prev, opts)
		})},
	{"joins batches badly", "Watch_BehindAListRebuildsTheState", eachBatch(func(b batch) batch {
		b.After++
		return b
	})},
	{"breaks the order", "Watch_BehindAListRebuildsTheState", eachBatch(func(b batch) batch {
		b.Events = slices.Clone(b.Events)
		slices.Reverse(b.Events)
		return b
	})},
	{"is ahead of its events", "Watch_ShowsEachChange", eachBatch(func(b batch) batch {
		b.Events = b.Events[:0]
		return b
	})},
	{"forgets the state before", "Watch_ShowsEachChange", eachEvent(store.Modified, func(ev event) event {
		ev.Prev = nil
		return ev
	})},
	{"deletes with the object's own revision", "Watch_ShowsEachChange", eachEvent(store.Deleted, func(ev event) event {
		ev.Object = ev.Prev
		return ev
	})},
	{"calls every change an addition", "Watch_ShowsEachChange", eachEvent(store.Modified, func(ev event) event {
		ev.Type = store.Added
		return ev
	})},
	{"ignores the bound of a batch", "Watch_BatchesKeepToTheirBound", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			return &watcherWrapper{watcher: w, next: func(int) (batch, error) { return w.Next(1000) }}
		})},
	{"takes a bound below one for none", "Watch_BatchesKeepToTheirBound", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				if limit < 1 {
					limit = 1000
				}
				return w.Next(limit)
			}}
		})},
	{"ends a watch with the context of its start", "Watch_ContextBoundsOnlyTheStart", func(h correct) *wrapper {
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			w, err := h.Watch(ctx, opts)
			if err != nil {
				return nil, err
			}
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				if ctx.Err() != nil {
					return batch{}, ctx.Err()
				}
				return w.Next(limit)
			}}, nil
		}}
	}},
	{"watches from the future as from now", "Watch_FromTheFutureFails", func(h correct) *wrapper {
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			rev, _ := h.Revision(ctx)
			opts.From = min(opts.From, rev)
			return h.Watch(ctx, opts)
		}}
	}},
	{"makes no progress on other keys", "Watch_ProgressIsNotHeldUpByOtherKeys", eachWatch(
		func(_ correct, w watcher, opts backend.WatchOptions) *watcherWrapper {
			through := opts.From
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				b.After = through
				if len(b.Events) > 0 || err != nil {
					through = b.Through
				}
				b.Through = through
				return b, err
			}}
		})},
	{"gives the state of the batch before", "Contract_StateOfABatchIsThatBehindItsEvents", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			before := tree.New().View()
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				if b.State != nil {
					b.State, before = before, b.State
				}
				return b, err
			}}
		})},
	{"leaves out the state before for good", "Contract_PrevIsThereOnceTheStateIsGiven", eachWatch(
		func(_ correct, w watcher, opts backend.WatchOptions) *watcherWrapper {
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				if opts.NoPrev {
					b.Events = slices.Clone(b.Events)
					for i := range b.Events {
						b.Events[i].Prev = nil
					}
				}
				return b, err
			}}
		})},
	{"keeps its state for itself", "Contract_StateOfABatchIsThatBehindItsEvents", eachBatch(func(b batch) batch {
		b.State = nil
		return b
	})},
	{"gives its state once and never again", "Contract_StateIsLeftOutForNoMoreEventsThanAllowed", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			given := false
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				if given {
					b.State = nil
				}
				given = given || b.State != nil
				return b, err
			}}
		})},
	{"never notifies", "Contract_EveryEmptyBatchIsFollowedByANotification", eachNotify(func(func()) func() {
		return func() {}
	})},
	{"notifies once and never again", "Contract_EveryEmptyBatchIsFollowedByANotification", eachNotify(func(notify func()) func() {
		return sync.OnceFunc(notify)
	})},
	{"loses one notification of five", "Contract_NoNotificationIsLostBetweenGoroutines", eachNotify(func(notify func()) func() {
		lose := nth(5)
		return func() {
			if !lose() {
				notify()
			}
		}
	})},
	{"notifies a closed watch", "Contract_ClosedWatchIsNotNotified", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			return &watcherWrapper{watcher: w, close: func() {}}
		})},
}

var brokenLives = []damage{
	{"leaves watches open when it closes", "Contract_CloseEndsWatches", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				if errors.Is(err, store.ErrClosed) {
					return batch{}, nil
				}
				return b, err
			}}
		})},
	{"reads after it was closed", "Contract_EverythingFailsOnceClosed", func(h correct) *wrapper {
		return &wrapper{correct: h, compacted: func(ctx context.Context) (store.Revision, error) {
			rev, err := h.Compacted(ctx)
			if errors.Is(err, store.ErrClosed) {
				return rev, nil
			}
			return rev, err
		}}
	}},
	{"has an identity after it was closed", "Contract_EverythingFailsOnceClosed", broken(func(w *wrapper) {
		w.storeID = func(context.Context) (string, error) { return "the same", nil }
	})},
	{"emits after it was closed", "Contract_EverythingFailsOnceClosed", broken(func(w *wrapper) {
		w.emit = func(ctx context.Context, draft *object) (*object, error) {
			o, err := w.correct.Emit(ctx, draft)
			if errors.Is(err, store.ErrClosed) {
				return draft, nil
			}
			return o, err
		}
	})},
	{"fails writes beside Close in a way of its own", "Contract_CloseEndsWhatRunsBesideIt", func(h correct) *wrapper {
		refused := make(chan struct{})
		refuse := sync.OnceFunc(func() { close(refused) })
		var closing atomic.Bool
		w := eachPut(func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if closing.Load() {
				refuse()
				return nil, errors.New("closing")
			}
			return h.Put(ctx, draft, prev, opts)
		})(h)
		w.close = func() error {
			closing.Store(true)
			<-refused
			return h.Close()
		}
		return w
	}},
	{"does not notify watches that it ends", "Contract_CloseEndsWatches", func(h correct) *wrapper {
		var closing atomic.Bool
		w := eachNotify(func(notify func()) func() {
			return func() {
				if !closing.Load() {
					notify()
				}
			}
		})(h)
		w.close = func() error {
			closing.Store(true)
			return h.Close()
		}
		return w
	}},
	{"emits with a done context", "Contract_DoneContextFailsAndChangesNothing", broken(func(w *wrapper) {
		w.emit = func(ctx context.Context, draft *object) (*object, error) {
			return w.correct.Emit(context.WithoutCancel(ctx), draft)
		}
	})},
	{"ignores the context", "Contract_DoneContextFailsAndChangesNothing", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			return h.Put(context.WithoutCancel(ctx), draft, prev, opts)
		})},
}
