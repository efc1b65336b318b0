package reflector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store/backend"
)

// restored is a source that is restored from another copy right after its first list,
// whose answer does not tell which storage it is of.
type restored struct {
	*source
	id    string
	tells bool // whether later lists tell the storage
	lists int
}

func (s *restored) StoreID(context.Context) (string, error) { return s.id, nil }

func (s *restored) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	list, err := s.source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	if s.lists++; s.lists == 1 {
		s.id = "after"
		s.remove("a")
		s.put("b", "of the copy")
	} else if s.tells {
		list.StoreID = s.id
	}
	return list, nil
}

// A list that does not tell its storage may be of the one before a restore: what the
// Reflector delivers is of the storage that it was told after.
func TestList_ThatDoesNotTellItsStorageIsNotContinuedByAnother(t *testing.T) {
	for name, tells := range map[string]bool{"later lists tell": true, "no list tells": false} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.source.traits.Identifies = true
			r.source.put("a", "before")
			cfg := r.config()
			cfg.Source = &restored{source: r.source, id: "before", tells: tells}
			r.start(cfg)
			r.synced()
			first := r.mirror.updates[0]
			require.Equal(t, reflector.Replace, first.Kind)
			require.Equal(t, "after", first.StoreID)
			require.Len(t, first.Objects, 1)
			require.Equal(t, "b", first.Objects[0].Key)
			require.Equal(t, 2, r.count("list"))
		})
	}
}

// lagging is a source that answers its next list from a replica that is late.
type lagging struct {
	*source
	late *backend.List
}

func (s *lagging) StoreID(context.Context) (string, error) { return "same", nil }

func (s *lagging) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if late := s.late; late != nil {
		s.late = nil
		return late, nil
	}
	return s.source.List(ctx, opts)
}

// A Reflector that was restarted still knows which storage its last revision is of, and
// so refuses an older list.
func TestRestart_DoesNotGoBackWithALateReplica(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	cfg := r.config()
	lag := &lagging{source: r.source}
	cfg.Source = lag
	r.start(cfg)
	late, err := r.source.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	r.source.put("b", "1")
	r.settle()
	lag.late, r.mirror.panics = late, 1
	r.source.put("c", "1")
	r.pass(time.Minute)
	r.synced()
	require.Equal(t, uint64(1), r.ref.Stats().Restarts)
	told := r.mirror.told()
	require.Equal(t, []string{"Replace Started@1", "Changes@2"}, told[:2])
	require.Equal(t, "Replace Repeated@3", told[len(told)-1])
}
