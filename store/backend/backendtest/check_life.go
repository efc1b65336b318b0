package backendtest

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	{"Contract_CloseEndsWhatRunsBesideIt", func(x *fixture) {
		x.create("a", "x")
		over := make(chan struct{})
		defer close(over)
		calls := x.everyLoop(over)
		begun, ended := make(chan struct{}, len(calls)), make(chan error, len(calls))
		for verb, call := range calls {
			go func() { ended <- untilItFails(verb, call, begun, over) }()
		}
		for range calls {
			<-begun
		}
		require.NoError(x, x.Backend.Close())
		patience := time.NewTimer(x.Patience)
		defer patience.Stop()
		for range calls {
			select {
			case err := <-ended:
				if !backend.Uncertain(err) { // as a write may be that is on its way
					x.fails(err, store.ErrClosed, "a call beside Close")
				}
			case <-patience.C:
				require.Fail(x, "a call has not ended", "within %v after Close", x.Patience)
			}
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

// everyLoop returns calls that succeed as long as the backend is open, by their verbs. None waits
// when the check is over.
func (x *fixture) everyLoop(over <-chan struct{}) map[string]func() error {
	f, n := x.follow("", x.revision()), 0
	return map[string]func() error{
		"Get":      func() error { _, err := x.Backend.Get(x.ctx, "a"); return err },
		"List":     func() error { _, err := x.Backend.List(x.ctx, backend.ListOptions{}); return err },
		"Revision": func() error { _, err := x.Backend.Revision(x.ctx); return err },
		"Put": func() error {
			n++
			_, err := x.tryPut(draft(fmt.Sprint("k/", n), ""), nil, backend.PutOptions{})
			return err
		},
		"Watch": func() error {
			w, err := x.Backend.Watch(x.ctx, backend.WatchOptions{Notify: func() {}})
			if err == nil {
				w.Close()
			}
			return err
		},
		"Next": func() error {
			batch, err := f.watcher.Next(10)
			if err == nil && len(batch.Events) == 0 {
				select {
				case <-f.notified:
				case <-over:
				}
			}
			return err
		},
	}
}

// untilItFails repeats a call until it fails, or the check is over, and reports that it has begun.
func untilItFails(verb string, call func() error, begun chan<- struct{}, over <-chan struct{}) error {
	err := call()
	begun <- struct{}{}
	for err == nil {
		select {
		case <-over:
			return nil
		default:
			err = call()
		}
	}
	return fmt.Errorf("%s: %w", verb, err)
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
	if emitter, ok := x.Backend.(backend.Emitter); ok {
		if _, err := emitter.Emit(ctx, draft("emitted", "")); !errors.Is(err, store.ErrUnsupported) {
			errs["Emit"] = err
		}
	}
	if _, err := backend.StoreID(ctx, x.Backend); !errors.Is(err, store.ErrUnsupported) {
		errs["StoreID"] = err
	}
	return errs
}
