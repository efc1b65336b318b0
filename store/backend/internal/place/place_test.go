package place_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/internal/place"
	"github.com/watchmill/watchmill/store/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// history returns a window with n events, of two kinds of keys in turn, from revision 1.
func history(n int) window.View {
	w := window.New(window.Limits{MaxEvents: 1000, ChunkSize: 8}, func(*store.Object) int { return 1 })
	w.Reset(0)
	for i := range n {
		o := &store.Object{Key: fmt.Sprintf("%s/%d", []string{"even", "odd"}[i%2], i), Revision: store.Revision(i + 1)}
		w.Append(store.Event{Type: store.Added, Revision: o.Revision, Object: o}, time.Time{})
	}
	return w.View()
}

// readAll returns the revisions of all events from the beginning, in batches of up to limit.
func readAll(t *testing.T, p *place.Place, view window.View, limit int) (revisions []store.Revision) {
	for p.At < view.Next() {
		events := p.Read(view, limit)
		require.LessOrEqual(t, len(events), limit)
		for _, ev := range events {
			require.LessOrEqual(t, ev.Revision, p.Through)
			revisions = append(revisions, ev.Revision)
		}
	}
	return revisions
}

func TestPlace_ReadsEachEventOnce(t *testing.T) {
	view := history(50)
	start, err := view.Seek(0)
	require.NoError(t, err)
	for _, limit := range []int{1, 3, 8, 100} {
		all := place.Place{At: start}
		odd := place.Place{At: start, Prefix: "odd"}
		read := readAll(t, &all, view, limit)
		require.Len(t, read, 50)
		var second []store.Revision
		for i, revision := range read {
			require.Equal(t, store.Revision(i+1), revision)
			if i%2 == 1 {
				second = append(second, revision)
			}
		}
		require.Equal(t, second, readAll(t, &odd, view, limit))
		require.Equal(t, store.Revision(50), all.Through)
		require.Equal(t, store.Revision(50), odd.Through)
	}
}

// Events that the watch does not cover move it on, too.
func TestPlace_PassesWhatItDoesNotCover(t *testing.T) {
	view := history(50)
	start, err := view.Seek(0)
	require.NoError(t, err)
	none := place.Place{At: start, Prefix: "none"}
	require.Empty(t, none.Read(view, 1))
	require.Equal(t, view.Next(), none.At)
	require.Equal(t, store.Revision(50), none.Through)
}

// A watch of all keys, as a cache's, copies no events.
func TestPlace_OfAllKeysCopiesNothing(t *testing.T) {
	view := history(50)
	start, err := view.Seek(0)
	require.NoError(t, err)
	allocated := testing.AllocsPerRun(10, func() {
		for p := (place.Place{At: start}); p.At < view.Next(); {
			p.Read(view, 5)
		}
	})
	require.Zero(t, allocated)
}

// What a consumer appends to its events is not seen by others.
func TestPlace_GivesEventsThatCanBeAppendedTo(t *testing.T) {
	view := history(8)
	start, err := view.Seek(0)
	require.NoError(t, err)
	p := place.Place{At: start}
	_ = append(p.Read(view, 3), store.Event{Type: store.Deleted})
	require.Equal(t, store.Revision(4), p.Read(view, 1)[0].Revision)
}
