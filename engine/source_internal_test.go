package engine

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// However many events there are under a prefix, its watches are visited once.
func TestFollowers_ManyEventsVisitTheMembersOfAGroupOnce(t *testing.T) {
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

func TestFollowers_GroupLosesThoseThatLeave(t *testing.T) {
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

// BenchmarkFollowers_BurstForAGroup publishes 1000 events at once under a prefix
// with 10,000 watches, of which none has looked since. It measures the time that
// the cache's turn takes for them.
func BenchmarkFollowers_BurstForAGroup(b *testing.B) {
	f := &followers{clock: actors.NewVirtualClock(time.Time{})}
	for range 10_000 {
		f.add("pods", nil)
	}
	window := store.NewWindow(store.WindowLimits{}, nil)
	window.Reset(1)
	rev := store.Revision(1)
	for b.Loop() {
		for range 1000 {
			rev++
			window.Append(store.Event{
				Type: store.Modified, Revision: rev, Object: &store.Object{Key: "pods/a", Revision: rev},
			}, time.Time{})
		}
		window.Trim(time.Time{})
		show(f, &store.Snapshot{Revision: rev, Generation: 1, Window: window.View()})
	}
}

// The end comes while a watch is about to look, after all were notified of it:
// that one is not notified any more.
func TestFollowers_LookAfterTheEndFindsTheEngineClosed(t *testing.T) {
	e, err := New(Config[string]{Key: func(s string) string { return s }})
	require.NoError(t, err)
	w, err := e.Source().Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	core, looked := e.core.(*core), make(chan error)
	core.sources.mu.Lock()
	go func() {
		_, err := w.Next(1)
		looked <- err
	}()
	for !onAStack("(*followers).look(") {
		runtime.Gosched()
	}
	core.closed.Store(true)
	core.sources.mu.Unlock()
	require.ErrorIs(t, <-looked, ErrEngineClosed)
	w.Close()
	require.NoError(t, e.Close())
}

// onAStack reports whether some goroutine is in the call of a function.
func onAStack(call string) bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(call))
}
