package backendtest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func isConflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// badKeys are keys that cannot name an object.
var badKeys = []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\x00b", "\xff"}

var readChecks = []check{
	{"Get_ReturnsTheNewest", func(r *rig) {
		_, err := r.Backend.Get(r.ctx, "a/1")
		r.fails(err, store.ErrNotFound, "Get before creation")
		o := r.create("a/1", "x")
		r.holds(o)
		o = r.update(o, "y")
		r.holds(o)
		_, err = r.Backend.Get(r.ctx, "a")
		r.fails(err, store.ErrNotFound, "a prefix is no object")
		r.remove(o)
		_, err = r.Backend.Get(r.ctx, "a/1")
		r.fails(err, store.ErrNotFound, "Get after removal")
	}},
	{"List_AtEachRevision", func(r *rig) {
		type moment struct {
			at    store.Revision
			state []*object
		}
		a := r.create("a", "1")
		b := r.create("b", "1")
		history := []moment{{a.Revision, []*object{a}}, {b.Revision, []*object{a, b}}}
		c := r.create("a/c", "1") // between the two
		history = append(history, moment{c.Revision, []*object{a, c, b}})
		a2 := r.update(a, "2")
		history = append(history, moment{a2.Revision, []*object{a2, c, b}})
		history = append(history, moment{r.remove(c).Revision, []*object{a2, b}})
		history = append(history, moment{r.remove(a2).Revision, []*object{b}})
		for _, m := range history {
			l := r.lists(backend.ListOptions{Revision: m.at}, m.state...)
			require.Equal(r, m.at, l.Revision, "a list at a revision is of that revision")
			first := r.lists(backend.ListOptions{Revision: m.at, Limit: 1}, m.state[0])
			require.Equal(r, len(m.state)-1, first.Remaining, "at revision %d", m.at)
		}
	}},
	{"List_RefusesWhatCannotBe", func(r *rig) {
		r.create("a", "1")
		r.create("b", "1")
		page := r.list(backend.ListOptions{Limit: 1})
		now := r.revision()
		for _, c := range []struct {
			opts backend.ListOptions
			want error
		}{
			{backend.ListOptions{Revision: now + 1}, store.ErrFuture},
			{backend.ListOptions{Revision: now + 1, Limit: 1}, store.ErrFuture},
			{backend.ListOptions{Revision: now, Continue: page.Continue}, usercode.ErrConfig},
			{backend.ListOptions{Limit: -1}, usercode.ErrConfig},
			{backend.ListOptions{Continue: "nonsense"}, store.ErrInvalidContinue},
			{backend.ListOptions{Continue: backend.Token{Revision: now + 1, Start: "a"}.Encode()}, store.ErrInvalidContinue},
			{backend.ListOptions{Prefix: "b", Continue: page.Continue}, store.ErrInvalidContinue},
		} {
			_, err := r.Backend.List(r.ctx, c.opts)
			r.fails(err, c.want, "List %+v", c.opts)
		}
	}},
	{"List_PrefixesAreOfWholePathSegments", func(r *rig) {
		var all []*object
		for _, key := range []string{"foo", "foo-1", "foo/a", "foo/a/b", "foo/b", "foobar", "foobar/a", "goo"} {
			all = append(all, r.create(key, "x"))
		}
		for _, c := range []struct {
			prefix string
			want   []int
		}{
			{"", []int{0, 1, 2, 3, 4, 5, 6, 7}},
			{"foo", []int{0, 2, 3, 4}},
			{"foo/", []int{2, 3, 4}},
			{"foo/a", []int{2, 3}},
			{"foo/a/", []int{3}},
			{"foobar", []int{5, 6}},
			{"fo", nil},
			{"zoo", nil},
		} {
			var want []*object
			for _, i := range c.want {
				want = append(want, all[i])
			}
			r.lists(backend.ListOptions{Prefix: c.prefix}, want...)
			r.lists(backend.ListOptions{Prefix: c.prefix, Revision: r.revision()}, want...)
			r.lists(backend.ListOptions{Prefix: c.prefix, Limit: len(all)}, want...)
		}
	}},
	{"Keys_MalformedOnesAreRefusedByEveryVerb", func(r *rig) {
		o := r.create("a", "x")
		for _, key := range badKeys {
			_, err := r.Backend.Get(r.ctx, key)
			r.fails(err, store.ErrInvalidKey, "Get %q", key)
			_, err = r.tryPut(draft(key, ""), nil, backend.PutOptions{})
			r.fails(err, store.ErrInvalidKey, "Put %q", key)
			_, err = r.Backend.Remove(r.ctx, at(key, o.Revision))
			r.fails(err, store.ErrInvalidKey, "Remove %q", key)
			if key == "" || key == "a/" {
				continue // good prefixes
			}
			_, err = r.Backend.List(r.ctx, backend.ListOptions{Prefix: key})
			r.fails(err, store.ErrInvalidKey, "List %q", key)
			_, err = r.Backend.Watch(r.ctx, backend.WatchOptions{Prefix: key, Notify: func() {}})
			r.fails(err, store.ErrInvalidKey, "Watch %q", key)
		}
		r.holds(o)
	}},
	{"Revision_IsThatOfTheNewestChange", func(r *rig) {
		o := r.create("a", "x")
		require.Equal(r, o.Revision, r.revision())
		o = r.update(o, "y")
		require.Equal(r, o.Revision, r.revision())
		require.Equal(r, r.remove(o).Revision, r.revision())
	}},
	{"Reads_SeeWhatWasAcknowledged", func(r *rig) {
		var state []*object
		for i := range 20 {
			o := r.create(fmt.Sprintf("k%02d", i), "x")
			state = append(state, o)
			l := r.lists(backend.ListOptions{}, state...)
			require.GreaterOrEqual(r, l.Revision, o.Revision, "the list is older than what it shows")
			require.GreaterOrEqual(r, r.revision(), l.Revision)
			got, err := r.Backend.Get(r.ctx, o.Key)
			require.NoError(r, err)
			require.Equal(r, describe(o), describe(got))
		}
	}},
	{"Contract_StateOfAListIsTheList", func(r *rig) {
		a, b := r.create("a", "1"), r.create("b", "1")
		a2 := r.update(a, "2")
		for rev, want := range map[store.Revision][]*object{0: {a2, b}, a2.Revision: {a2, b}, b.Revision: {a, b}, a.Revision: {a}} {
			l := r.list(backend.ListOptions{Revision: rev, State: true, Limit: 1})
			if l.State == nil {
				continue // it has none: then it is a list like any other
			}
			require.Empty(r, l.Items, "with State there are no items")
			require.Empty(r, l.Continue, "State is all of the list")
			require.Equal(r, describeAll(want), describeAll(l.State.AppendTo(nil, "")), "at revision %d", l.Revision)
		}
		r.lists(backend.ListOptions{Prefix: "b", State: true}, b)
	}},
	{"Contract_EmptyStorageHasARevision", func(r *rig) {
		l := r.lists(backend.ListOptions{})
		require.NotZero(r, l.Revision, "a watch from revision zero starts now: it would miss what comes between the list and the watch")
		require.Equal(r, l.Revision, r.revision())
		require.Equal(r, l.Revision, r.lists(backend.ListOptions{Revision: l.Revision}).Revision)
		f := r.follow("", l.Revision)
		f.sees(added(r.create("a", "x")))
	}},
}
