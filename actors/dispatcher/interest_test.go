package dispatcher

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

func byLabel(name, value string) *store.Filter {
	return filter(store.FilterOptions{Labels: name + "=" + value})
}

// len returns the number of groups.
func (i *interest[G]) len() int { return len(i.groups) - len(i.free) }

func ask[G any](i *interest[G], ev store.Event) (asked []G) {
	candidates(i, ev, func(g G) { asked = append(asked, g) })
	return asked
}

func TestInterest_RemovingTwiceRemovesOnce(t *testing.T) {
	i, h := newInterest[string](), newHistory(t)
	first := i.add(byLabel("app", "web"), "first")
	i.remove(first)
	i.add(byLabel("app", "web"), "second")
	i.remove(first)
	require.Equal(t, 1, i.len())
	require.Equal(t, []string{"second"}, ask(i, h.write("put", "a", "app=web")))
}

func TestInterest_KeepsTheOrderOfAddingAcrossBucketsAndRemovals(t *testing.T) {
	i, h := newInterest[int](), newHistory(t)
	filters := []*store.Filter{
		filter(store.FilterOptions{Prefix: "ns"}), byLabel("app", "web"), filter(store.FilterOptions{Key: "ns/a"}),
		filter(store.FilterOptions{Fields: "x!=1"}), nil,
	}
	var handles []handle
	var want []int
	for n := range 50 {
		handles = append(handles, i.add(filters[n%len(filters)], n))
		want = append(want, n)
	}
	ev := h.write("put", "ns/a", "app=web")
	require.Equal(t, want, ask(i, ev))

	want = slices.DeleteFunc(want, func(n int) bool { return n%3 == 0 })
	for n := range handles {
		if n%3 == 0 {
			i.remove(handles[n])
		}
	}
	require.Equal(t, want, ask(i, ev))
}

func TestInterest_ThatNothingCanMeetIsNeverAsked(t *testing.T) {
	i, h := newInterest[string](), newHistory(t)
	handle := i.add(filter(store.FilterOptions{LabelSelector: labels.Nothing()}), "nothing")
	require.Equal(t, 1, i.len())
	require.Empty(t, ask(i, h.write("put", "a")))
	i.remove(handle)
	require.Zero(t, i.len())
}

// Keys come from the user's function; what they look like must not make the
// index ask twice.
func TestInterest_OddKeysAreAskedOnce(t *testing.T) {
	prefixes := []string{"a", "a/", "a/b", "a/b/", "b"}
	i := newInterest[string]()
	for _, prefix := range prefixes {
		i.add(filter(store.FilterOptions{Prefix: prefix}), prefix)
	}
	for _, key := range []string{"", "/", "a", "a/", "a//", "a//b", "a/b//", "a/b//c", "//", "//a/b", "a//b/c"} {
		var want []string
		for _, prefix := range prefixes {
			if store.HasPrefix(key, prefix) {
				want = append(want, prefix)
			}
		}
		require.Equal(t, want, ask(i, store.Event{Type: store.Added, Object: &store.Object{Key: key}}), "key %q", key)
	}
}

func TestInterest_LeavesNothingBehind(t *testing.T) {
	i := newInterest[int]()
	var handles []handle
	for n := range 1000 {
		f := filter(store.FilterOptions{Prefix: fmt.Sprintf("ns%d", n)})
		switch n % 8 {
		case 4:
			f = filter(store.FilterOptions{Labels: fmt.Sprintf("app in (a%d,b%d,c)", n, n)})
		case 5:
			f = filter(store.FilterOptions{Labels: fmt.Sprintf("l%d", n%100)})
		case 6:
			f = filter(store.FilterOptions{Labels: fmt.Sprintf("app!=%d,!l", n)})
		case 7:
			f = filter(store.FilterOptions{Fields: fmt.Sprintf("x!=%d", n%100)})
		case 0:
			f = byLabel(fmt.Sprintf("l%d", n), "1")
		case 1:
			f = filter(store.FilterOptions{Key: fmt.Sprintf("k%d", n)})
		case 2:
			f = filter(store.FilterOptions{Fields: columns[n/8%len(columns)] + "=" + []string{"", "1"}[n/16%2]})
		}
		handles = append(handles, i.add(f, n))
	}
	for _, h := range handles {
		i.remove(h)
	}
	require.Zero(t, i.len())
	require.Equal(t, "none", i.describe())
	require.Empty(t, i.keys)
	require.Empty(t, i.prefixes)
	require.Empty(t, i.labels.byAttribute)
	require.Empty(t, i.fields.byAttribute)
	require.Empty(t, i.labels.all)
	require.Empty(t, i.fields.all)
	require.Empty(t, i.exclusions.byText)
	require.Empty(t, i.exclusions.active)
}

// Watches with the same selector come and go beside one that stays.
func TestInterest_DoesNotGrowWithGroupsThatComeAndGo(t *testing.T) {
	i, h := newInterest[int](), newHistory(t)
	i.add(byLabel("app", "web"), 0)
	for n := range 1000 {
		i.remove(i.add(byLabel("app", "web"), n+1))
	}
	require.Equal(t, []int{0}, ask(i, h.write("put", "a", "app=web")))
	require.LessOrEqual(t, len(i.labels.find(store.LabelAttribute("app"), "web").slots), 2)
	require.LessOrEqual(t, len(i.groups), 2)
}

