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
)

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
	{"answers by what it read before a write that goes on", "Reads_BesideWritersSeeWhatWasAcknowledged", func(h correct) *wrapper {
		var writing atomic.Int32
		var read atomic.Uint64
		w := eachPut(func(ctx context.Context, h correct, draft, prev *object, opts backend.PutOptions) (*object, error) {
			calls := writing.Add(1)
			defer writing.Add(-1)
			o, err := h.Put(ctx, draft, prev, opts)
			pause(time.Duration(calls) * time.Millisecond) // so that others come in between
			return o, err
		})(h)
		w.revision = func(ctx context.Context) (store.Revision, error) {
			if writing.Load() > 0 {
				return store.Revision(read.Load()), nil
			}
			rev, err := h.Revision(ctx)
			read.Store(uint64(rev))
			return rev, err
		}
		return w
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
	{"says that some remain after the last page", "List_PagesAddUp", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil && opts.Limit > 0 {
				l.Remaining = -1
			}
			return l, err
		})},
	{"counts what remains too low", "List_AtEachRevision", eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil && l.Remaining > 1 {
				l.Remaining--
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
