package faulty_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// began is when the clocks of the tests start.
var began = time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)

// Without a rule it is a backend like the one beneath, and so it is with rules
// that let everything pass.
func TestBackend_ConformsWithoutFaults(t *testing.T) {
	pass := faulty.Rule{Do: faulty.Before(func(context.Context, *faulty.Call) {})}
	for name, rules := range map[string][]faulty.Rule{"no rules": nil, "rules that let pass": {{}, pass, pass}} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
				virtual := clock.NewVirtual(began)
				m, err := memory.New(schema, memory.Options{Clock: virtual, FirstRevision: 1})
				require.NoError(t, err)
				b := faulty.New(m, faulty.Options{Clock: virtual})
				for _, r := range rules {
					b.Add(r)
				}
				return backendtest.Harness{Backend: b, Pass: virtual.Advance}
			})
		})
	}
}

func TestRule_StrikesTheCallsThatItSays(t *testing.T) {
	broken := errors.New("broken")
	isLimited := func(c *faulty.Call) bool { return c.ListOptions.Limit > 0 }
	for name, test := range map[string]struct {
		rule faulty.Rule
		fail []bool // of lists of x/, x/, y/, y/ with a limit, x/ with a limit
	}{
		"all":                  {faulty.Rule{}, []bool{true, true, true, true, true}},
		"of the operation":     {faulty.Rule{Ops: []faulty.Op{faulty.OpGet, faulty.OpList}}, []bool{true, true, true, true, true}},
		"of another operation": {faulty.Rule{Ops: faulty.Writes}, []bool{false, false, false, false, false}},
		"under a path":         {faulty.Rule{Under: "y"}, []bool{false, false, true, true, false}},
		"asked for":            {faulty.Rule{When: isLimited}, []bool{false, false, false, true, true}},
		"the first two":        {faulty.Rule{Times: 2}, []bool{true, true, false, false, false}},
		"all but two":          {faulty.Rule{Skip: 2}, []bool{false, false, true, true, true}},
		"the third":            {faulty.Rule{Skip: 2, Times: 1}, []bool{false, false, true, false, false}},
		"the second under it":  {faulty.Rule{Under: "x", Skip: 1, Times: 1}, []bool{false, true, false, false, false}},
		"by a chance of two":   {faulty.Rule{Chance: 2}, []bool{true, true, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, faulty.Options{})
			test.rule.Do = faulty.Fail(broken)
			fault := b.Add(test.rule)
			hits := 0
			for i, opts := range []backend.ListOptions{{Prefix: "x"}, {Prefix: "x"}, {Prefix: "y"}, {Prefix: "y", Limit: 1}, {Prefix: "x", Limit: 1}} {
				_, err := b.List(t.Context(), opts)
				require.Equal(t, test.fail[i], errors.Is(err, broken), "list %d: %v", i, err)
				if test.fail[i] {
					hits++
				}
			}
			require.EqualValues(t, hits, fault.Hits())
			require.EqualValues(t, 5, b.Calls(faulty.OpList), "all are counted")
			fault.Remove()
			fault.Remove()
			require.NoError(t, list(t, b))
		})
	}
}

// The calls that a chance strikes depend on the seed, and on no other rule's
// calls.
func TestRule_ChanceDependsOnTheSeed(t *testing.T) {
	struck := func(seed uint64, gets int) (hits []int) {
		b := newBackend(t, faulty.Options{Seed: seed})
		b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Chance: 0.25, Do: faulty.Fail(nil)})
		for i := range 1000 {
			if list(t, b) != nil {
				hits = append(hits, i)
			}
			for range gets {
				_, _ = b.Get(t.Context(), "a")
			}
		}
		return hits
	}
	first := struck(1, 0)
	require.InDelta(t, 250, len(first), 60)
	require.Equal(t, first, struck(1, 2))
	require.NotEqual(t, first, struck(2, 0))
}

func TestRule_TimesIsExactAmongConcurrentCalls(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	fault := b.Add(faulty.Rule{Times: 10, Skip: 5, Do: faulty.Fail(nil)})
	var calls sync.WaitGroup
	failed := make(chan error, 100)
	for range 100 {
		calls.Go(func() {
			if err := list(t, b); err != nil {
				failed <- err
			}
		})
	}
	calls.Wait()
	require.Len(t, failed, 10)
	require.EqualValues(t, 10, fault.Hits())
}

