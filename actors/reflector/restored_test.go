package reflector_test

import (
	"context"
	"testing"

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
