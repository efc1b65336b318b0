package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

func popRealTexts(t *testing.T, q *queue.RealFIFO[thing]) []string {
	t.Helper()
	pop := popDelta(q)
	return popTexts(t, q, func() (string, error) { return pop(t.Context()) })
}

func TestRealFIFO_TransformsOnce(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{Transform: mark, Known: &known{[]thing{{"known", "9'"}}}})
	require.NoError(t, q.Add(thing{"a", "1"}))
	require.NoError(t, q.Update(thing{"a", "2"}))
	require.NoError(t, q.Delete(thing{"a", "3"}))
	require.NoError(t, q.Resync())
	require.NoError(t, q.Add(thing{"b", "1"}))
	require.NoError(t, q.Replace([]thing{{"c", "1"}}, 1))
	require.Equal(t, []string{
		"a: Added 1'\n", "a: Updated 2'\n", "a: Deleted 3'\n", "known: Sync 9'\n", "b: Added 1'\n",
		"known: Deleted (stale) 9'\n", "b: Deleted (stale) 1'\n", "c: Replaced 1'\n",
	}, popRealTexts(t, q))

	atomic := newReal(t, queue.RealFIFOConfig[thing]{Transform: mark})
	require.NoError(t, atomic.Replace([]thing{{"c", "1"}, {"d", "2"}}, 3))
	require.Equal(t, []string{"ReplacedAll@3 [1' 2'] (initial)\n"}, popRealTexts(t, atomic))
}

func TestRealFIFO_DeltasKnowTheirKey(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{})
	key, err := q.KeyOf(thing{"a", "1"})
	require.NoError(t, err)
	require.Equal(t, "a", key)
	_, err = q.KeyOf(thing{})
	require.ErrorIs(t, err, store.ErrKeyFunc)
	require.NoError(t, q.DeleteTombstone(queue.Deleted[thing]{Key: "a"}))
	require.NoError(t, q.Pop(t.Context(), func(d queue.Delta[thing], _ bool) error {
		require.Equal(t, "a", d.Key)
		require.Equal(t, "a", d.Deleted.Key)
		return nil
	}))
}

// Upstream queues objects without a key, and ends a batch after one. Here Add
// refuses them, so no batch has one.
func TestRealFIFO_BadObjectsNeverReachABatch(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{})
	require.NoError(t, q.Add(thing{"a", "1"}))
	require.ErrorIs(t, q.Add(thing{"", "broken"}), store.ErrKeyFunc)
	require.NoError(t, q.Add(thing{"b", "1"}))
	text, err := popBatch(q)(t.Context())
	require.NoError(t, err)
	require.Equal(t, "[a: Added 1; b: Added 1]\n", text)
}

func TestRealFIFO_CountsWhatIsBeingProcessed(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{Known: &known{[]thing{{"a", "1"}, {"b", "1"}}}})
	require.NoError(t, q.Add(thing{"new", "2"}))
	require.NoError(t, q.Update(thing{"a", "2"}))
	require.NoError(t, q.Delete(thing{"b", "2"}))
	require.NoError(t, q.PopBatch(t.Context(), func(batch []queue.Delta[thing], _ bool) error {
		require.Len(t, batch, 3)
		clear(batch) // it is the consumer's
		require.NoError(t, q.Resync())
		return q.Replace(nil, 1)
	}))
	require.Equal(t, []string{"new: Deleted (stale) 2\n", "a: Deleted (stale) 2\n"}, popRealTexts(t, q))
}

func TestRealFIFO_KeepsBadObjects(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{
		Transform: func(o thing) (thing, error) {
			if o.Value == "bad" {
				panic(errNameless)
			}
			return o, nil
		},
		OnBadItem: func(_ thing, err error) { require.ErrorIs(t, err, errNameless) },
	})
	require.NoError(t, q.Replace([]thing{{"good", "1"}, {"sick", "bad"}}, 4))
	require.NoError(t, q.Pop(t.Context(), func(d queue.Delta[thing], _ bool) error {
		require.Equal(t, []thing{{"good", "1"}}, d.Objects)
		require.Equal(t, []string{"sick"}, d.Kept, "the consumer must not delete it")
		require.EqualValues(t, 4, d.Revision)
		return nil
	}))
	require.True(t, q.HasSynced())
}

func TestOnBadItem_PanicIsReturned(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{OnBadItem: func(thing, error) { panic("no") }})
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.Replace([]thing{{}}, 4), &panicked)
	require.Zero(t, q.Len())
}

func TestRoom_PassesBackpressureToTheProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newReal(t, queue.RealFIFOConfig[thing]{Limit: 2})
		require.NoError(t, q.Room(t.Context()))
		require.NoError(t, q.Add(thing{"a", "1"}))
		require.NoError(t, q.Add(thing{"a", "2"}))
		require.NoError(t, q.Add(thing{"a", "3"}), "the limit refuses nothing")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		wait := func(ctx context.Context) { ended <- q.Room(ctx) }
		go wait(ctx)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		go wait(t.Context())
		pop := func() { require.NoError(t, q.Pop(t.Context(), func(queue.Delta[thing], bool) error { return nil })) }
		pop()
		synctest.Wait()
		require.Empty(t, ended)
		pop()
		require.NoError(t, <-ended)

		require.NoError(t, q.Add(thing{"a", "4"}))
		go wait(t.Context())
		synctest.Wait()
		q.Close()
		require.ErrorIs(t, <-ended, queue.ErrClosed)
	})
}

func TestRoom_WithoutLimit(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{})
	for i := range 5000 {
		require.NoError(t, q.Add(thing{"a", fmt.Sprint(i)}))
	}
	require.NoError(t, q.Room(t.Context()))
	for i := range 5000 { // through growth, reuse and release of the slots
		require.NoError(t, q.Pop(t.Context(), func(d queue.Delta[thing], _ bool) error {
			require.Equal(t, fmt.Sprint(i), d.Object.Value)
			return nil
		}))
		if i%3 == 0 {
			require.NoError(t, q.Add(thing{"late", "1"}))
		}
	}
	require.Equal(t, 1667, q.Len())
}

func TestPopBatch_ReturnsTheProcessError(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{Known: &known{}})
	require.NoError(t, q.Replace([]thing{{"a", "1"}, {"b", "1"}}, 1))
	failed := errors.New("failed")
	require.ErrorIs(t, q.PopBatch(t.Context(), func(batch []queue.Delta[thing], initial bool) error {
		require.True(t, initial)
		require.Len(t, batch, 2)
		return failed
	}), failed)
	require.True(t, q.HasSynced())
}

func TestRealFIFO_KnownPanicIsReturned(t *testing.T) {
	q := newReal(t, queue.RealFIFOConfig[thing]{Known: &panickyKnown{}})
	var panicked *usercode.PanicError
	require.ErrorAs(t, q.Replace([]thing{{"a", "1"}}, 1), &panicked)
	require.ErrorAs(t, q.Resync(), &panicked)
	require.Zero(t, q.Len())
}