// The first rule sees the call first and its result last.
func TestRules_ApplyInTheOrderInWhichTheyWereAdded(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	var order []string
	note := func(name string) faulty.Rule {
		return faulty.Rule{Do: func(_ context.Context, c *faulty.Call, proceed func()) {
			order = append(order, name+" before")
			proceed()
			order = append(order, name+" after")
			if c.Err != nil {
				c.Err = errors.Join(errors.New(name), c.Err)
			}
		}}
	}
	b.Add(note("one"))
	b.Add(note("two"))
	inner := b.Add(faulty.Rule{Do: faulty.Fail(nil)})
	err := list(t, b)
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Equal(t, "one\ntwo\n"+faulty.ErrInjected.Error(), err.Error())
	require.Equal(t, []string{"one before", "two before", "two after", "one after"}, order)
	inner.Remove()
	require.NoError(t, list(t, b))
}

// An action may make the call more than once, or change what it asks and returns.
func TestAction_MayChangeACall(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	create(t, b, "a")
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpGet}, Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		if proceed(); errors.Is(c.Err, store.ErrNotFound) {
			c.Key, c.Err = "a", nil
			proceed()
		}
	}})
	o, err := b.Get(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, "a", o.Key)

	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Do: faulty.After(func(_ context.Context, c *faulty.Call) { c.Revision-- })})
	rev, err := b.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, o.Revision-1, rev)
}

// A call that fails returns nothing else, whatever an action has left in it.
func TestFailedCalls_ReturnNothing(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	o := create(t, b, "a")
	b.Add(faulty.Rule{Do: faulty.LoseAnswer(backendtest.Schema(), nil)})
	ctx := t.Context()
	got, err := b.Get(ctx, "a")
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Nil(t, got)
	page, err := b.List(ctx, backend.ListOptions{})
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Nil(t, page)
	rev, err := b.Revision(ctx)
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Zero(t, rev)
	rev, err = b.Compacted(ctx)
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Zero(t, rev)
	require.ErrorIs(t, b.Compact(ctx, 1), faulty.ErrInjected)
	got, err = b.Remove(ctx, o)
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Nil(t, got)
	w, err := b.Watch(ctx, backend.WatchOptions{Notify: func() {}})
	require.ErrorIs(t, err, faulty.ErrInjected)
	require.Nil(t, w)
	require.Empty(t, b.Watches(), "it was closed")
}

func TestLoseAnswer_LetsAWriteTakeEffectWithoutTheDraft(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	fault := b.Add(faulty.Rule{Ops: faulty.Writes, Do: faulty.LoseAnswer(backendtest.Schema(), nil)})
	mine := draft("a")
	_, err := b.Put(t.Context(), mine, nil, backend.PutOptions{})
	require.ErrorIs(t, err, faulty.ErrInjected)
	_, err = b.Put(t.Context(), draft("a"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrExists, "what fails beneath is told as it is")
	fault.Remove()
	stored, err := b.Get(t.Context(), "a")
	require.NoError(t, err)
	require.NotSame(t, mine, stored)
	require.Zero(t, mine.Revision, "the draft is still the caller's")
}

func TestDelay_WaitsByTheClockOrEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t, faulty.Options{})
		w := watch(t, b, 0)
		fault := b.Add(faulty.Rule{Do: faulty.Delay(time.Second)})
		began := time.Now()
		require.NoError(t, list(t, b))
		require.Equal(t, time.Second, time.Since(began))
		require.Empty(t, w.revisions(t), "a next does not wait")
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, 1, fault.Hits())

		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err := b.List(ctx, backend.ListOptions{})
		require.ErrorIs(t, err, gone)
		fault.Remove()
	})
}

func TestDelay_LeavesNoTimerOfACallThatIsOver(t *testing.T) {
	virtual := clock.NewVirtual(began)
	b := newBackend(t, faulty.Options{Clock: virtual})
	b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Delay(time.Hour)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.List(ctx, backend.ListOptions{})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, virtual.Pending())
}

// No time has to pass, so that a clock that does not move is no reason to wait.
func TestDelay_OfNothingDoesNotWait(t *testing.T) {
	for _, none := range []time.Duration{0, -time.Second} {
		b := newBackend(t, faulty.Options{Clock: clock.NewVirtual(began)})
		fault := b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Delay(none)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := b.List(ctx, backend.ListOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 1, fault.Hits())
	}
}

