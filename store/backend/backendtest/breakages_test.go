package backendtest_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
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
	// stops: the clock stands still while the storage is closed.
	stops bool
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

// eachList breaks every list.
func eachList(wreck func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error)) func(correct) *wrapper {
	return func(h correct) *wrapper {
		return &wrapper{correct: h, list: func(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
			return wreck(ctx, h, opts)
		}}
	}
}

var brokenReads = []damage{
	{"gets what was before", "Get_ReturnsTheNewest", func(h correct) *wrapper {
		return &wrapper{correct: h, get: func(ctx context.Context, key string) (*object, error) {
			rev, _ := h.Revision(ctx)
			old, err := h.List(ctx, backend.ListOptions{Prefix: key, Revision: rev - 1})
			if err == nil && len(old.Items) > 0 && old.Items[0].Key == key {
				return old.Items[0], nil
			}
			return h.Get(ctx, key)
		}}
	}},
	{"lists the newest state at any revision", "List_AtEachRevision", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			at := opts.Revision
			opts.Revision = 0
			l, err := h.List(ctx, opts)
			if err == nil && at != 0 {
				l.Revision = at
			}
			return l, err
		})},
	{"takes the future for now", "List_RefusesWhatCannotBe", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			rev, _ := h.Revision(ctx)
			opts.Revision = min(opts.Revision, rev)
			return h.List(ctx, opts)
		})},
	{"lists the newest state at a revision of 64 bits", "List_RefusesWhatCannotBe", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			if opts.Revision > math.MaxInt64 {
				opts.Revision = 0
			}
			return h.List(ctx, opts)
		})},
	{"takes prefixes by the byte", "List_PrefixesAreOfWholePathSegments", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			prefix := opts.Prefix
			opts.Prefix = ""
			l, err := h.List(ctx, opts)
			if err == nil {
				l.Items = slices.DeleteFunc(l.Items, func(o *object) bool { return !strings.HasPrefix(o.Key, prefix) })
			}
			return l, err
		})},
	{"cleans keys", "Keys_MalformedOnesAreRefusedByEveryVerb", func(h correct) *wrapper {
		return &wrapper{correct: h, get: func(ctx context.Context, key string) (*object, error) {
			return h.Get(ctx, strings.Trim(key, "/"))
		}}
	}},
	{"says the revision before", "Revision_IsThatOfTheNewestChange", func(h correct) *wrapper {
		return &wrapper{correct: h, revision: func(ctx context.Context) (store.Revision, error) {
			rev, err := h.Revision(ctx)
			return max(1, rev-1), err
		}}
	}},
	{"lists with a wrong revision", "Reads_SeeWhatWasAcknowledged", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil {
				l.Revision--
			}
			return l, err
		})},
	{"begins at revision zero", "Contract_EmptyStorageHasARevision", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil && l.Revision == 1 {
				l.Revision = 0
			}
			return l, err
		})},
	{"loses the last of each page", "List_PagesAddUp", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil && l.Continue != "" {
				l.Items = l.Items[:len(l.Items)-1]
			}
			return l, err
		})},
	{"starts behind the key", "List_StartsAtAKey", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			if opts.Start != "" && opts.Continue == "" {
				opts.Continue, opts.Start = backend.Token{Revision: opts.Revision, Start: opts.Start}.Encode(), ""
				opts.Revision = 0
			}
			return h.List(ctx, opts)
		})},
	{"pages through the newest state", "List_PagesDoNotSeeLaterWrites", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			if token, err := backend.ParseToken(opts.Continue); err == nil {
				opts.Continue = backend.Token{Start: token.Start}.Encode()
			}
			return h.List(ctx, opts)
		})},
	{"lists a state and its objects", "Contract_StateOfAListIsTheList", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil && l.State != nil {
				l.Items = l.State.AppendTo(l.Items, "")
			}
			return l, err
		})},
	{"lists the newest state for any", "Contract_StateOfAListIsTheList", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil && l.State != nil {
				newest, _ := h.List(ctx, backend.ListOptions{State: true})
				l.State = newest.State
			}
			return l, err
		})},
	{"offers no way on from an expired page", "List_ExpiredContinueOffersTheNewestState", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			var expired *backend.ExpiredContinueError
			if errors.As(err, &expired) {
				return nil, expired.Expired
			}
			return l, err
		})},
}

var brokenHistory = []damage{
	{"compacts nothing", "Compact_GivesUpOlderStates", func(h correct) *wrapper {
		var compacted store.Revision
		return &wrapper{
			correct:   h,
			compact:   func(_ context.Context, rev store.Revision) error { compacted = rev; return nil },
			compacted: func(context.Context) (store.Revision, error) { return compacted, nil },
		}
	}},
	{"compacts backwards", "Compact_GoesForwardOnly", func(h correct) *wrapper {
		var compacted store.Revision
		return &wrapper{
			correct: h,
			compact: func(ctx context.Context, rev store.Revision) error {
				err := h.Compact(ctx, rev)
				if err == nil {
					compacted = rev
				}
				return err
			},
			compacted: func(context.Context) (store.Revision, error) { return compacted, nil },
		}
	}},
	{"compacts nothing at a revision of 64 bits", "Compact_GoesForwardOnly", func(h correct) *wrapper {
		return &wrapper{correct: h, compact: func(ctx context.Context, rev store.Revision) error {
			if rev > math.MaxInt64 {
				return nil
			}
			return h.Compact(ctx, rev)
		}}
	}},
	{"starts watches from a revision of 64 bits now", "Watch_FromTheFutureFails", func(h correct) *wrapper {
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			if opts.From > math.MaxInt64 {
				opts.From = 0
			}
			return h.Watch(ctx, opts)
		}}
	}},
	{"starts expired watches where it can", "Compact_EarlierWatchesExpire", func(h correct) *wrapper {
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			if oldest, _ := h.Compacted(ctx); opts.From != 0 {
				opts.From = max(opts.From, oldest)
			}
			return h.Watch(ctx, opts)
		}}
	}},
	{"says nothing to a watch that was overtaken", "Compact_OvertakesALaggingWatch", eachWatch(
		func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
			var last batch
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				if errors.Is(err, store.ErrExpired) {
					return batch{After: last.Through, Through: last.Through}, nil
				}
				last = b
				return b, err
			}}
		})},
	{"keeps the last hundred events", "Contract_SlowWatchDoesNotHoldUpWriters", func(h correct) *wrapper {
		return eachPut(func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			o, err := h.Put(ctx, draft, prev, opts)
			if err == nil && o.Revision > 100 {
				err = h.Compact(ctx, o.Revision-100)
			}
			return o, err
		})(h)
	}},
}
