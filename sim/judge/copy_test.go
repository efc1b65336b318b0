package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// written returns the object of key a with the value n, as of a revision.
func written(n int, created, revision store.Revision) *engine.Object[int] {
	o := &engine.Object[int]{Key: "a", Value: n}
	o.Created, o.Revision = created, revision
	return o
}

// keyed returns the object under another key.
func keyed(key string, o *engine.Object[int]) *engine.Object[int] {
	o.Key = key
	return o
}

func equal(a, b int) bool { return a == b }

func TestCopy_HandlerIsToldFromWhatItHas(t *testing.T) {
	first, second, other := written(1, 2, 2), written(2, 2, 3), written(3, 5, 5)
	for name, test := range map[string]struct {
		given func(*judge.Copy[int]) error
		want  judge.Invariant
	}{
		"all is told": {given: func(c *judge.Copy[int]) error { return c.Apply(store.Modified, first, second) }},
		"added twice": {given: func(c *judge.Copy[int]) error { return c.Apply(store.Added, nil, second) }, want: judge.IsCreate},
		"another one": {given: func(c *judge.Copy[int]) error { return c.Apply(store.Modified, first, other) }, want: judge.IsCreate},
		"from what it was not told": {
			given: func(c *judge.Copy[int]) error { return c.Apply(store.Deleted, second, other) }, want: judge.PrevValue,
		},
		"from another value": {
			given: func(c *judge.Copy[int]) error { return c.Apply(store.Modified, written(7, 2, 2), second) }, want: judge.PrevValue,
		},
		"from another revision": {
			given: func(c *judge.Copy[int]) error { return c.Apply(store.Modified, written(1, 2, 1), second) }, want: judge.PrevValue,
		},
		"from another one": {
			given: func(c *judge.Copy[int]) error { return c.Apply(store.Modified, written(1, 1, 2), second) }, want: judge.PrevValue,
		},
		"added to what was there": {
			given: func(c *judge.Copy[int]) error { return c.Apply(store.Added, first, keyed("b", written(1, 3, 3))) }, want: judge.PrevValue,
		},
		"another one is gone": {
			given: func(c *judge.Copy[int]) error { return c.Apply(store.Deleted, first, written(1, 3, 4)) }, want: judge.IsCreate,
		},
		"from nothing": {given: func(c *judge.Copy[int]) error { return c.Apply(store.Deleted, nil, other) }, want: judge.PrevValue},
		"gone twice": {given: func(c *judge.Copy[int]) error {
			if err := c.Apply(store.Deleted, first, written(1, 2, 3)); err != nil {
				return err
			}
			return c.Apply(store.Deleted, first, written(1, 2, 3))
		}, want: judge.IsCreate},
	} {
		t.Run(name, func(t *testing.T) {
			c := judge.Copy[int]{Name: "handler", Equal: equal}
			require.NoError(t, c.Apply(store.Added, nil, first))
			require.Equal(t, test.want, judge.Broken(test.given(&c)))
		})
	}
}

// A notification tells of what was written, and to a handler that misses nothing of each state.
func TestJudgeNotification_OfWhatWasWritten(t *testing.T) {
	h := judge.NewHistory(equal)
	h.Put("a", 1)
	h.Put("a", 2)
	h.Put("a", 3)
	h.Delete("a")
	h.Put("a", 4)
	first, second, third := written(1, 2, 2), written(2, 2, 3), written(3, 2, 4)
	for name, test := range map[string]struct {
		kind        store.EventType
		old, object *engine.Object[int]
		missesSome  bool
		want        judge.Invariant
	}{
		"each state":              {kind: store.Modified, old: first, object: second},
		"the first":               {kind: store.Added, object: first},
		"the end":                 {kind: store.Deleted, old: third, object: written(3, 2, 5)},
		"another after the end":   {kind: store.Added, object: written(4, 6, 6)},
		"not all":                 {kind: store.Modified, old: first, object: third, missesSome: true},
		"not all, though it must": {kind: store.Modified, old: first, object: third, want: judge.Reliable},
		"not the first":           {kind: store.Added, object: third, want: judge.Reliable},
		"not the last":            {kind: store.Deleted, old: second, object: written(2, 2, 5), want: judge.Reliable},
		"another value":           {kind: store.Modified, old: first, object: written(7, 2, 3), want: judge.Genuine},
		"the end of a later one":  {kind: store.Deleted, old: third, object: written(3, 3, 5), want: judge.Genuine},
		"the end of another":      {kind: store.Deleted, old: third, object: written(7, 2, 5), want: judge.Genuine},
	} {
		t.Run(name, func(t *testing.T) {
			err := h.JudgeNotification("handler", test.kind, test.old, test.object, !test.missesSome)
			require.Equal(t, test.want, judge.Broken(err), err)
		})
	}
}

