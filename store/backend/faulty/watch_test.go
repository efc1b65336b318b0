package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestBreakWatches_EndsThoseThatRun(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	w, closed := watch(t, b, 0), watch(t, b, 0)
	closed.Close()
	create(t, b, "a")
	broken := errors.New("broken")
	notified := closed.notified
	require.Equal(t, 1, b.BreakWatches(broken))
	require.Equal(t, notified, closed.notified, "a watch that was closed is told nothing")
	require.Positive(t, w.notified)
	_, err := w.Next(1)
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, b.BreakWatches(nil), "until its reader closes it, it runs")
	_, err = w.Next(1)
	require.ErrorIs(t, err, broken, "it ends for one reason")
	w.Close()
	w.Close()
	require.Zero(t, b.BreakWatches(nil))
	again := watch(t, b, 1)
	require.Equal(t, []store.Revision{2}, again.revisions(t))
	b.BreakWatches(nil)
	_, err = again.Next(1)
	require.ErrorIs(t, err, faulty.ErrInjected)
}

// A watch that hangs can still break.
func TestBreakWatches_EndsSilentOnes(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	broken := errors.New("broken")
	w := watch(t, b, 0)
	fault := b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Chance: 0.5, Do: faulty.Hang()})
	create(t, b, "a")
	for fault.Hits() == 0 {
		_, err := w.Next(1)
		require.NoError(t, err)
	}
	create(t, b, "b")
	for range 20 {
		require.Empty(t, w.revisions(t), "once it hangs it is silent")
	}
	require.EqualValues(t, 1, fault.Hits())
	b.BreakWatches(broken)
	_, err := w.Next(1)
	require.ErrorIs(t, err, broken)
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	_, err = w.Next(1)
	require.ErrorIs(t, err, broken)
}

// A notify that panics, or ends the goroutine, as t.FailNow does, leaves no other watch out.
func TestWatches_AreAllNotifiedBehindUserCodeThatFails(t *testing.T) {
	for name, act := range map[string]func(b *faulty.Backend, hang *faulty.Fault){
		"break":  func(b *faulty.Backend, _ *faulty.Fault) { b.BreakWatches(nil) },
		"expire": func(b *faulty.Backend, _ *faulty.Fault) { b.ExpireWatches() },
		"repeat": func(b *faulty.Backend, _ *faulty.Fault) { b.RepeatLast() },
		"wake":   func(b *faulty.Backend, _ *faulty.Fault) { b.Wake() },
		"remove": func(_ *faulty.Backend, hang *faulty.Fault) { hang.Remove() },
	} {
		for how, fail := range map[string]func(){"panic": func() { panic("bad") }, "Goexit": runtime.Goexit} {
			t.Run(name+" "+how, func(t *testing.T) {
				b := newBackend(t, faulty.Options{})
				bad, err := b.Watch(t.Context(), backend.WatchOptions{Notify: fail})
				require.NoError(t, err)
				defer bad.Close()
				w := watch(t, b, 0)
				hang := b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
				require.Empty(t, w.revisions(t))
				returned := false
				var goroutine sync.WaitGroup
				goroutine.Go(func() {
					defer func() { _ = recover() }()
					act(b, hang)
					returned = true
				})
				goroutine.Wait()
				require.False(t, returned)
				require.Equal(t, 1, w.notified)
			})
		}
	}
}

func TestExpireWatches_SaysWhereEachOneWas(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	create(t, b, "a")
	w := watch(t, b, 1)
	require.Len(t, w.revisions(t), 1)
	require.Equal(t, 1, b.ExpireWatches())
	_, err := w.Next(1)
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, &store.ExpiredError{Requested: 2, Oldest: 3}, expired)
}

func TestNextThatFails_EndsItsWatch(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	w := watch(t, b, 0)
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Times: 1, Do: faulty.Fail(nil)})
	for range 2 {
		_, err := w.Next(1)
		require.ErrorIs(t, err, faulty.ErrInjected)
	}
	w.Close()
	_, err := w.Next(1)
	require.ErrorIs(t, err, faulty.ErrInjected)
}

