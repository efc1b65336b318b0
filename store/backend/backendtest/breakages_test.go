package backendtest_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/usercode"
)

// breakage is a defect of a backend, with the check that must find it.
type breakage struct {
	damage
	// reopen is what a restart returns, another what a second process opens; nil means
	// a correct backend.
	reopen, another func(correct) *wrapper
	// stops: the clock stands still while the storage is closed. sleeps: it does from when the storage
	// is opened again, as for storage that sets no timers then.
	stops, sleeps bool
}

// damage is a defect that the backend has from the start.
type damage struct {
	name  string
	found string
	wreck func(correct) *wrapper
}

var breakages = slices.Concat(
	fromTheStart(brokenWrites, brokenReads, brokenHistory, brokenWatches, brokenLives, brokenSharing), brokenRestarts,
)

func fromTheStart(groups ...[]damage) (all []breakage) {
	for _, d := range slices.Concat(groups...) {
		all = append(all, breakage{damage: d})
	}
	return all
}

// schema is the schema of the items.
var schema = backendtest.Schema()

// eachPut breaks every write.
func eachPut(wreck func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error)) func(correct) *wrapper {
	return func(h correct) *wrapper {
		return &wrapper{correct: h, put: func(ctx context.Context, draft, prev *object, opts backend.PutOptions) (*object, error) {
			return wreck(ctx, h, draft, prev, opts)
		}}
	}
}

// overwrite writes unconditionally.
func overwrite(ctx context.Context, h correct, draft *object, opts backend.PutOptions) (*object, error) {
	for {
		prev, _ := h.Get(ctx, draft.Key)
		if o, err := h.Put(ctx, draft, prev, opts); !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists) {
			return o, err
		}
	}
}