func TestCopy_IsTheStateWhenAllIsTold(t *testing.T) {
	h := judge.NewHistory(equal)
	h.Put("a", 1)
	h.Put("a", 2)
	c := judge.Copy[int]{Name: "handler", Equal: equal}
	require.NoError(t, c.Apply(store.Added, nil, written(1, 2, 2)))
	require.NoError(t, h.JudgeCopy(&c, 2))
	err := h.JudgeCopy(&c, 3)
	require.Equal(t, judge.Conserved, judge.Broken(err))
	require.ErrorContains(t, err, "handler: after all notifications")
	require.NoError(t, c.Apply(store.Modified, written(1, 2, 2), written(2, 2, 3)))
	require.NoError(t, h.JudgeCopy(&c, 3))
}

// An informer may show part of a change that the engine did not receive as an event, but
// never an object that was not written.
func TestJudgeSnapshot_OfARevisionThatWasNotReceived(t *testing.T) {
	h := judge.NewHistory(equal)
	h.Put("a", 1)
	h.Put("b", 1)
	read := judge.Read[int]{Name: "informer", Mode: judge.ReadCached, Newest: 3}
	part := []*engine.Object[int]{written(1, 2, 2)}
	require.NoError(t, h.JudgeSnapshot(read, 3, part))
	require.Equal(t, judge.Genuine, judge.Broken(h.JudgeSnapshot(read, 3, []*engine.Object[int]{written(7, 2, 2)})))
	require.Equal(t, judge.Genuine, judge.Broken(h.JudgeSnapshot(read, 2, []*engine.Object[int]{keyed("b", written(1, 3, 3))})), "it was written later")
	require.Equal(t, judge.ReadCached, judge.Broken(h.JudgeSnapshot(read, 4, part)))
	read.Oldest, read.Newest = 3, 9
	require.NoError(t, h.JudgeSnapshot(read, 3, part))
	require.Equal(t, judge.ReadCached, judge.Broken(h.JudgeSnapshot(read, 2, part)), "it is too old")
	require.Equal(t, judge.ReadCached, judge.Broken(h.JudgeSnapshot(read, 4, part)), "there is no such revision")
	h.MarkReceived(3)
	require.Equal(t, judge.ReadState, judge.Broken(h.JudgeSnapshot(read, 3, part)))
}

// A write that returned another object than it wrote has not said what it did.
func TestJudgeWrite_KnowsAnObjectByItsCreation(t *testing.T) {
	h := judge.NewHistory(equal)
	require.Equal(t, judge.Acknowledged, judge.Broken(h.JudgeWrite(store.Deleted, written(1, 2, 2))), "nothing was written")
	h.Put("a", 1)
	require.NoError(t, h.JudgeWrite(store.Added, written(1, 2, 2)))
	require.Equal(t, judge.Acknowledged, judge.Broken(h.JudgeWrite(store.Added, written(1, 1, 2))))
	h.Emit("a", 5)
	require.NoError(t, h.JudgeWrite(store.Emitted, written(5, 0, 3)), "it returns the revision alone")
	require.Equal(t, judge.Acknowledged, judge.Broken(h.JudgeWrite(store.Emitted, written(5, 9, 3))))
}