func TestLoseAndRepeatEvent_SpoilABatchThatHasEvents(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	w := watch(t, b, 0)
	next := []faulty.Op{faulty.OpNext}
	lose := b.Add(faulty.Rule{Ops: next, Times: 1, Do: faulty.LoseEvent()})
	repeat := b.Add(faulty.Rule{Ops: next, Times: 1, Do: faulty.RepeatEvent()})
	require.Empty(t, w.revisions(t))
	require.Zero(t, lose.Hits()+repeat.Hits(), "there is nothing to lose or to repeat")
	for range 3 {
		create(t, b, string(rune('a'+b.Calls(faulty.OpPut))))
	}
	whole, err := b.Unwrap().Watch(t.Context(), backend.WatchOptions{From: 1, Notify: func() {}})
	require.NoError(t, err)
	defer whole.Close()
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Len(t, batch.Events, 3, "one is there twice, and one is gone")
	require.Equal(t, store.Revision(4), batch.Through, "it claims to be whole")
	sound, err := whole.Next(10)
	require.NoError(t, err)
	require.Equal(t, []store.Revision{2, 3, 4}, []store.Revision{sound.Events[0].Revision, sound.Events[1].Revision, sound.Events[2].Revision}, "others see what happened")

	b.Add(faulty.Rule{Ops: next, Times: 1, Do: faulty.LoseEvent()})
	require.Equal(t, []store.Revision{2, 4}, watch(t, b, 1).revisions(t))
	require.Equal(t, []store.Revision{2, 3, 4}, watch(t, b, 1).revisions(t))
}

func TestRepeatLast_BringsAnEventAgain(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	w := watch(t, b, 0)
	b.RepeatLast()
	require.Empty(t, w.revisions(t), "it has delivered none")
	create(t, b, "a")
	require.Equal(t, []store.Revision{2}, w.revisions(t))
	notified := w.notified
	b.RepeatLast()
	require.Greater(t, w.notified, notified)
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Equal(t, [2]store.Revision{2, 2}, [2]store.Revision{batch.After, batch.Through}, "it does not move")
	require.Len(t, batch.Events, 1)
	require.Empty(t, w.revisions(t))
}

// An action that makes a call twice, as one that tries again, leaves one watch.
func TestAction_ThatOpensAWatchTwiceLeavesOne(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: func(_ context.Context, _ *faulty.Call, proceed func()) {
		proceed()
		proceed()
	}})
	r := watch(t, b, 0)
	require.Len(t, b.Watches(), 1)
	r.Close()
	require.Empty(t, b.Watches())
}

func TestWatches_AreNamedByTheirPrefix(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	var stopped []string
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpStop}, Do: faulty.After(func(_ context.Context, c *faulty.Call) { stopped = append(stopped, c.Key) })})
	var watches []backend.Watcher
	for _, prefix := range []string{"x", "", "y"} {
		w, err := b.Watch(t.Context(), backend.WatchOptions{Prefix: prefix, Notify: func() {}})
		require.NoError(t, err)
		watches = append(watches, w)
	}
	require.Equal(t, []string{"x", "", "y"}, b.Watches())
	watches[1].Close()
	require.Equal(t, []string{"x", "y"}, b.Watches())
	watches[0].Close()
	watches[2].Close()
	require.Equal(t, []string{"", "x", "y"}, stopped)
}

// An engine takes over the state of storage that it need not apply events to.
func TestShareState_PassesTheStateOn(t *testing.T) {
	for _, share := range []bool{false, true} {
		b := newBackend(t, faulty.Options{ShareState: share})
		create(t, b, "a")
		page, err := b.List(t.Context(), backend.ListOptions{State: true})
		require.NoError(t, err)
		require.Equal(t, share, page.State != nil)
		w, err := b.Watch(t.Context(), backend.WatchOptions{State: true, From: 1, Notify: func() {}})
		require.NoError(t, err)
		defer w.Close()
		batch, err := w.Next(10)
		require.NoError(t, err)
		require.Len(t, batch.Events, 1)
		require.Equal(t, share, batch.State != nil)
	}
}

