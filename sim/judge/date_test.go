package judge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// When an object was written and when it expires is judged if it is known: of an event, of the state before
// it, and in reads. A deletion has the time of its own, and the expiry of the object.
func TestDate_TimesOfWhatWasWrittenAreJudged(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	h := judge.NewHistory(func(a, b string) bool { return a == b })
	h.MarkReceived(h.Put("a", "x"))
	h.Date(at(10), at(20))
	h.MarkReceived(h.Delete("a"))
	h.Date(at(15), time.Time{})
	object := func(rev engine.Revision, written, expires time.Time) *engine.Object[string] {
		return &engine.Object[string]{Key: "a", Value: "x", Revision: rev, Created: 2, Written: written, Expires: expires}
	}
	put := object(2, at(10), at(20))
	judged := func(added, prev, gone *engine.Object[string]) judge.Invariant {
		return judge.Broken(h.Judge(&judge.Record[string]{
			Name: "w", Selects: func(string) bool { return true }, Options: engine.WatchOptions{From: judge.First},
			Events: []engine.Event[string]{
				{Type: store.Added, Object: added, Revision: 2},
				{Type: store.Deleted, Object: gone, Prev: prev, Revision: 3},
			},
		}))
	}
	gone := object(3, at(15), at(20))
	require.Empty(t, judged(put, put, gone))
	require.Equal(t, judge.Genuine, judged(object(2, at(11), at(20)), put, gone))
	require.Equal(t, judge.Genuine, judged(object(2, at(10), time.Time{}), put, gone))
	require.Equal(t, judge.PrevValue, judged(put, object(2, at(10), at(21)), gone))
	require.Equal(t, judge.Genuine, judged(put, put, object(3, at(10), at(20))))
	require.Equal(t, judge.Genuine, judged(put, put, object(3, at(15), time.Time{})))

	read := judge.Read[string]{Name: "read", Mode: judge.ReadExact, Oldest: 2, Newest: 2}
	require.NoError(t, h.JudgeGet(read, "a", put))
	require.Equal(t, judge.ReadExact, judge.Broken(h.JudgeGet(read, "a", object(2, at(10), at(21)))))
	all := func(string) bool { return true }
	require.NoError(t, h.JudgeList(read, all, 2, []*engine.Object[string]{put}))
	require.Equal(t, judge.ReadState, judge.Broken(h.JudgeList(read, all, 2, []*engine.Object[string]{object(2, at(11), at(20))})))

	restored := h.Fork(2) // by storage that writes all anew
	require.NoError(t, restored.JudgeGet(read, "a", object(2, at(30), time.Time{})))
}
