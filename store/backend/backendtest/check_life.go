package backendtest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var lifeChecks = []check{
	{"Contract_CloseEndsWatches", func(x *fixture) {
		waiting, lagging := x.follow("", x.revision()), x.follow("", x.revision())
		o := x.create("a", "x")
		waiting.sees(added(o))
		waiting.sees()
		waiting.settle()
		require.NoError(x, x.Backend.Close())
		waiting.await()
		for _, f := range []*follower{waiting, lagging} {
			_, err := f.watcher.Next(1)
			x.fails(err, store.ErrClosed, "Next after the backend was closed")
			f.watcher.Close()
		}
	}},
	{"Contract_EverythingFailsOnceClosed", func(x *fixture) {
		o := x.create("a", "x")
		require.NoError(x, x.Backend.Close())
		require.NoError(x, x.Backend.Close(), "a second Close does nothing")
		for verb, err := range x.everyVerb(x.ctx, o) {
			x.fails(err, store.ErrClosed, "%s after Close", verb)
		}
	}},
	{"Contract_DoneContextFailsAndChangesNothing", func(x *fixture) {
		o := x.create("a", "x")
		ctx, cancel := context.WithCancelCause(x.ctx)
		cancel(errDone)
		for verb, err := range x.everyVerb(ctx, o) {
			x.fails(err, errDone, "%s with a done context must fail with its cause, see context.Cause", verb)
		}
		x.holds(o)
		require.Equal(x, o.Revision, x.revision())
	}},
}

// errDone is the cause of contexts that are done.
var errDone = errors.New("the context is done")

// settle removes the notification that may be left of events that were read already.
func (f *follower) settle() {
	select {
	case <-f.notified:
		f.sees()
	default:
	}
}

// everyVerb calls every method that can fail, on the object o, and returns
// their errors.
func (x *fixture) everyVerb(ctx context.Context, o *object) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = x.Backend.Get(ctx, o.Key)
	_, errs["Put"] = x.Backend.Put(ctx, draft("new", ""), nil, backend.PutOptions{})
	_, errs["Put over"] = x.Backend.Put(ctx, draft(o.Key, ""), o, backend.PutOptions{})
	_, errs["Remove"] = x.Backend.Remove(ctx, o)
	_, errs["List"] = x.Backend.List(ctx, backend.ListOptions{})
	_, errs["Watch"] = x.Backend.Watch(ctx, backend.WatchOptions{Notify: func() {}})
	_, errs["Revision"] = x.Backend.Revision(ctx)
	_, errs["Compacted"] = x.Backend.Compacted(ctx)
	errs["Compact"] = x.Backend.Compact(ctx, o.Revision)
	if _, err := backend.StoreID(ctx, x.Backend); !errors.Is(err, store.ErrUnsupported) {
		errs["StoreID"] = err
	}
	return errs
}