// As when storage is restored from a backup.
func TestReplace_PutsAnotherBackendBeneath(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	create(t, b, "a")
	w := watch(t, b, 0)
	m, err := memory.New(backendtest.Schema(), memory.Options{FirstRevision: 1})
	require.NoError(t, err)
	old := b.Replace(m)
	_, err = b.Get(t.Context(), "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	create(t, old, "b")
	require.Equal(t, []store.Revision{3}, w.revisions(t), "a watch stays where it is")
	require.NoError(t, old.Close())
	_, err = w.Next(1)
	require.ErrorIs(t, err, store.ErrClosed)
}

func TestTraits_AreThoseBeneathAsTheOptionsChangeThem(t *testing.T) {
	for _, opts := range []faulty.Options{{}, {Blocks: true}, {Sparse: true}} {
		require.Equal(t, backend.Traits{Blocks: opts.Blocks, Contiguous: !opts.Sparse}, newBackend(t, opts).Traits())
	}
}

// bounded is a backend whose calls end by themselves.
type bounded struct{ backend.Backend }

func (b bounded) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Bounded = true
	return t
}

// A rule may hang a call that the backend would end.
func TestTraits_AreNeverBounded(t *testing.T) {
	m, err := memory.New(backendtest.Schema(), memory.Options{FirstRevision: 1})
	require.NoError(t, err)
	b := faulty.New(bounded{m}, faulty.Options{})
	require.False(t, b.Traits().Bounded)
	require.NoError(t, b.Close())
}

// plain is a backend that cannot emit.
type plain struct{ backend.Backend }

func TestEmit_NeedsABackendThatEmits(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	_, err := b.Emit(t.Context(), draft("a"))
	require.NoError(t, err)
	_, err = faulty.New(plain{b.Unwrap()}, faulty.Options{}).Emit(t.Context(), draft("a"))
	require.ErrorIs(t, err, store.ErrUnsupported)
}

func TestOp_HasAName(t *testing.T) {
	require.Equal(t, "put", faulty.OpPut.String())
	unknown := faulty.OpStop + 1
	require.Equal(t, fmt.Sprintf("Op(%d)", uint8(unknown)), unknown.String())
	require.Zero(t, newBackend(t, faulty.Options{}).Calls(unknown))
}

// Whatever a rule makes of the call that closes a watch, the one beneath is closed: it would keep
// storage's history from being dropped.
func TestClose_ClosesTheWatchBeneathInSpiteOfARule(t *testing.T) {
	for name, action := range map[string]faulty.Action{
		"fails":           faulty.Fail(nil),
		"does nothing":    func(context.Context, *faulty.Call, func()) {},
		"panics":          func(context.Context, *faulty.Call, func()) { panic("oops") },
		"ends":            func(context.Context, *faulty.Call, func()) { runtime.Goexit() },
		"closes it twice": func(_ context.Context, _ *faulty.Call, proceed func()) { proceed(); proceed() },
	} {
		t.Run(name, func(t *testing.T) {
			beneath := &counting{Backend: newBackend(t, faulty.Options{})}
			b := faulty.New(beneath, faulty.Options{})
			w, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
			require.NoError(t, err)
			b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpStop}, Do: action})
			apart(w.Close)
			require.Zero(t, beneath.open)
			_, err = w.Next(1)
			require.ErrorIs(t, err, store.ErrClosed)
		})
	}
}

// A watch that its caller does not get is closed.
func TestWatch_IsClosedIfAnActionFailsOnceItIsOpen(t *testing.T) {
	for name, after := range map[string]func(context.Context, *faulty.Call){
		"fails":  func(_ context.Context, c *faulty.Call) { c.Err = faulty.ErrInjected },
		"panics": func(context.Context, *faulty.Call) { panic("oops") },
		"ends":   func(context.Context, *faulty.Call) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			beneath := &counting{Backend: newBackend(t, faulty.Options{})}
			b := faulty.New(beneath, faulty.Options{})
			b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.After(after)})
			apart(func() { _, _ = b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}}) })
			require.Equal(t, uint64(1), b.Calls(faulty.OpWatch))
			require.Empty(t, b.Watches())
			require.Zero(t, beneath.open)
		})
	}
}

