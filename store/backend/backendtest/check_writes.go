package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

var writeChecks = []check{
	{"Create_StoresWhatItReturns", func(x *fixture) {
		before := x.revision()
		o := x.create("a/1", "x")
		require.Greater(x, o.Revision, before, "a write gets a later revision")
		require.Equal(x, Value{Key: "a/1", Text: "x"}, store.As[Item](o).Value)
		require.Equal(x, o.Revision, o.Created, "it was created by this write")
		require.Equal(x, "x", o.Labels.Get("text"), "labels are those of the draft")
		require.Equal(x, []string{"a/1"}, o.Fields, "fields are those of the draft")
		require.False(x, o.Written.IsZero(), "storage says when it was written")
		require.True(x, o.Expires.IsZero(), "without a TTL it never expires")
		x.holds(o)
	}},
	{"Create_WithTTLIsDeletedInTime", func(x *fixture) {
		if !x.hasTTLs() {
			return
		}
		f := x.follow("", x.revision())
		soon := x.shortTTL()
		later := 2 * (soon + x.TTLSlack)
		kept := x.create("kept", "x")
		first := x.putFor(soon, "first", "y", nil)
		second := x.putFor(later, "second", "z", nil)
		lives := first.Expires.Sub(first.Written).Round(time.Second)
		require.True(x, lives >= soon && lives <= soon+x.TTLSlack, "it is to expire after %v, not %v", soon, lives)
		f.sees(added(kept), added(first), added(second))
		x.Pass(soon + x.TTLSlack + soon/2)
		x.deletedNext(f, first)
		x.holds(kept, second)
		x.Pass(later - soon)
		x.deletedNext(f, second)
		x.holds(kept)
	}},
	{"Create_OfAnExistingKeyFails", func(x *fixture) {
		o := x.create("a/1", "x")
		_, err := x.tryPut(draft("a/1", "y"), nil, backend.PutOptions{})
		x.fails(err, store.ErrExists, "second create")
		_, err = x.tryPut(draft("a/1", "y"), at("a/1", 0), backend.PutOptions{})
		x.fails(err, store.ErrExists, "second create, with a prev without a revision")
		other, err := x.tryPut(draft("a/2", "z"), at("a/2", 0), backend.PutOptions{})
		require.NoError(x, err, "a prev without a revision is none")
		x.holds(o, other)
	}},
	{"Remove_ReturnsTheLastStateAtANewRevision", func(x *fixture) {
		o := x.create("a/1", "x")
		gone := x.remove(o)
		require.Greater(x, gone.Revision, o.Revision, "a deletion is a change")
		require.Equal(x, "x", textOf(gone))
		require.Equal(x, o.Created, gone.Created)
		x.holds()
		_, err := x.Backend.Remove(x.ctx, gone)
		x.fails(err, store.ErrNotFound, "second removal")
		again := x.create("a/1", "x")
		require.Equal(x, again.Revision, again.Created, "created again, it is another object")
	}},
	{"Contract_WrittenIsWhenTheStateWasCommitted", func(x *fixture) {
		a := x.create("a", "1")
		f := x.follow("", a.Revision-1)
		x.Pass(time.Second)
		a2 := x.update(a, "2")
		require.True(x, a2.Written.After(a.Written), "an update was written at %v, the state before at %v", a2.Written, a.Written)
		x.Pass(time.Second)
		gone := x.remove(a2)
		require.True(x, gone.Written.After(a2.Written), "a deletion was written at %v, the last state at %v", gone.Written, a2.Written)
		last := time.Time{}
		for _, ev := range f.until(gone.Revision) {
			require.True(x, ev.Object.Written.After(last), "%v was written at %v, what came before at %v", ev, ev.Object.Written, last)
			last = ev.Object.Written
		}
	}},
	{"Remove_DemandsTheRevision", func(x *fixture) {
		old := x.create("a/1", "x")
		o := x.update(old, "y")
		_, err := x.Backend.Remove(x.ctx, old)
		x.fails(err, store.ErrConflict, "removal at an older revision")
		for _, key := range []string{"a/1", "none"} {
			_, err = x.Backend.Remove(x.ctx, at(key, 0))
			require.Error(x, err, "removal needs a revision")
		}
		x.holds(o)
	}},
	{"Put_DemandsTheRevision", func(x *fixture) {
		old := x.create("a/1", "x")
		o := x.update(old, "y")
		require.Equal(x, old.Created, o.Created, "an update does not create")
		_, err := x.tryPut(draft("a/1", ""), old, backend.PutOptions{})
		x.fails(err, store.ErrConflict, "update of an older revision")
		_, err = x.tryPut(draft("a/2", ""), at("a/2", old.Revision), backend.PutOptions{})
		x.fails(err, store.ErrNotFound, "update of nothing")
		x.holds(o)
	}},
	{"Contract_RevisionIsAllThatIsNeededOfPrev", func(x *fixture) {
		f := x.follow("", x.revision())
		a := x.create("a", "1")
		a2 := x.put("a", "2", at("a", a.Revision))
		require.Equal(x, a.Created, a2.Created, "an update over a prev of which only the revision is known creates nothing")
		x.holds(a2)
		gone, err := x.Backend.Remove(x.ctx, at("a", a2.Revision))
		require.NoError(x, err, "Remove of a prev of which only the revision is known")
		last := schema.Gone(a2, gone.Revision, gone.Written)
		require.Equal(x, describe(last), describe(gone), "a removal returns the last state, whatever prev has")
		f.sees(added(a), modified(a, a2), deleted(a2, gone))
	}},
	{"Contract_ConflictsShowTheObject", func(x *fixture) {
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		_, overOld := x.tryPut(draft("a", "3"), a, backend.PutOptions{})
		_, overNone := x.tryPut(draft("a", "3"), nil, backend.PutOptions{})
		_, removal := x.Backend.Remove(x.ctx, a)
		for _, err := range []error{overOld, overNone, removal} {
			x.conflictShows(err, a2)
		}
		x.remove(a2)
		_, overGone := x.tryPut(draft("a", "3"), a2, backend.PutOptions{})
		x.conflictShows(overGone, nil)
		x.fails(overGone, store.ErrNotFound, "update of what was removed")
	}},
	{"Put_SetsTheTimeToLiveAnew", func(x *fixture) {
		if !x.hasTTLs() {
			return
		}
		longer := x.putFor(x.shortTTL(), "longer", "x", nil)
		permanent := x.putFor(x.shortTTL(), "permanent", "x", nil)
		shorter := x.create("shorter", "x")
		longer = x.putFor(time.Hour, "longer", "y", longer)
		permanent = x.update(permanent, "y")
		shorter = x.putFor(time.Second, "shorter", "y", shorter)
		f := x.follow("", shorter.Revision)
		x.Pass(x.shortTTL() + x.TTLSlack + time.Second)
		x.deletedNext(f, shorter)
		x.holds(longer, permanent)
	}},
	{"Put_KeepsTheExpiryIfAsked", func(x *fixture) {
		if !x.hasTTLs() {
			return
		}
		kept, bare := x.putFor(x.shortTTL(), "kept", "x", nil), x.putFor(time.Hour, "bare", "x", nil)
		permanent := x.create("permanent", "x")
		keep := func(key string, prev *object) *object {
			o, err := x.tryPut(draft(key, "y"), prev, backend.PutOptions{KeepExpiry: true})
			require.NoError(x, err, "Put %q that keeps the expiry", key)
			return o
		}
		expires, later := kept.Expires, bare.Expires
		kept, permanent = keep("kept", kept), keep("permanent", permanent)
		require.True(x, kept.Expires.Equal(expires), "%q expires at %v as before, not at %v", "kept", expires, kept.Expires)
		bare = keep("bare", at("bare", bare.Revision))
		require.True(x, bare.Expires.Equal(later), "%q, given by its revision, expires at %v as before, not at %v", "bare", later, bare.Expires)
		require.True(x, keep("new", nil).Expires.IsZero(), "where nothing is replaced there is no expiry to keep")
		f := x.follow("", x.revision())
		x.Pass(x.shortTTL() + x.TTLSlack + time.Second)
		x.deletedNext(f, kept)
		for _, o := range []*object{permanent, bare} {
			now, err := x.Backend.Get(x.ctx, o.Key)
			require.NoError(x, err, "Get %q", o.Key)
			require.True(x, now.Expires.Equal(o.Expires), "%q expires at %v, not at %v", o.Key, o.Expires, now.Expires)
		}
		_, err := x.tryPut(draft("both", ""), nil, backend.PutOptions{TTL: time.Second, KeepExpiry: true})
		x.fails(err, usercode.ErrConfig, "Put with a TTL that keeps the expiry")
	}},
	{"Put_ConcurrentOnesAllApply", func(x *fixture) {
		const writers, each = 4, 25
		x.create("counter", "")
		var wg sync.WaitGroup
		errs := make(chan error, writers)
		for range writers {
			wg.Go(func() { errs <- appendMarks(x.ctx, x.Backend, "counter", each) })
		}
		wg.Wait()
		for range writers {
			require.NoError(x, <-errs)
		}
		o, err := x.Backend.Get(x.ctx, "counter")
		require.NoError(x, err)
		require.Len(x, textOf(o), writers*each, "updates were lost or made twice")
	}},
	{"Contract_PanicInTheSchemaWritesNothing", func(x *fixture) {
		o := x.create("a/1", "x")
		before := x.revision()
		_, err := x.tryPut(Draft(Value{Key: "a/2", Poison: true}), nil, backend.PutOptions{})
		x.fails(err, usercode.ErrPanic, "creation of a poisoned item")
		_, err = x.tryPut(Draft(Value{Key: "a/1", Poison: true}), o, backend.PutOptions{})
		x.fails(err, usercode.ErrPanic, "update to a poisoned item")
		x.holds(o)
		require.Equal(x, before, x.revision())
	}},
	{"Contract_NegativeTTLIsRefused", func(x *fixture) {
		_, err := x.tryPut(draft("a/1", ""), nil, backend.PutOptions{TTL: -1})
		x.fails(err, usercode.ErrConfig, "Put with a negative TTL")
		x.holds()
	}},
	{"Contract_DraftIsTheCallersAfterAnError", func(x *fixture) {
		old := x.create("a/1", "w")
		o := x.update(old, "x")
		for what, write := range x.failing(o, old) {
			next := Draft(Value{Key: "a/1", Text: "y", Stamped: true, Revision: 7, Poison: what == poisoned})
			was := describe(next)
			require.Error(x, write(next), what)
			require.Equal(x, was, describe(next), "a draft that was not written is as it was, after %s", what)
		}
		next := draft("a/1", "y")
		_, err := x.tryPut(next, nil, backend.PutOptions{})
		x.fails(err, store.ErrExists, "creation of what exists")
		written, err := x.tryPut(next, o, backend.PutOptions{})
		require.NoError(x, err, "the same draft over the right object")
		require.Equal(x, "y", textOf(written))
		x.holds(written)
	}},
	{"Contract_ValuesCarryTheirRevision", func(x *fixture) {
		from := x.revision()
		write := func(text string, prev *object) *object {
			o, err := x.tryPut(Draft(Value{Key: "a", Text: text, Stamped: true, Revision: 1}), prev, backend.PutOptions{})
			require.NoError(x, err)
			return o
		}
		first := write("1", nil)
		second := write("2", first)
		x.holds(second)
		gone := x.remove(second)
		third := write("3", nil)
		if x.Reopen != nil {
			x.restart(0)
		}
		x.holds(third)
		x.lists(backend.ListOptions{Revision: first.Revision}, first)
		carrying := []*object{first, second, gone, third}
		for _, ev := range x.follow("", from).until(third.Revision) {
			carrying = append(carrying, ev.Object)
			if ev.Prev != nil {
				carrying = append(carrying, ev.Prev)
			}
		}
		if emitter, ok := x.Backend.(backend.Emitter); ok {
			o, err := emitter.Emit(x.ctx, Draft(Value{Key: "a", Stamped: true}))
			require.NoError(x, err)
			carrying = append(carrying, o)
		}
		for _, o := range carrying {
			require.Equal(x, o.Revision, store.As[Item](o).Value.Revision, "%s", describe(o))
		}
	}},
	{"Contract_ObjectsOnceReturnedNeverChange", func(x *fixture) {
		o := x.create("a/1", "x")
		held := x.list(backend.ListOptions{}).Items
		before := append(describeAll(held), describe(o))
		x.remove(x.update(o, "y"))
		require.Equal(x, before, append(describeAll(held), describe(o)))
	}},
}

