package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// updates ranges over a follower until nothing more comes, and returns what it
// was given as text, and why it ended.
func updates(follow func(func(engine.Update[pod], error) bool)) (texts []string, end error) {
	for up, err := range follow {
		if err != nil {
			return texts, err
		}
		texts = append(texts, textOf(up))
	}
	return texts, nil
}

// textOf returns an update as in "list@3: a=1 b=2", or "3: ADDED a@3".
func textOf(up engine.Update[pod]) string {
	text := fmt.Sprintf("%d:", up.Revision)
	if up.List != nil {
		text = "list@" + text
		for _, o := range up.List.Items {
			text += fmt.Sprintf(" %s=%d", o.Key, o.Value.N)
		}
	}
	for _, ev := range up.Events {
		text += " " + ev.String()
	}
	if up.Cause != nil {
		cause := up.Cause
		if ended := (*engine.EndError)(nil); errors.As(cause, &ended) {
			cause = ended.Reason
		}
		text += " since " + strings.SplitN(cause.Error(), ":", 2)[0]
	}
	return text
}

// requireUpdates ranges over a follower until the engine is idle.
func requireUpdates(t *testing.T, follow func(func(engine.Update[pod], error) bool), want ...string) {
	t.Helper()
	got, end := updates(follow)
	require.Equal(t, want, got)
	require.ErrorIs(t, end, engine.ErrIdle)
}

func TestFollow_ListsThenBringsWhatHappens(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "db", 2)
	web := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{Labels: "app=web"})
	requireUpdates(t, web, "list@3: a=1")
	f.put("c", "db", 3)
	f.put("a", "web", 4)
	f.remove("a")
	requireUpdates(t, web, "6: MODIFIED a@5 DELETED a@6")
	f.put("d", "db", 5)
	requireUpdates(t, web)
	known := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{From: 4})
	requireUpdates(t, known, "7: MODIFIED a@5 DELETED a@6 ADDED d@7")
}

func TestFollow_ListsWhatItIsToWatch(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "db", 2)
	for _, opts := range []engine.WatchOptions{
		{Key: "a"}, {Prefix: "a"}, {Labels: "app=web"}, {Fields: "n=1"},
		{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"})}, {FieldSelector: fields.OneTermEqualSelector("n", "1")},
	} {
		requireUpdates(t, engine.Follow(t.Context(), f.Engine, opts), "list@3: a=1")
	}
}

func TestFollow_GoesOnBehindTheUpdateThatALoopWasLeftAt(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
	for up, err := range all {
		require.NoError(t, err)
		require.NotNil(t, up.List)
		break
	}
	f.settle()
	require.Zero(t, f.Stats().Watches, "nothing is left running between two loops")
	f.put("a", "web", 2)
	for up, err := range all {
		require.NoError(t, err)
		require.Equal(t, "3: MODIFIED a@3", textOf(up))
		break
	}
	f.put("b", "web", 1)
	requireUpdates(t, all, "4: ADDED b@4")
}

// Watches that end are resumed where history reaches back, and otherwise listed
// again.
func TestFollow_ListsAgainWhatTheWindowHasLost(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Window = engine.Window{MaxEvents: 4, ChunkSize: 2} })
	f.put("a", "web", 1)
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{Buffer: 1})
	requireUpdates(t, all, "list@2: a=1")
	for n := range 20 {
		f.put("b", "web", n)
	}
	got, end := updates(all)
	require.ErrorIs(t, end, engine.ErrIdle)
	require.Equal(t, "list@22: a=1 b=19 since too old revision", got[len(got)-1])
}

func TestFollow_ResumesWhatATimeoutHasEnded(t *testing.T) {
	f := newReadFixture(t)
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{Timeout: time.Second})
	requireUpdates(t, all, "list@1:")
	f.within(3 * time.Second)
	requireUpdates(t, all)
	f.put("a", "web", 1)
	requireUpdates(t, all, "2: ADDED a@2 since watch deadline reached")
}

