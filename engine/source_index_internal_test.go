package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// However many events there are for those who share a prefix, they are gone
// through once.
func TestManyEventsVisitTheMembersOfAGroupOnce(t *testing.T) {
	f := &followers{}
	a, b, other := f.add("pods", nil), f.add("pods", nil), f.add("nodes", nil)
	for _, n := range []*notification{a, b, other} {
		f.look(n, 0)
	}
	for at := range store.Seq(1000) {
		f.meet(fmt.Sprint("pods/", at), 5+at)
	}
	require.Len(t, f.touched, 1)
	require.Empty(t, f.concerned, "no event goes through the members")
	f.callTouched()
	require.Equal(t, []*notification{a, b}, f.concerned)
	require.Equal(t, [2]store.Seq{5, 1005}, [2]store.Seq{a.first, a.last})
	f.callTouched()
	require.Len(t, f.concerned, 2, "they have been called")
}

func TestAGroupLosesWhoeverLeaves(t *testing.T) {
	f := &followers{}
	all := make([]*notification, 4)
	for i := range all {
		all[i] = f.add("pods", nil)
	}
	for len(all) > 0 {
		f.remove(all[0])
		all = all[1:]
		for i, n := range all {
			require.Same(t, n, f.all[n.slot], "of %d: %d", len(all), i)
			require.Same(t, n, f.under["pods"].members[n.place], "of %d: %d", len(all), i)
		}
	}
	require.Empty(t, f.all)
	require.Empty(t, f.under, "a prefix that nobody follows is forgotten")
}

// BenchmarkBurstForAGroup publishes 1000 events at once under a prefix that
// 10,000 follow, none of whom has looked since: it is the time that the cache's
// turn takes for them.
func BenchmarkBurstForAGroup(b *testing.B) {
	f := &followers{clock: actors.NewVirtualClock(time.Time{})}
	for range 10_000 {
		f.add("pods", nil)
	}
	window, tree := store.NewWindow(store.WindowLimits{}, nil), store.NewTree()
	window.Reset(1)
	rev := store.Revision(1)
	for b.Loop() {
		for range 1000 {
			rev++
			window.Append(store.Event{
				Type: store.Modified, Revision: rev, Object: &store.Object{Key: "pods/a", Revision: rev},
			}, time.Time{}, tree)
		}
		window.Trim(time.Time{})
		show(f, &store.Snapshot{Revision: rev, Generation: 1, Window: window.View()})
	}
}
