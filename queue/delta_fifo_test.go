package queue_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// mark is a transform that shows how often it was applied.
func mark(o thing) (thing, error) {
	o.Value += "'"
	return o, nil
}

func popTexts(t *testing.T, q fifo, pop func() (string, error)) (texts []string) {
	t.Helper()
	for q.Len() > 0 {
		text, err := pop()
		require.NoError(t, err)
		texts = append(texts, text)
	}
	return texts
}

func popDeltaTexts(t *testing.T, q *queue.DeltaFIFO[thing]) []string {
	t.Helper()
	pop := popDeltas(q)
	return popTexts(t, q, func() (string, error) { return pop(t.Context()) })
}

func TestDeltaFIFO_TransformsOnce(t *testing.T) {
	q := newDelta(t, queue.DeltaFIFOConfig[thing]{Transform: mark, Known: &known{[]thing{{"known", "9'"}}}})
	require.NoError(t, q.Add(thing{"a", "1"}))
	require.NoError(t, q.Update(thing{"a", "2"}))
	require.NoError(t, q.Delete(thing{"a", "3"}))
	require.NoError(t, q.Resync())
	require.NoError(t, q.Add(thing{"b", "1"}))
	require.NoError(t, q.Replace([]thing{{"c", "1"}}, 1))
	require.Equal(t, []string{
		"a: Added 1', Updated 2', Deleted 3'\n",
		"known: Sync 9', Deleted (stale) 9'\n",
		"b: Added 1', Deleted (stale) 1'\n",
		"c: Replaced 1'\n",
	}, popDeltaTexts(t, q))
}

// Of two deletions of one object the less certain is left out, whichever comes first.
func TestDeltaFIFO_KeepsTheMoreCertainOfTwoDeletions(t *testing.T) {
	watched := queue.Deleted[thing]{Key: "a", Last: thing{"a", "2"}, Known: true}
	stale := queue.Deleted[thing]{Key: "a", Last: thing{"a", "1"}, Known: true, Stale: true}
	unknown := queue.Deleted[thing]{Key: "a"}
	for _, test := range []struct{ less, more queue.Deleted[thing] }{{unknown, stale}, {unknown, watched}, {stale, watched}} {
		for _, both := range [][]queue.Deleted[thing]{{test.less, test.more}, {test.more, test.less}} {
			q := newDelta(t, queue.DeltaFIFOConfig[thing]{Known: &known{[]thing{{"a", "0"}}}})
			for _, gone := range both {
				require.NoError(t, q.DeleteTombstone(gone))
			}
			require.Equal(t, []string{"a: Deleted " + test.more.String() + "\n"}, popDeltaTexts(t, q))
		}
	}
}

func TestDeltas_KnowTheirKey(t *testing.T) {
	q := newDelta(t, queue.DeltaFIFOConfig[thing]{Known: &known{}})
	key, err := q.KeyOf(thing{"a", "1"})
	require.NoError(t, err)
	require.Equal(t, "a", key)
	_, err = q.KeyOf(thing{})
	require.ErrorIs(t, err, store.ErrKeyFunc)

	require.NoError(t, q.Add(thing{"a", "1"}))
	require.NoError(t, q.DeleteTombstone(queue.Deleted[thing]{Key: "a"}))
	require.NoError(t, q.Pop(t.Context(), func(ds queue.Deltas[thing], _ bool) error {
		require.Equal(t, "a", ds.Key())
		require.Equal(t, "a", ds.Oldest().Key)
		require.Equal(t, "a", ds.Newest().Key)
		require.Equal(t, "a", ds.Newest().Deleted.Key)
		require.Equal(t, "a", ds[1:].Key(), "of a tombstone alone")
		require.Zero(t, ds.Newest().Object, "a last state is not a present one")
		return nil
	}))
	require.Empty(t, queue.Deltas[thing](nil).Key())
	require.Nil(t, queue.Deltas[thing](nil).Oldest())
	require.Nil(t, queue.Deltas[thing](nil).Newest())
}

func TestDeltaType_Names(t *testing.T) {
	require.Equal(t, "[Added Bookmark DeltaType(0) DeltaType(99)]",
		fmt.Sprint([]queue.DeltaType{queue.DeltaAdded, queue.DeltaBookmark, 0, 99}))
}

