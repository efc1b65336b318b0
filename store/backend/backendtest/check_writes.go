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
	{"Create_StoresWhatItReturns", func(r *rig) {
		before := r.revision()
		o := r.create("a/1", "x")
		require.Greater(r, o.Revision, before, "a write gets a later revision")
		require.Equal(r, Value{Key: "a/1", Text: "x"}, store.As[Item](o).Value)
		require.Equal(r, o.Revision, o.Created, "it was created by this write")
		require.Equal(r, "x", o.Labels["text"], "labels are those of the draft")
		require.Equal(r, []string{"a/1"}, o.Fields, "fields are those of the draft")
		require.False(r, o.Written.IsZero(), "storage says when it was written")
		require.True(r, o.Expires.IsZero(), "without a TTL it never expires")
		r.holds(o)
	}},
	{"Create_WithTTLIsDeletedInTime", func(r *rig) {
		f := r.follow("", r.revision())
		soon := time.Second
		later := 2 * (soon + r.TTLSlack)
		kept := r.create("kept", "x")
		first := r.putFor(soon, "first", "y", nil)
		second := r.putFor(later, "second", "z", nil)
		lives := first.Expires.Sub(first.Written).Round(time.Second)
		require.True(r, lives >= soon && lives <= soon+r.TTLSlack, "it is to expire after %v, not %v", soon, lives)
		f.sees(added(kept), added(first), added(second))
		r.Pass(soon + r.TTLSlack + soon/2)
		r.deletedNext(f, first)
		r.holds(kept, second)
		r.Pass(later - soon)
		r.deletedNext(f, second)
		r.holds(kept)
	}},
	{"Create_OfAnExistingKeyFails", func(r *rig) {
		o := r.create("a/1", "x")
		_, err := r.tryPut(draft("a/1", "y"), nil, backend.PutOptions{})
		r.fails(err, store.ErrExists, "second create")
		r.holds(o)
	}},
	{"Remove_ReturnsTheLastStateAtANewRevision", func(r *rig) {
		o := r.create("a/1", "x")
		gone := r.remove(o)
		require.Greater(r, gone.Revision, o.Revision, "a deletion is a change")
		require.Equal(r, "x", textOf(gone))
		require.Equal(r, o.Created, gone.Created)
		r.holds()
		_, err := r.Backend.Remove(r.ctx, gone)
		r.fails(err, store.ErrNotFound, "second removal")
		again := r.create("a/1", "x")
		require.Equal(r, again.Revision, again.Created, "created again, it is another object")
	}},
	{"Remove_DemandsTheRevision", func(r *rig) {
		old := r.create("a/1", "x")
		o := r.update(old, "y")
		_, err := r.Backend.Remove(r.ctx, old)
		r.fails(err, store.ErrConflict, "removal at an older revision")
		_, err = r.Backend.Remove(r.ctx, at("a/1", 0))
		require.Error(r, err, "removal needs a revision")
		r.holds(o)
	}},
	{"Put_DemandsTheRevision", func(r *rig) {
		old := r.create("a/1", "x")
		o := r.update(old, "y")
		require.Equal(r, old.Created, o.Created, "an update does not create")
		_, err := r.tryPut(draft("a/1", ""), old, backend.PutOptions{})
		r.fails(err, store.ErrConflict, "update of an older revision")
		_, err = r.tryPut(draft("a/2", ""), at("a/2", old.Revision), backend.PutOptions{})
		r.fails(err, store.ErrNotFound, "update of nothing")
		r.holds(o)
	}},
	{"Contract_ConflictsShowTheObject", func(r *rig) {
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		_, overOld := r.tryPut(draft("a", "3"), a, backend.PutOptions{})
		_, overNone := r.tryPut(draft("a", "3"), nil, backend.PutOptions{})
		_, removal := r.Backend.Remove(r.ctx, a)
		for _, err := range []error{overOld, overNone, removal} {
			r.conflictShows(err, a2)
		}
		r.remove(a2)
		_, overGone := r.tryPut(draft("a", "3"), a2, backend.PutOptions{})
		r.conflictShows(overGone, nil)
		r.fails(overGone, store.ErrNotFound, "update of what was removed")
	}},
	{"Put_SetsTheTimeToLiveAnew", func(r *rig) {
		longer := r.putFor(time.Second, "longer", "x", nil)
		permanent := r.putFor(time.Second, "permanent", "x", nil)
		shorter := r.create("shorter", "x")
		longer = r.putFor(time.Minute, "longer", "y", longer)
		permanent = r.update(permanent, "y")
		shorter = r.putFor(time.Second, "shorter", "y", shorter)
		f := r.follow("", shorter.Revision)
		r.Pass(2*time.Second + r.TTLSlack)
		r.deletedNext(f, shorter)
		r.holds(longer, permanent)
	}},
	{"Put_KeepsTheExpiryIfAsked", func(r *rig) {
		kept, bare := r.putFor(time.Second, "kept", "x", nil), r.putFor(time.Minute, "bare", "x", nil)
		permanent := r.create("permanent", "x")
		keep := func(key string, prev *object) *object {
			o, err := r.tryPut(draft(key, "y"), prev, backend.PutOptions{KeepExpiry: true})
			require.NoError(r, err, "Put %q that keeps the expiry", key)
			return o
		}
		expires, later := kept.Expires, bare.Expires
		kept, permanent = keep("kept", kept), keep("permanent", permanent)
		require.True(r, kept.Expires.Equal(expires), "%q expires at %v as before, not at %v", "kept", expires, kept.Expires)
		bare = keep("bare", at("bare", bare.Revision))
		require.True(r, bare.Expires.Equal(later), "%q, given by its revision, expires at %v as before, not at %v", "bare", later, bare.Expires)
		require.True(r, keep("new", nil).Expires.IsZero(), "where nothing is replaced there is no expiry to keep")
		f := r.follow("", r.revision())
		r.Pass(2*time.Second + r.TTLSlack)
		r.deletedNext(f, kept)
		for _, o := range []*object{permanent, bare} {
			now, err := r.Backend.Get(r.ctx, o.Key)
			require.NoError(r, err, "Get %q", o.Key)
			require.True(r, now.Expires.Equal(o.Expires), "%q expires at %v, not at %v", o.Key, o.Expires, now.Expires)
		}
		_, err := r.tryPut(draft("both", ""), nil, backend.PutOptions{TTL: time.Second, KeepExpiry: true})
		r.fails(err, usercode.ErrConfig, "Put with a TTL that keeps the expiry")
	}},
	{"Put_ConcurrentOnesAllApply", func(r *rig) {
		const writers, each = 4, 25
		r.create("counter", "")
		var wg sync.WaitGroup
		errs := make(chan error, writers)
		for range writers {
			wg.Go(func() { errs <- appendMarks(r.ctx, r.Backend, "counter", each) })
		}
		wg.Wait()
		for range writers {
			require.NoError(r, <-errs)
		}
		o, err := r.Backend.Get(r.ctx, "counter")
		require.NoError(r, err)
		require.Len(r, textOf(o), writers*each, "updates were lost or made twice")
	}},
	{"Contract_PanicInTheSchemaWritesNothing", func(r *rig) {
		o := r.create("a/1", "x")
		before := r.revision()
		_, err := r.tryPut(Draft(Value{Key: "a/2", Poison: true}), nil, backend.PutOptions{})
		r.fails(err, usercode.ErrPanic, "creation of a poisoned item")
		_, err = r.tryPut(Draft(Value{Key: "a/1", Poison: true}), o, backend.PutOptions{})
		r.fails(err, usercode.ErrPanic, "update to a poisoned item")
		r.holds(o)
		require.Equal(r, before, r.revision())
	}},
	{"Contract_NegativeTTLIsRefused", func(r *rig) {
		_, err := r.tryPut(draft("a/1", ""), nil, backend.PutOptions{TTL: -1})
		r.fails(err, usercode.ErrConfig, "Put with a negative TTL")
		r.holds()
	}},
	{"Contract_DraftIsTheCallersAfterAnError", func(r *rig) {
		o := r.create("a/1", "x")
		next := draft("a/1", "y")
		_, err := r.tryPut(next, nil, backend.PutOptions{})
		r.fails(err, store.ErrExists, "creation of what exists")
		require.Equal(r, describe(draft("a/1", "y")), describe(next), "a draft that was not written is as it was")
		written, err := r.tryPut(next, o, backend.PutOptions{})
		require.NoError(r, err, "the same draft over the right object")
		require.Equal(r, "y", textOf(written))
		r.holds(written)
	}},
	{"Contract_ValuesCarryTheirRevision", func(r *rig) {
		from := r.revision()
		write := func(text string, prev *object) *object {
			o, err := r.tryPut(Draft(Value{Key: "a", Text: text, Stamped: true, Revision: 1}), prev, backend.PutOptions{})
			require.NoError(r, err)
			return o
		}
		first := write("1", nil)
		second := write("2", first)
		r.holds(second)
		gone := r.remove(second)
		third := write("3", nil)
		if r.Reopen != nil {
			r.restart(0)
		}
		r.holds(third)
		r.lists(backend.ListOptions{Revision: first.Revision}, first)
		carrying := []*object{first, second, gone, third}
		for _, ev := range r.follow("", from).until(third.Revision) {
			carrying = append(carrying, ev.Object)
			if ev.Prev != nil {
				carrying = append(carrying, ev.Prev)
			}
		}
		if emitter, ok := r.Backend.(backend.Emitter); ok {
			o, err := emitter.Emit(r.ctx, Draft(Value{Key: "a", Stamped: true}))
			require.NoError(r, err)
			carrying = append(carrying, o)
		}
		for _, o := range carrying {
			require.Equal(r, o.Revision, store.As[Item](o).Value.Revision, "%s", describe(o))
		}
	}},
	{"Contract_ObjectsOnceReturnedNeverChange", func(r *rig) {
		o := r.create("a/1", "x")
		held := r.list(backend.ListOptions{}).Items
		before := append(describeAll(held), describe(o))
		r.remove(r.update(o, "y"))
		require.Equal(r, before, append(describeAll(held), describe(o)))
	}},
}

// conflictShows demands that a conflict shows the object as it is, if it shows any.
func (r *rig) conflictShows(err error, current *object) {
	r.Helper()
	var conflict *backend.ConflictError
	if errors.As(err, &conflict) {
		require.Equal(r, describe(current), describe(conflict.Current), "%v", err)
		require.Equal(r, "a", conflict.Key)
	}
}

// deletedNext demands that the deletion of o, which expired, is what f sees
// next.
func (r *rig) deletedNext(f *follower, o *object) {
	r.Helper()
	events := f.until(f.through + 1)
	require.Len(r, events, 1)
	ev := events[0]
	require.Equal(r, store.Deleted, ev.Type, "%v", ev)
	require.Equal(r, describe(o), describe(ev.Prev), "%v", ev)
}

// maxTries is far more than the conflicts that a few writers can cause.
const maxTries = 100_000

// appendMarks appends a character to the value under key, n times, in competition with
// other writers.
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
