package reads_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/reads"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cache is an engine that knows a revision, or does not know which one there is if that is zero.
type cache struct {
	reads.Engine
	newest engine.Revision
}

func (c cache) WaitForRevision(_ context.Context, rev engine.Revision) error {
	if c.newest > 0 && rev > c.newest {
		return &engine.FutureError{Requested: rev, Current: c.newest}
	}
	return nil
}

// storage answers with a revision or an error, and counts the questions.
type storage struct {
	backend.Backend
	newest engine.Revision
	err    error
	asked  int
}

func (s *storage) Revision(context.Context) (engine.Revision, error) {
	s.asked++
	return s.newest, s.err
}

// A client is told whether it should come back.
func TestOver_TellsACacheThatIsBehindFromTheFuture(t *testing.T) {
	below := &storage{newest: 20}
	over := reads.Over(below, cache{newest: 10}, false)
	require.NoError(t, over.WaitForRevision(t.Context(), 10))
	require.Zero(t, below.asked, "the cache has it")

	err := over.WaitForRevision(t.Context(), 20)
	require.ErrorIs(t, err, engine.ErrNotReady)
	require.ErrorContains(t, err, "storage is at revision 20, and the cache is behind")
	require.ErrorIs(t, over.WaitForRevision(t.Context(), 21), engine.ErrFuture)

	below.err = errors.New("unplugged")
	err = over.WaitForRevision(t.Context(), 21)
	require.ErrorIs(t, err, engine.ErrNotReady)
	require.ErrorContains(t, err, "revision 21 may be there, but storage does not answer: unplugged")
	for _, last := range []error{backend.ErrDenied, store.ErrClosed} {
		below.err = fmt.Errorf("%w: read widgets", last)
		err = over.WaitForRevision(t.Context(), 21)
		require.ErrorIs(t, err, last)
		require.NotErrorIs(t, err, engine.ErrNotReady, "the client is not to come back")
	}
}

// Without a cache there is nothing that could be behind, and storage is asked at once.
func TestOver_AsksStorageWithoutACache(t *testing.T) {
	below := &storage{newest: 20}
	over := reads.Over(below, cache{}, true)
	require.NoError(t, over.WaitForRevision(t.Context(), 0))
	require.Zero(t, below.asked, "any state will do")
	require.NoError(t, over.WaitForRevision(t.Context(), 20))
	require.ErrorIs(t, over.WaitForRevision(t.Context(), 21), engine.ErrFuture)
	require.Equal(t, 2, below.asked)
}

func TestFields_HiddenOnesCannotBeSelectedBy(t *testing.T) {
	kind := []string{"spec.shape", "spec.color"}
	all := reads.FieldsOf(kind, nil)
	require.Equal(t, []string{"spec.color", "spec.shape", "metadata.name", "metadata.namespace"}, all.Names())
	require.NoError(t, all.Check("unknown=a", nil), "it is for the engine to refuse")

	some := reads.FieldsOf(kind, []string{"spec.color"})
	require.Equal(t, []string{"spec.shape", "metadata.name", "metadata.namespace"}, some.Names())
	require.NoError(t, some.Check("spec.shape=round,metadata.name!=a", fields.OneTermEqualSelector("metadata.namespace", "default")))
	require.NoError(t, some.Check("spec.color", nil), "it does not parse")
	for _, err := range []error{
		some.Check("spec.shape=round,spec.color!=red", nil), some.Check("", fields.OneTermEqualSelector("spec.color", "red")), some.Check("unknown=a", nil),
	} {
		require.ErrorIs(t, err, engine.ErrInvalidSelector)
		require.ErrorIs(t, err, engine.ErrUnknownField)
	}
}
