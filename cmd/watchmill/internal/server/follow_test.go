package server

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Clients read what is served in place of a kind until that has its objects, too. A kind that the token must not
// read never has any, and one that is new keeps the others waiting.
func TestFollowing_WaitsForWhatIsServedMeanwhile(t *testing.T) {
	refuses := false
	d, err := openData(&Options{Data: "tape:reel", Storages: Storages{"tape": func(_ context.Context, _, _ string, schema store.Schema) (backend.Backend, error) {
		m, err := memory.New(schema, memory.Options{})
		b := faulty.New(m, faulty.Options{})
		if refuses {
			b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Skip: 1, Do: faulty.Fail(nil)}) // but for the scope of what there is
		}
		return b, err
	}}}, newHost(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	served, err := d.open(t.Context(), definedKind(gears(t), "gears.yaml"))
	require.NoError(t, err)
	served.awaitReady(t.Context())
	refuses = true
	refused, err := d.open(t.Context(), definedKind(gears(t), "gears.yaml"))
	require.NoError(t, err)
	require.Equal(t, changedWithin, readyLimit(served))
	require.Equal(t, readyWithin, readyLimit(refused))
	require.Equal(t, readyWithin, readyLimit(nil))
	require.NoError(t, served.close())
	require.NoError(t, refused.close())
}