// Storage that is restored from a backup is older than what the consumer has,
// whether it watches meanwhile or not.
func TestFollow_ListsTheNewestOfStorageThatWentBack(t *testing.T) {
	f := newReadFixture(t)
	for n := range 5 {
		f.put("a", "web", n)
	}
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
	requireUpdates(t, all, "list@6: a=4")
	next, stop := iter.Pull2(engine.Follow(t.Context(), f.Engine, engine.WatchOptions{}))
	defer stop()
	up, err, _ := next()
	require.NoError(t, err)
	require.Equal(t, "list@6: a=4", textOf(up))
	f.goBack()
	f.storage.BreakWatches(nil)
	f.pass(10 * time.Second)
	f.put("b", "web", 1)
	f.within(time.Minute)
	requireUpdates(t, all, "list@2: b=1 since too old revision")
	up, err, _ = next()
	require.NoError(t, err)
	require.Equal(t, "list@2: b=1 since too old revision", textOf(up))
}

// Without a cache, and with storage that has no identity, the revision alone says that
// storage is older than what the consumer has.
func TestFollow_ListsTheNewestOfStorageWithoutACacheThatWentBack(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprint("identity=", named), func(t *testing.T) {
			f := newStorageFixture(t)
			f.start(func(c *engine.Config[pod]) {
				if c.NoCache = true; !named {
					c.Backend = nameless{c.Backend}
				}
			})
			for n := range 5 {
				f.put("a", "web", n)
			}
			all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
			requireUpdates(t, all, "list@6: a=4")
			f.goBack()
			f.put("b", "web", 1)
			f.within(time.Minute)
			got, end := updates(all)
			require.ErrorIs(t, end, engine.ErrIdle)
			require.Len(t, got, 1)
			require.Contains(t, got[0], "list@2: b=1 since too ")
			f.put("c", "web", 1)
			requireUpdates(t, all, "3: ADDED c@3")
		})
	}
}

// Storage that went back may have come past the consumer's revision by the time the watch
// is opened again: that it expired is then all that tells.
func TestFollow_ListsAgainAfterAnExpiredWatchWhateverHistoryHas(t *testing.T) {
	f := newStorageFixture(t)
	f.start(func(c *engine.Config[pod]) { c.NoCache, c.Backend = true, nameless{c.Backend} })
	for n := range 5 {
		f.put("a", "web", n)
	}
	next, stop := iter.Pull2(engine.Follow(t.Context(), f.Engine, engine.WatchOptions{}))
	defer stop()
	up, err, _ := next()
	require.NoError(t, err)
	require.Equal(t, "list@6: a=4", textOf(up))
	f.put("a", "web", 5)
	up, err, _ = next()
	require.NoError(t, err)
	require.Equal(t, "7: MODIFIED a@7", textOf(up))
	f.goBack()
	for n := range 7 {
		f.put("b", "web", n)
	}
	require.Equal(t, 1, f.storage.ExpireWatches())
	up, err, _ = next()
	require.NoError(t, err)
	require.Equal(t, "list@8: b=6 since too old revision", textOf(up))
}

func TestFollow_WaitsForAnEngineThatIsNotReady(t *testing.T) {
	f := newDownFixture(t)
	all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
	f.within(20 * time.Second)
	requireUpdates(t, all)
	f.setDown(false)
	f.within(time.Minute)
	got, end := updates(all)
	require.ErrorIs(t, end, engine.ErrIdle)
	require.Len(t, got, 1)
	require.Contains(t, got[0], "list@1: since storage is (re)initializing")
}

func TestFollow_EndsWithItsContextOrTheEngine(t *testing.T) {
	e, ctx := newEngine(t, nil)
	gone := errors.New("gone")
	ended, end := context.WithCancelCause(ctx)
	defer end(nil)
	n := 0
	for up, err := range engine.Follow(ended, e, engine.WatchOptions{}) {
		if n++; n == 1 {
			require.NotNil(t, up.List)
			end(gone)
			continue
		}
		require.ErrorIs(t, err, gone)
	}
	require.Equal(t, 2, n, "the error is the last pair")
	_, err := updates(engine.Follow(ended, e, engine.WatchOptions{}))
	require.ErrorIs(t, err, gone)

	n = 0
	for _, err := range engine.Follow(ctx, e, engine.WatchOptions{}) {
		if n++; n == 1 {
			require.NoError(t, e.Close())
			continue
		}
		require.ErrorIs(t, err, engine.ErrEngineClosed)
	}
	require.Equal(t, 2, n)
}