var brokenWrites = []damage{
	{"forgets when it was created", "Create_StoresWhatItReturns", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if err != nil {
				return nil, err
			}
			forgetful := schema.Clone(o)
			forgetful.Created = 0
			return forgetful, nil
		})},
	{"ignores TTL", "Create_WithTTLIsDeletedInTime", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			return h.Put(ctx, draft, prev, backend.PutOptions{})
		})},
	{"creates over what exists", "Create_OfAnExistingKeyFails", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if prev == nil {
				return overwrite(ctx, h, draft, opts)
			}
			return h.Put(ctx, draft, prev, opts)
		})},
	{"looks for what has no revision", "Create_OfAnExistingKeyFails", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if prev != nil && prev.Revision == 0 {
				return nil, &store.NotFoundError{Key: draft.Key}
			}
			return h.Put(ctx, draft, prev, opts)
		})},
	{"updates whatever is there", "Put_DemandsTheRevision", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if _, err := h.Get(ctx, draft.Key); err == nil && prev != nil {
				return overwrite(ctx, h, draft, opts)
			}
			return h.Put(ctx, draft, prev, opts)
		})},
	{"acknowledges one of ten updates without writing", "Put_ConcurrentOnesAllApply", func(h correct) *wrapper {
		var calls atomic.Int32
		return eachPut(func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if calls.Add(1)%10 == 0 {
				return h.Get(ctx, draft.Key)
			}
			return h.Put(ctx, draft, prev, opts)
		})(h)
	}},
	{"lets updates expire with what they replaced", "Put_SetsTheTimeToLiveAnew", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if o, err := h.Get(ctx, draft.Key); err == nil && !o.Expires.IsZero() {
				opts.TTL = time.Second
			}
			return h.Put(ctx, draft, prev, opts)
		})},
	{"makes permanent what is to keep its expiry", "Put_KeepsTheExpiryIfAsked", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			return h.Put(ctx, draft, prev, backend.PutOptions{TTL: opts.TTL})
		})},
	{"renews the expiry that it is to keep", "Put_KeepsTheExpiryIfAsked", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if o, err := h.Get(ctx, draft.Key); err == nil && opts.KeepExpiry && !o.Expires.IsZero() {
				opts = backend.PutOptions{TTL: o.Expires.Sub(o.Written) + time.Second}
			}
			return h.Put(ctx, draft, prev, opts)
		})},
	{"writes before it describes", "Contract_PanicInTheSchemaWritesNothing", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			if !store.As[item](draft).Value.Poison {
				return h.Put(ctx, draft, prev, opts)
			}
			_, _ = h.Put(ctx, backendtest.Draft(backendtest.Value{Key: draft.Key}), prev, opts)
			return nil, usercode.ErrPanic
		})},
	{"takes a negative TTL for none", "Contract_NegativeTTLIsRefused", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			return h.Put(ctx, draft, prev, backend.PutOptions{TTL: max(0, opts.TTL)})
		})},
	{"completes drafts that it does not write", "Contract_DraftIsTheCallersAfterAnError", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if err != nil {
				draft.Revision++
			}
			return o, err
		})},
	{"stamps drafts that conflict", "Contract_DraftIsTheCallersAfterAnError", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if errors.Is(err, store.ErrConflict) {
				store.As[item](draft).Value.Revision++
			}
			return o, err
		})},
	{"lets drafts that it refuses expire", "Contract_DraftIsTheCallersAfterAnError", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if ctx.Err() != nil {
				draft.Expires = began.Add(opts.TTL)
			}
			return o, err
		})},
	{"numbers what it does not emit", "Contract_DraftIsTheCallersAfterAnError", broken(func(w *wrapper) {
		w.emit = func(ctx context.Context, draft *object) (*object, error) {
			o, err := w.correct.Emit(ctx, draft)
			if err != nil {
				draft.Revision++
			}
			return o, err
		}
	})},
	{"creates again over what it does not know", "Contract_RevisionIsAllThatIsNeededOfPrev", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if err == nil && prev != nil && prev.Created == 0 {
				o = schema.Clone(o)
				o.Created = o.Revision
			}
			return o, err
		})},
	{"removes what it was given", "Contract_RevisionIsAllThatIsNeededOfPrev", broken(func(w *wrapper) {
		w.remove = func(ctx context.Context, prev *object) (*object, error) {
			gone, err := w.correct.Remove(ctx, prev)
			if err != nil {
				return nil, err
			}
			return schema.Gone(prev, gone.Revision, gone.Written), nil
		}
	})},
	{"shows a conflict with what was expected", "Contract_ConflictsShowTheObject", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if conflict := (*backend.ConflictError)(nil); errors.As(err, &conflict) {
				return nil, &backend.ConflictError{Key: conflict.Key, Expected: conflict.Expected, Current: prev}
			}
			return o, err
		})},
	{"stores values without their revision", "Contract_ValuesCarryTheirRevision", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			store.As[item](draft).Value.Stamped = false
			return h.Put(ctx, draft, prev, opts)
		})},
	{"updates objects in place", "Contract_ObjectsOnceReturnedNeverChange", eachPut(
		func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			old, _ := h.Get(ctx, draft.Key)
			o, err := h.Put(ctx, draft, prev, opts)
			if err == nil && old != nil {
				*store.As[item](old) = *store.As[item](o)
			}
			return o, err
		})},
	{"removes at the old revision", "Remove_ReturnsTheLastStateAtANewRevision", func(h correct) *wrapper {
		return &wrapper{correct: h, remove: func(ctx context.Context, prev *object) (*object, error) {
			last, _ := h.Get(ctx, prev.Key)
			if _, err := h.Remove(ctx, prev); err != nil {
				return nil, err
			}
			return last, nil
		}}
	}},
	{"shows a deletion as old as what it deletes", "Contract_WrittenIsWhenTheStateWasCommitted", eachEvent(store.Deleted, func(ev event) event {
		ev.Object = schema.Gone(ev.Object, ev.Revision, ev.Prev.Written)
		return ev
	})},
	{"removes whatever is there", "Remove_DemandsTheRevision", func(h correct) *wrapper {
		return &wrapper{correct: h, remove: func(ctx context.Context, prev *object) (*object, error) {
			o, err := h.Get(ctx, prev.Key)
			if err != nil {
				return nil, err
			}
			return h.Remove(ctx, o)
		}}
	}},
	{"stores what is emitted", "Contract_EmittedValuesAreNotState", func(h correct) *wrapper {
		return &wrapper{correct: h, emit: func(ctx context.Context, draft *object) (*object, error) {
			return overwrite(ctx, h, draft, backend.PutOptions{})
		}}
	}},
}
