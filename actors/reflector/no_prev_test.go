package reflector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
)

// sharing is a source that shares its state, with lists or with batches, and notes what its
// watches may omit.
type sharing struct {
	*source
	lists, batches bool
	noPrev         []bool
}

func (s *sharing) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	page, err := s.source.List(ctx, opts)
	if err == nil && s.lists {
		page.Items, page.State = nil, tree.New().View()
	}
	return page, err
}

func (s *sharing) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	s.noPrev = append(s.noPrev, opts.NoPrev)
	w, err := s.source.Watch(ctx, opts)
	if err != nil || !s.batches {
		return w, err
	}
	return sharingWatch{w}, nil
}

type sharingWatch struct{ backend.Watcher }

func (w sharingWatch) Next(limit int) (backend.Batch, error) {
	b, err := w.Watcher.Next(limit)
	if len(b.Events) > 0 {
		b.State = tree.New().View()
	}
	return b, err
}

// A sink that was given the source's state keeps none, so it does not know the state before an
// event: a watch that is resumed must have it.
func TestNoPrev_EndsWithAStateOfTheSource(t *testing.T) {
	for name, c := range map[string]struct {
		lists, batches bool
		want           []bool
	}{
		"never":   {want: []bool{true, true}},
		"listed":  {lists: true, want: []bool{false, false}},
		"watched": {batches: true, want: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			shared := &sharing{source: r.source, lists: c.lists, batches: c.batches}
			cfg := r.config()
			cfg.Source, cfg.State, cfg.NoPrev = shared, true, true
			r.start(cfg)
			r.source.put("a", "1")
			r.settle()
			r.source.disturb(errReset)
			r.pass(time.Second)
			require.Equal(t, c.want, shared.noPrev)

			shared.lists, shared.batches = false, false
			r.ref.Relist(reflector.Requested)
			r.pass(time.Minute)
			require.Equal(t, append(c.want, true), shared.noPrev, "the sink has listed objects again")
		})
	}
}