// Upstream locks the queue while it processes, so an entry that is being processed
// counts as known. Here the queue is not locked, and the entry must count too.
func TestDeltaFIFO_CountsWhatIsBeingProcessed(t *testing.T) {
	k := &known{[]thing{{"a", "1"}}}
	for name, c := range map[string]struct {
		queued  func(q *queue.DeltaFIFO[thing]) error
		during  func(q *queue.DeltaFIFO[thing]) error
		expects []string
	}{
		"a replace without it deletes it": {
			func(q *queue.DeltaFIFO[thing]) error { return q.Add(thing{"new", "2"}) },
			func(q *queue.DeltaFIFO[thing]) error { return q.Replace([]thing{{"a", "1"}}, 1) },
			[]string{"a: Replaced 1\n", "new: Deleted (stale) 2\n"},
		},
		"its newest state is what is deleted": {
			func(q *queue.DeltaFIFO[thing]) error { return q.Update(thing{"a", "2"}) },
			func(q *queue.DeltaFIFO[thing]) error { return q.Replace(nil, 1) },
			[]string{"a: Deleted (stale) 2\n"},
		},
		"its deletion is not repeated": {
			func(q *queue.DeltaFIFO[thing]) error { return q.Delete(thing{"a", "2"}) },
			func(q *queue.DeltaFIFO[thing]) error { return q.Replace(nil, 1) },
			nil,
		},
		"the last of what happened to it counts": {
			func(q *queue.DeltaFIFO[thing]) error {
				return errors.Join(q.Update(thing{"a", "2"}), q.Delete(thing{"a", "3"}))
			},
			func(q *queue.DeltaFIFO[thing]) error { return q.Replace(nil, 1) },
			nil,
		},
		"a resync does not move it back": {
			func(q *queue.DeltaFIFO[thing]) error { return q.Update(thing{"a", "2"}) },
			func(q *queue.DeltaFIFO[thing]) error { return q.Resync() },
			nil,
		},
		"its deletion is queued": {
			func(q *queue.DeltaFIFO[thing]) error { return q.Add(thing{"new", "2"}) },
			func(q *queue.DeltaFIFO[thing]) error { return q.Delete(thing{"new", "3"}) },
			[]string{"new: Deleted 3\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newDelta(t, queue.DeltaFIFOConfig[thing]{Known: k})
			require.NoError(t, c.queued(q))
			require.NoError(t, q.Pop(t.Context(), func(ds queue.Deltas[thing], _ bool) error {
				clear(ds) // they are the consumer's
				return c.during(q)
			}))
			require.Equal(t, c.expects, popDeltaTexts(t, q))
		})
	}
}

// Upstream, one object that cannot be transformed makes every list fail, or leaves a
// list partly queued.
func TestDeltaFIFO_ReportsBadObjectsAndQueuesTheRest(t *testing.T) {
	poison := errors.New("poison")
	transform := func(o thing) (thing, error) {
		if o.Value == "bad" {
			return o, poison
		}
		return o, nil
	}
	list := []thing{{"good", "1"}, {"sick", "bad"}, {"", "nameless"}}
	k := &known{[]thing{{"sick", "0"}, {"gone", "0"}}}

	strict := newDelta(t, queue.DeltaFIFOConfig[thing]{Transform: transform, Known: k})
	err := strict.Replace(list, 1)
	require.ErrorIs(t, err, poison)
	require.ErrorIs(t, err, store.ErrTransform)
	require.Zero(t, strict.Len(), "nothing was queued")
	require.ErrorIs(t, strict.Add(thing{"sick", "bad"}), poison)

	var reported []error
	lenient := newDelta(t, queue.DeltaFIFOConfig[thing]{
		Transform: transform, Known: k, OnBadItem: func(_ thing, err error) { reported = append(reported, err) },
	})
	require.NoError(t, lenient.Replace(list, 1))
	require.Len(t, reported, 2)
	require.ErrorIs(t, reported[0], poison)
	require.ErrorIs(t, reported[1], errNameless)
	require.Equal(t, []string{"good: Replaced 1 (initial)\n", "gone: Deleted (stale) 0 (initial)\n"}, popDeltaTexts(t, lenient),
		"the bad object exists, so it is not deleted")
}

// Any string is a key, the empty one too. An object whose Key fails is under no key.
func TestOnBadItem_TheEmptyKeyIsAKey(t *testing.T) {
	key := func(o thing) (string, error) {
		if o.Value == "keyless" {
			return "", errNameless
		}
		return o.Name, nil
	}
	transform := func(o thing) (thing, error) { return o, errors.New("poison") }
	onBad := func(thing, error) {}
	k := &known{[]thing{{"", "0"}, {"a", "0"}}}
	for _, test := range []struct {
		list    []thing
		deleted string
	}{
		{[]thing{{"", "1"}}, "a"},
		{[]thing{{"", "1"}, {"a", "keyless"}}, "a"},
		{[]thing{{"a", "1"}, {"", "keyless"}}, ""},
	} {
		byObject, err := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[thing]{Key: key, Known: k, Transform: transform, OnBadItem: onBad})
		require.NoError(t, err)
		require.NoError(t, byObject.Replace(test.list, 1))
		require.Equal(t, 1, byObject.Len())
		require.NoError(t, byObject.Pop(t.Context(), func(ds queue.Deltas[thing], _ bool) error {
			require.Equal(t, &queue.Deleted[thing]{Key: test.deleted, Last: thing{test.deleted, "0"}, Known: true, Stale: true}, ds.Newest().Deleted)
			return nil
		}))
		inOrder, err := queue.NewRealFIFO(queue.RealFIFOConfig[thing]{Key: key, Known: k, Transform: transform, OnBadItem: onBad})
		require.NoError(t, err)
		require.NoError(t, inOrder.Replace(test.list, 1))
		require.Equal(t, 1, inOrder.Len())
		require.NoError(t, inOrder.Pop(t.Context(), func(d queue.Delta[thing], _ bool) error {
			require.Equal(t, test.deleted, d.Deleted.Key)
			return nil
		}))
	}
}

type panickyKnown struct{ known }

func (*panickyKnown) ListKeys() []string { panic("list") }

func TestDeltaFIFO_KnownPanicIsReturnedAndChangesNothing(t *testing.T) {
	q := newDelta(t, queue.DeltaFIFOConfig[thing]{Known: &panickyKnown{}})
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.Replace([]thing{{"a", "1"}}, 1), &panicked)
	require.ErrorAs(t, q.Resync(), &panicked)
	require.Zero(t, q.Len())
	require.False(t, q.HasSynced())
	require.NoError(t, q.Add(thing{"a", "1"}), "the queue goes on")
}