func TestHang_HoldsCallsUntilTheRuleIsRemoved(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	fault := b.Add(faulty.Rule{Do: faulty.Hang()})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err := b.List(ctx, backend.ListOptions{})
	require.ErrorIs(t, err, gone)
	listed := make(chan error)
	go func() { listed <- list(t, b) }()
	for fault.Hits() < 2 {
		runtime.Gosched()
	}
	fault.Remove()
	require.NoError(t, <-listed)
}

func TestHang_SilencesWatches(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	w := watch(t, b, 0)
	require.Empty(t, w.revisions(t))
	fault := b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	create(t, b, "a")
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Equal(t, backend.Batch{After: 1, Through: 1}, batch, "it says where it is")
	notified := w.notified
	fault.Remove()
	require.Greater(t, w.notified, notified)
	require.Equal(t, []store.Revision{2}, w.revisions(t))

	fault = b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	batch, err = watch(t, b, 0).Next(10)
	require.NoError(t, err)
	require.Equal(t, backend.Batch{After: 2, Through: 2}, batch, "a watch without From begins at the newest revision")
	fault.Remove()

	all := b.Add(faulty.Rule{Do: faulty.Hang()})
	require.Empty(t, w.revisions(t))
	notified = w.notified
	all.Remove()
	require.Greater(t, w.notified, notified, "a rule for all operations includes Next")
}

func TestExpire_FailsWhatNeedsHistory(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	create(t, b, "a")
	w := watch(t, b, 1)
	fault := b.Add(faulty.Rule{Do: faulty.Expire()})
	require.NoError(t, list(t, b), "the newest state needs no history")
	_, err := b.Watch(t.Context(), backend.WatchOptions{Prefix: "z", Notify: func() {}})
	require.NoError(t, err, "neither does a watch from now on")
	require.Zero(t, fault.Hits())
	expired := func(err error, at store.Revision) {
		t.Helper()
		var e *store.ExpiredError
		require.ErrorAs(t, err, &e)
		require.Equal(t, at, e.Requested)
		require.Equal(t, at+1, e.Oldest)
	}
	_, err = b.List(t.Context(), backend.ListOptions{Revision: 2})
	expired(err, 2)
	_, err = b.Watch(t.Context(), backend.WatchOptions{From: 1, Notify: func() {}})
	expired(err, 1)
	_, err = w.Next(1)
	expired(err, 1)
	require.EqualValues(t, 3, fault.Hits())
	fault.Remove()
	_, err = w.Next(1)
	expired(err, 1)
}

// The pages of a list after the first need the history of its revision, too.
func TestExpire_FailsContinuedLists(t *testing.T) {
	b := newBackend(t, faulty.Options{})
	create(t, b, "a")
	create(t, b, "b")
	first, err := b.List(t.Context(), backend.ListOptions{Limit: 1})
	require.NoError(t, err)
	fault := b.Add(faulty.Rule{Do: faulty.Expire()})
	_, err = b.List(t.Context(), backend.ListOptions{Limit: 1, Continue: first.Continue})
	var expired *backend.ExpiredContinueError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, first.Revision, expired.Expired.Requested)
	require.EqualValues(t, 1, fault.Hits())
	newest, err := b.List(t.Context(), backend.ListOptions{Limit: 1, Continue: expired.Continue})
	require.NoError(t, err, "the newest state needs no history")
	require.Equal(t, "b", newest.Items[0].Key)
	_, err = b.List(t.Context(), backend.ListOptions{Continue: "no token"})
	require.ErrorIs(t, err, store.ErrInvalidContinue)
	require.EqualValues(t, 1, fault.Hits())
}

// A watch can be closed whatever rules there are.
func TestRules_LetWatchesClose(t *testing.T) {
	b := newBackend(t, faulty.Options{Clock: clock.NewVirtual(began)})
	for name, action := range map[string]faulty.Action{"hang": faulty.Hang(), "delay": faulty.Delay(time.Second)} {
		w := watch(t, b, 0)
		fault := b.Add(faulty.Rule{Do: action})
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			w.Close()
		}()
		select {
		case <-closed:
		case <-time.After(time.Minute):
			require.Fail(t, "not closed", name)
		}
		require.Zero(t, fault.Hits(), name)
		fault.Remove()
	}
}

// What the backend beneath refuses is refused as there.
func TestRemove_OfNothingIsRefused(t *testing.T) {
	_, err := newBackend(t, faulty.Options{}).Remove(t.Context(), nil)
	require.ErrorIs(t, err, usercode.ErrConfig)
}
