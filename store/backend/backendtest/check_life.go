package backendtest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var lifeChecks = []check{
	{"Contract_CloseEndsWatches", func(r *rig) {
		waiting, lagging := r.follow("", r.revision()), r.follow("", r.revision())
		o := r.create("a", "x")
		waiting.sees(added(o))
		waiting.sees()
		waiting.settle()
		require.NoError(r, r.Backend.Close())
		waiting.await()
		for _, f := range []*follower{waiting, lagging} {
			_, err := f.watcher.Next(1)
			r.fails(err, store.ErrClosed, "Next after the backend was closed")
			f.watcher.Close()
		}
	}},
	{"Contract_EverythingFailsOnceClosed", func(r *rig) {
		o := r.create("a", "x")
		require.NoError(r, r.Backend.Close())
		require.NoError(r, r.Backend.Close(), "a second Close does nothing")
		for verb, err := range r.everyVerb(r.ctx, o) {
			r.fails(err, store.ErrClosed, "%s after Close", verb)
		}
	}},
	{"Contract_DoneContextFailsAndChangesNothing", func(r *rig) {
		o := r.create("a", "x")
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		for verb, err := range r.everyVerb(ctx, o) {
			r.fails(err, context.Canceled, "%s with a done context", verb)
		}
		r.holds(o)
		require.Equal(r, o.Revision, r.revision())
	}},
}

// settle takes the notification that may be left of what was seen already.
func (f *follower) settle() {
	select {
	case <-f.notified:
		f.sees()
	default:
	}
}

// everyVerb calls every method that can fail, on the object o, and returns
// their errors.
func (r *rig) everyVerb(ctx context.Context, o *object) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = r.Backend.Get(ctx, o.Key)
	_, errs["Put"] = r.Backend.Put(ctx, draft("new", ""), nil, backend.PutOptions{})
	_, errs["Put over"] = r.Backend.Put(ctx, draft(o.Key, ""), o, backend.PutOptions{})
	_, errs["Remove"] = r.Backend.Remove(ctx, o)
	_, errs["List"] = r.Backend.List(ctx, backend.ListOptions{})
	_, errs["Watch"] = r.Backend.Watch(ctx, backend.WatchOptions{Notify: func() {}})
	_, errs["Revision"] = r.Backend.Revision(ctx)
	_, errs["Compacted"] = r.Backend.Compacted(ctx)
	errs["Compact"] = r.Backend.Compact(ctx, o.Revision)
	return errs
}