// poisoned is the write of [fixture.failing] whose draft makes the schema panic.
const poisoned = "an update to a poisoned item"

// failing returns writes of a draft under the key of o that fail. old is what o has replaced.
func (x *fixture) failing(o, old *object) map[string]func(draft *object) error {
	done, cancel := context.WithCancel(x.ctx)
	cancel()
	put := func(ctx context.Context, prev *object, opts backend.PutOptions) func(*object) error {
		return func(draft *object) error { _, err := x.Backend.Put(ctx, draft, prev, opts); return err }
	}
	writes := map[string]func(*object) error{
		"a creation of what exists":     put(x.ctx, nil, backend.PutOptions{TTL: time.Hour}),
		"an update of an older version": put(x.ctx, old, backend.PutOptions{TTL: time.Hour}),
		"an update with a bad TTL":      put(x.ctx, o, backend.PutOptions{TTL: -1}),
		"an update without a context":   put(done, o, backend.PutOptions{TTL: time.Hour}),
		poisoned:                        put(x.ctx, o, backend.PutOptions{}),
	}
	if emitter, ok := x.Backend.(backend.Emitter); ok {
		writes["an emission without a context"] = func(draft *object) error { _, err := emitter.Emit(done, draft); return err }
	}
	return writes
}

// conflictShows checks that a conflict has the current object, if it has any.
func (x *fixture) conflictShows(err error, current *object) {
	x.Helper()
	var conflict *backend.ConflictError
	if errors.As(err, &conflict) {
		require.Equal(x, describe(current), describe(conflict.Current), "%v", err)
		require.Equal(x, "a", conflict.Key)
	}
}

