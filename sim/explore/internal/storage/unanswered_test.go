package storage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// unanswered returns storage that has left the creation of x without an answer, by the seed of the step.
func unanswered(t *testing.T, seed uint64) *Storage[string] {
	cfg := engine.Config[string]{Key: func(key string) string { return key }}
	s, err := New(&cfg, execution.NewClock(&execution.Trace{}), script.Setup{}, &execution.Trace{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.Fail = func(err error) { require.NoError(t, err) }
	require.NoError(t, s.Disturb(script.Step{Do: script.LoseAnswers, N: 1, Seed: seed}))
	_, err = s.Put(t.Context(), s.newObject("x", "x"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.Len(t, s.Unanswered, 1)
	require.Equal(t, store.Added, s.Unanswered[0].Kind)
	require.Equal(t, "x", s.Unanswered[0].Key)
	return s
}

// outcome is what has become of a write without an answer.
type outcome string

const (
	atOnce outcome = "done at once"
	late   outcome = "done later"
	never  outcome = "never done"
)

// outcomeOf returns what becomes of the creation of x, which storage and the history must agree about.
func outcomeOf(t *testing.T, s *Storage[string]) outcome {
	was := never
	if s.History.Newest() > judge.First {
		was = atOnce
		require.Equal(t, s.History.Newest(), s.Unanswered[0].Revision)
	}
	for range maxLate {
		s.BeginStep()
	}
	require.Empty(t, s.late)
	o, err := s.Get(t.Context(), "x")
	if s.History.Newest() == judge.First {
		require.ErrorIs(t, err, store.ErrNotFound)
		return was
	}
	require.NoError(t, err)
	require.Equal(t, s.History.Newest(), o.Revision)
	if was == never {
		return late
	}
	return was
}

// seedOf returns a seed by which a write without an answer has that outcome.
func seedOf(t *testing.T, want outcome) uint64 {
	for seed := range uint64(100) {
		if outcomeOf(t, unanswered(t, seed)) == want {
			return seed
		}
	}
	t.Fatalf("no seed in which the write is %s", want)
	return 0
}

func TestUnanswered_AWriteIsDoneAtOnceOrLaterOrNever(t *testing.T) {
	for _, o := range []outcome{atOnce, late, never} {
		s := unanswered(t, seedOf(t, o))
		s.RemoveFaults()
		require.Equal(t, o != never, s.History.Newest() > judge.First, "%s: a late one when storage has no faults any more", o)
		_, err := s.Put(t.Context(), s.newObject("y", "y"), nil, backend.PutOptions{})
		require.NoError(t, err, "only the next is left without an answer")
	}
}

func TestUnanswered_ALateWriteIsNotDoneIfAnotherCameFirst(t *testing.T) {
	s := unanswered(t, seedOf(t, late))
	first, err := s.Put(t.Context(), s.newObject("x", "x"), nil, backend.PutOptions{})
	require.NoError(t, err)
	s.doAllLate()
	o, err := s.Get(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, first.Revision, o.Revision)
	require.Equal(t, first.Revision, s.History.Newest())
}

func TestUnanswered_ALateWriteIsNotDoneInStorageThatHasGoneBack(t *testing.T) {
	s := unanswered(t, seedOf(t, late))
	require.NoError(t, s.Rewind(judge.First, nil, ErrOutage))
	s.doAllLate()
	require.Equal(t, judge.First, s.History.Newest())
}

func TestUnanswered_AWriteThatStorageRefusesHasItsAnswer(t *testing.T) {
	s := unanswered(t, seedOf(t, atOnce))
	s.Unanswered = nil
	require.NoError(t, s.Disturb(script.Step{Do: script.LoseAnswers, N: 1, Seed: seedOf(t, atOnce)}))
	_, err := s.Put(t.Context(), s.newObject("x", "x"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrExists)
	require.Empty(t, s.Unanswered)
}