func TestFollow_RefusesWhatMeansNothingToIt(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for name, test := range map[string]struct {
		opts engine.WatchOptions
		err  error
	}{
		"InitialState": {engine.WatchOptions{InitialState: true}, engine.ErrInvalidWatch},
		"Last":         {engine.WatchOptions{Last: 1}, engine.ErrInvalidWatch},
		"Buffer":       {engine.WatchOptions{Buffer: -1}, engine.ErrInvalidWatch},
		"Labels":       {engine.WatchOptions{Labels: "=="}, engine.ErrInvalidSelector},
		"Fields":       {engine.WatchOptions{Fields: "size=1"}, engine.ErrUnknownField},
		"Key":          {engine.WatchOptions{Key: "//"}, engine.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []engine.Revision{0, 1} {
				test.opts.From = from
				_, err := updates(engine.Follow(ctx, e, test.opts))
				require.ErrorIs(t, err, test.err)
				_, err = engine.Resume(ctx, e, test.opts, func(*engine.List[pod]) {}, nil)
				require.ErrorIs(t, err, test.err)
			}
		})
	}
}

// Nothing but Follow asks storage without a cache, so nothing else tells of its errors.
func TestFollow_TellsOnErrorWhatItRetriesWithoutACache(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Times: 3, Do: faulty.Fail(errDown)})
	f.within(time.Minute)
	_, end := updates(engine.Follow(t.Context(), f.Engine, engine.WatchOptions{}))
	require.ErrorIs(t, end, engine.ErrIdle)
	require.Len(t, f.errs, 3)
	for _, err := range f.errs {
		require.ErrorIs(t, err, errDown)
	}
}

// Storage that is closed does not come back, whether there is a cache to say so or not.
func TestFollow_EndsIfStorageHasEndedForGood(t *testing.T) {
	for _, noCache := range []bool{true, false} {
		t.Run(fmt.Sprint("NoCache=", noCache), func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			all := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{})
			requireUpdates(t, all, "list@1:")
			require.NoError(t, f.storage.Close())
			f.within(time.Minute)
			_, end := updates(all)
			require.ErrorIs(t, end, store.ErrClosed)
			require.NotErrorIs(t, end, engine.ErrEngineClosed)
		})
	}
}

// What the engine cannot do it will not do later.
func TestFollow_EndsIfTheEngineDoesNotSupportIt(t *testing.T) {
	e := uncached(t)
	_, err := updates(engine.Follow(t.Context(), e, engine.WatchOptions{Policy: engine.Conflate}))
	require.ErrorIs(t, err, engine.ErrUnsupported)
}

func TestResume_TellsOfAListBeforeTheWatchStarts(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Window = engine.Window{MaxEvents: 4, ChunkSize: 2} })
	first := f.put("a", "web", 1)
	var told []string
	reset := func(l *engine.List[pod]) {
		told = append(told, textOf(engine.Update[pod]{List: l, Revision: l.Revision}))
	}
	handle := func(ev engine.Event[pod]) { told = append(told, ev.String()) }
	w, err := engine.Resume(t.Context(), f.Engine, engine.WatchOptions{}, reset, handle)
	require.NoError(t, err)
	f.put("b", "web", 2)
	require.Equal(t, []string{"list@2: a=1", "ADDED b@3"}, told)
	w.Stop()
	stood := w.Revision()

	told = nil
	f.put("b", "web", 3)
	w, err = engine.Resume(t.Context(), f.Engine, engine.WatchOptions{From: stood}, reset, handle)
	require.NoError(t, err)
	f.settle()
	require.Equal(t, []string{"MODIFIED b@4"}, told, "there is no need to list")
	w.Stop()

	told = nil
	for n := range 20 {
		f.put("c", "web", n)
	}
	w, err = engine.Resume(t.Context(), f.Engine, engine.WatchOptions{From: first, Labels: "app=web"}, reset, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"list@24: a=1 b=3 c=19"}, told)
	f.put("a", "web", 5)
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"MODIFIED a@25"}, names(events))
	w.Stop()
}