// There is no watch without the call, so it has failed.
func TestWatch_FailsIfAnActionDoesNotProceed(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: func(context.Context, *faulty.Call, func()) {}})
	w, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Nil(t, w)
}

// counting is a backend that counts its open watches.
type counting struct {
	backend.Backend
	open int
}

func (b *counting) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	if err == nil {
		b.open++
	}
	return &countedWatch{Watcher: w, backend: b}, err
}

type countedWatch struct {
	backend.Watcher
	backend *counting
	closed  bool
}

func (w *countedWatch) Close() {
	if !w.closed {
		w.closed = true
		w.backend.open--
	}
	w.Watcher.Close()
}

// apart calls f in a goroutine of its own, which f may end, and contains its panic.
func apart(f func()) {
	var goroutine sync.WaitGroup
	goroutine.Go(func() {
		defer func() { _ = recover() }()
		f()
	})
	goroutine.Wait()
}

// replaced is storage that was replaced since its watches began, which know what they are of.
type replaced struct{ backend.Backend }

func (b replaced) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	return ofOld{w}, err
}

type ofOld struct{ backend.Watcher }

func (ofOld) StoreID(context.Context) (string, error) { return "old", nil }

func TestWatch_KnowsOfWhichStorageItIsIfTheUnderlyingOneDoes(t *testing.T) {
	plain := newBackend(t, faulty.Options{})
	require.NotImplements(t, (*backend.Identifier)(nil), watch(t, plain, 0).Watcher)

	known := watch(t, faulty.New(replaced{plain}, faulty.Options{}), 0)
	of, knows := known.Watcher.(backend.Identifier)
	require.True(t, knows)
	require.Implements(t, (*backend.ProgressRequester)(nil), known.Watcher, "it is a watch as the others")
	id, err := of.StoreID(t.Context())
	require.NoError(t, err)
	require.Equal(t, "old", id)
}

// asked is storage whose watches count the requests for progress, and answer them by an empty batch.
type asked struct {
	backend.Backend
	requests *int
}

func (b asked) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	return &askedWatcher{Watcher: w, requests: b.requests, at: opts.From}, err
}

type askedWatcher struct {
	backend.Watcher
	requests *int
	at       store.Revision
}

func (w *askedWatcher) RequestProgress(context.Context) error { *w.requests++; return nil }

func (w *askedWatcher) Next(int) (backend.Batch, error) {
	through := w.at + store.Revision(*w.requests)
	return backend.Batch{After: w.at, Through: through}, nil
}

// A request for progress reaches the watch beneath, unless this one is broken. Its answer comes once the watch does not
// hang any more, as events do: a consumer need not ask again.
func TestWatch_PassesRequestsForProgressOn(t *testing.T) {
	plain, requests := newBackend(t, faulty.Options{}), 0
	require.ErrorIs(t, backend.RequestProgress(t.Context(), watch(t, plain, 0).Watcher), store.ErrUnsupported)

	b := faulty.New(asked{plain, &requests}, faulty.Options{})
	w := watch(t, b, 0)
	require.NoError(t, backend.RequestProgress(t.Context(), w.Watcher))
	require.Equal(t, 1, requests)
	hang := b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	before, err := w.Next(1)
	require.NoError(t, err)
	require.NoError(t, backend.RequestProgress(t.Context(), w.Watcher))
	held, err := w.Next(1)
	require.NoError(t, err)
	require.Equal(t, before, held)
	hang.Remove()
	after, err := w.Next(1)
	require.NoError(t, err)
	require.Equal(t, before.Through+2, after.Through)
	require.Equal(t, 2, requests)
	broken := errors.New("broken")
	b.BreakWatches(broken)
	require.ErrorIs(t, backend.RequestProgress(t.Context(), w.Watcher), broken)
	require.Equal(t, 2, requests)
}
