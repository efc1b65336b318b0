package informer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// What is pending for a handler that blocks for good is bounded by the objects
// that there are, however many came and went.
func TestPain_MergedChangesAreBoundedByLiveObjects(t *testing.T) {
	transform := &transformer{cfg: &settings{schema: engine.Config[string]{}.Schema()}}
	object := func(key string, rev store.Revision) *store.Object {
		return store.Header(&Object[string]{Key: key, Revision: rev})
	}
	merged := newMergedChanges(transform)
	lives := object("lives", 1)
	merged.fold([]notification{added(lives, Change)})
	for i := range store.Revision(10_000) {
		o := object(fmt.Sprint(i), i+2)
		merged.fold([]notification{added(o, Change)})
		merged.fold([]notification{{Type: store.Deleted, Cause: Change, Old: o, Object: transform.cfg.schema.Gone(o, o.Revision, o.Written)}})
		require.LessOrEqual(t, len(merged.order), minCompaction+4)
	}
	require.Equal(t, 1, merged.len())
	require.Equal(t, []notification{added(lives, Change)}, merged.notifications())
}
