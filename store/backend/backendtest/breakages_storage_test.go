package backendtest_test

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// broken returns a function that wraps a correct backend and applies change.
func broken(change func(w *wrapper)) func(correct) *wrapper {
	return func(h correct) *wrapper {
		w := intact(h)
		change(w)
		return w
	}
}

var brokenRestarts = []breakage{
	{damage: damage{"forgets the last revision", "Restart_KeepsStateAndRevision", nil}, reopen: func(h correct) *wrapper {
		return &wrapper{correct: h, revision: func(ctx context.Context) (store.Revision, error) {
			rev, err := h.Revision(ctx)
			return rev - 1, err
		}}
	}},
	{damage: damage{"is another storage every time", "Restart_KeepsStateAndRevision", nil}, reopen: broken(func(w *wrapper) {
		w.storeID = func(context.Context) (string, error) { return "another", nil }
	})},
	{damage: damage{"forgets labels and fields", "Restart_KeepsStateAndRevision", nil}, reopen: eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			l, err := h.List(ctx, opts)
			if err == nil {
				for i, o := range l.Items {
					l.Items[i] = schema.Clone(o)
					l.Items[i].Labels = store.Labels{}
				}
			}
			return l, err
		})},
	{damage: damage{"has no history from before", "Restart_ResumesFromEveryRevision", nil}, reopen: func(h correct) *wrapper {
		opened, _ := h.Revision(context.Background())
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			if opts.From != 0 && opts.From < opened {
				return nil, &store.ExpiredError{Requested: opts.From, Oldest: opened}
			}
			return h.Watch(ctx, opts)
		}}
	}},
	{damage: damage{"has no history of some keys", "Restart_ResumesFromEveryRevision", nil}, reopen: func(h correct) *wrapper {
		opened, _ := h.Revision(context.Background())
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			if opts.Prefix != "" {
				opts.From = max(opts.From, opened)
			}
			return h.Watch(ctx, opts)
		}}
	}},
	{damage: damage{"knows only the newest state before", "Restart_ResumesFromEveryRevision", nil}, reopen: eachEvent(store.Modified, func(ev event) event {
		ev.Prev = ev.Object
		return ev
	})},
	{damage: damage{"lists the newest state for any", "Restart_ListsEveryRevision", nil}, reopen: eachList(
		func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			opts.Revision = 0
			return h.List(ctx, opts)
		})},
	{damage: damage{"forgets what was compacted", "Restart_KeepsWhatWasCompacted", nil}, reopen: broken(func(w *wrapper) {
		w.compacted = func(context.Context) (store.Revision, error) { return 0, nil }
	})},
	{damage: damage{"does not count the time that it was closed", "Restart_DeletesWhatExpiresMeanwhile", nil}, stops: true},
	{damage: damage{"deletes nothing after it was opened again", "Restart_DeletesWhatExpiresAfterIt", nil}, sleeps: true},
	{damage: damage{"says nothing of what it keeps to another process", "Contract_SharedStorageIsOne", nil}, another: func(h correct) *wrapper {
		start, _ := h.Revision(context.Background())
		return eachList(func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			opts.Revision = start
			return h.List(ctx, opts)
		})(h)
	}},
	{damage: damage{"is one storage here and another there", "Contract_SharedStorageIsOne", nil}, another: broken(func(w *wrapper) {
		w.storeID = func(context.Context) (string, error) { return "another", nil }
	})},
}

var brokenSharing = []damage{
	{"is shared and does not say so", "Contract_SharedStorageIsOne", broken(func(w *wrapper) { w.alone = true })},
	{"says that something was deleted and not what", "Contract_WatchWithoutPrevTellsWhatHappened", eachEvent(store.Deleted, func(ev event) event {
		ev.Prev, ev.Object = nil, &object{Revision: ev.Revision}
		return ev
	})},
	{"leaves out the object with the state before", "Contract_WatchWithoutPrevTellsWhatHappened", eachEvent(store.Modified, func(ev event) event {
		ev.Object, ev.Prev = ev.Prev, nil
		return ev
	})},
	{"splits a revision", "Contract_OneRevisionIsNeverSplit", func(h correct) *wrapper {
		return newGroups(h, func(g *groups, w watcher, limit int) (batch, error) {
			b, err := w.Next(limit)
			return g.showBatch(b), err
		})
	}},
	{"forgets all of a revision but the first", "Contract_OneRevisionIsNeverSplit", func(h correct) *wrapper {
		return newGroups(h, func(g *groups, w watcher, limit int) (batch, error) {
			b, err := g.next(w, limit)
			b.Events = slices.CompactFunc(b.Events, func(x, y event) bool { return x.Revision == y.Revision })
			return b, err
		})
	}},
	{"tells a revision backwards", "Contract_OneRevisionIsNeverSplit", func(h correct) *wrapper {
		return newGroups(h, func(g *groups, w watcher, limit int) (batch, error) {
			b, err := g.next(w, limit)
			slices.SortStableFunc(b.Events, func(x, y event) int {
				if x.Revision != y.Revision {
					return int(x.Revision) - int(y.Revision)
				}
				return -compareKeys(x, y)
			})
			return b, err
		})
	}},
	{"takes others' updates for creations", "Contract_ForeignWritesAreWrites", func(h correct) *wrapper {
		w := grouped(h)
		get := w.get
		w.get = func(ctx context.Context, key string) (*object, error) {
			o, err := get(ctx, key)
			if err == nil {
				o.Created = o.Revision
			}
			return o, err
		}
		return w
	}},
	{"writes over what others wrote", "Contract_ForeignWritesAreWrites", func(h correct) *wrapper {
		w := grouped(h)
		w.put = func(ctx context.Context, draft, _ *object, opts backend.PutOptions) (*object, error) {
			return overwrite(ctx, h, draft, opts)
		}
		return w
	}},
	{"tells the storage of first pages only", "Contract_ListsAndWatchesAreOfTheStorage", identified(
		func(id string, opts backend.ListOptions) string {
			if opts.Continue != "" {
				return ""
			}
			return id
		}, itself)},
	{"watches another storage than it lists", "Contract_ListsAndWatchesAreOfTheStorage", identified(
		func(id string, _ backend.ListOptions) string { return id }, func(id string) string { return "another than " + id })},
	{"promises progress and makes none", "Contract_ProgressComesOnRequest", eachWatch(
		func(_ correct, w watcher, opts backend.WatchOptions) *watcherWrapper {
			through := opts.From
			return &watcherWrapper{watcher: w, progress: func(context.Context) error { return nil }, next: func(limit int) (batch, error) {
				b, err := w.Next(limit)
				b.After = through
				if len(b.Events) > 0 {
					through = b.Through
				}
				b.Through = through
				return b, err
			}}
		})},
}

func itself(id string) string { return id }

// compareKeys orders events by key.
func compareKeys(x, y event) int {
	switch {
	case x.Key() < y.Key():
		return -1
	case x.Key() > y.Key():
		return 1
	}
	return 0
}