// The index agrees with a scan of all groups, while groups are added and removed at random.
func TestInterest_MissesNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, h := newInterest[*member](), newHistory(t)
		var members []*member // in order of adding
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m := &member{filter: anyFilter(t)}
				m.handle = i.add(m.filter, m)
				members = append(members, m)
			},
			"remove": func(t *rapid.T) {
				if len(members) == 0 {
					t.Skip("there is no group")
				}
				n := rapid.IntRange(0, len(members)-1).Draw(t, "member")
				i.remove(members[n].handle)
				members = slices.Delete(members, n, n+1)
			},
			"write": func(t *rapid.T) { requireAsked(t, members, ask(i, h.anyWrite(t)), h.last) },
			"":      func(t *rapid.T) { require.Equal(t, len(members), i.len()) },
		})
	})
}

type member struct {
	filter *store.Filter
	handle handle
}

// requireAsked demands that asked is in the order of adding, has every group that
// sees the event, and no group with a requirement that neither state meets.
func requireAsked(t *rapid.T, members, asked []*member, ev store.Event) {
	rest := asked
	for _, m := range members {
		_, sees := watcher.Convert(schema, m.filter, ev)
		isNext := len(rest) > 0 && rest[0] == m
		if isNext {
			rest = rest[1:]
			require.True(t, mayCare(m.filter, ev.Object) || mayCare(m.filter, ev.Prev), "%s was asked about %s", m.filter, ev)
		}
		require.True(t, isNext || !sees, "%s was not asked about %s", m.filter, ev)
	}
	require.Empty(t, rest, "asked out of order, twice or after it was gone")
}

// mayCare reports whether the object has what the filter would be filed under.
func mayCare(f *store.Filter, o *store.Object) bool {
	switch {
	case o == nil || f.Nothing():
		return false
	case f.Key() != "":
		return f.Key() == o.Key
	case len(f.Exact()) == 0:
		return mayHave(f, o)
	}
	return slices.ContainsFunc(f.Exact(), func(r store.Requirement) bool {
		if r.Attribute.Kind == store.Field {
			return o.Field(r.Attribute.Column) == r.Value
		}
		value, ok := o.Labels.Lookup(r.Attribute.Name)
		return ok && value == r.Value
	})
}

// mayHave reports whether the object has what a filter that demands no value would be
// filed under.
func mayHave(f *store.Filter, o *store.Object) bool {
	present := f.Present()
	if f.Prefix() == "" && len(present) == 0 {
		return true // an exclusion, which is not asked if it is of one group
	}
	return f.Prefix() != "" && store.HasPrefix(o.Key, f.Prefix()) ||
		slices.ContainsFunc(present, func(p store.Presence) bool {
			value, ok := o.Labels.Lookup(p.Label)
			return ok && (len(p.Values) == 0 || slices.Contains(p.Values, value))
		})
}

func anyFilter(t *rapid.T) *store.Filter {
	terms := func(name string, some ...string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(some), 0, 2).Draw(t, name), ",")
	}
	opts := store.FilterOptions{
		Labels: terms("labels", "app=1", "app=2", "app=", "tier=1", "app!=1", "tier", "app in (1,2)",
			"app in (2,3)", "tier in (1,2)", "x", "!x", "app notin (1,2)", "tier!=2", "x>1"),
		Fields: terms("fields", "node=1", "node=2", "node=", "ns=1", "node!=1"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "scope") {
	case 0:
		opts.Key = rapid.SampledFrom([]string{"ns1/a", "ns1/b"}).Draw(t, "key")
	case 1:
		opts.Prefix = rapid.SampledFrom([]string{"ns1", "ns1/", "ns10", "ns1/a", "n"}).Draw(t, "prefix")
	}
	f, err := store.NewFilter(columns, opts)
	require.NoError(t, err)
	return f
}

// anyWrite makes a write that the history allows.
func (h *history) anyWrite(t *rapid.T) store.Event {
	key := rapid.SampledFrom([]string{"ns1/a", "ns1/b", "ns10/a", "ns1/a/b"}).Draw(t, "key")
	verbs := []string{"put", "put", "emit"}
	if h.objects[key] != nil {
		verbs = append(verbs, "delete")
	}
	words := []string{rapid.SampledFrom(verbs).Draw(t, "verb"), key}
	for _, name := range []string{"app", "tier", ".node", ".ns", "x", ".y"} {
		if value := rapid.SampledFrom([]string{"absent", "", "1", "2"}).Draw(t, name); value != "absent" {
			words = append(words, name+"="+value)
		}
	}
	h.last = h.write(words...)
	return h.last
}

func TestInterest_AskingDoesNotAllocate(t *testing.T) {
	i, ev := crowd(5000, func(n int) *store.Filter { return byLabel("owner", fmt.Sprint(n)) })
	asked := 0
	count := func(int) { asked++ }
	candidates(i, ev, count)
	require.Equal(t, 2, asked, "the owner before and the owner after")
	require.Zero(t, testing.AllocsPerRun(100, func() { candidates(i, ev, count) }))
}