// shortTTL returns a time to live that a check waits for. It leaves time for a few more
// calls before it is over: storage with real time, which has a TTLSlack, may be slow, and so may the machine.
func (x *fixture) shortTTL() time.Duration { return time.Second + 2*x.TTLSlack }

// hasTTLs reports whether objects can have a TTL. Storage without them refuses one, and has then
// written nothing.
func (x *fixture) hasTTLs() bool {
	x.Helper()
	o, err := x.tryPut(draft("expires", ""), nil, backend.PutOptions{TTL: time.Hour})
	if errors.Is(err, store.ErrUnsupported) {
		x.holds()
		return x.inapplicable("the storage has no TTLs: Put fails with store.ErrUnsupported")
	}
	require.NoError(x, err, "Put with a TTL")
	x.remove(o)
	return true
}

// deletedNext checks that f's next event is the deletion of o, which has expired.
func (x *fixture) deletedNext(f *follower, o *object) {
	x.Helper()
	events := f.until(f.through + 1)
	require.Len(x, events, 1)
	ev := events[0]
	require.Equal(x, store.Deleted, ev.Type, "%v", ev)
	require.Equal(x, describe(o), describe(ev.Prev), "%v", ev)
}

// maxTries is far more than a few writers can need.
const maxTries = 100_000

// appendMarks appends a character to the value under key, n times, while other writers
// do the same.
func appendMarks(ctx context.Context, b backend.Backend, key string, n int) error {
	for tries := 0; n > 0; tries++ {
		if tries > maxTries {
			return fmt.Errorf("%d updates of %q conflicted, though each conflict means that another was made", tries, key)
		}
		o, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		_, err = b.Put(ctx, draft(key, textOf(o)+"|"), o, backend.PutOptions{})
		switch {
		case err == nil:
			n--
		case !isConflict(err):
			return err
		}
	}
	return nil
}
