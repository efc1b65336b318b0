package mishap_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/sim/mishap"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAMishapWaitsForABatchWithEvents(t *testing.T) {
	m := mishap.Mishaps{Lose: true, Repeat: true}
	progress := backend.Batch{After: 1, Through: 5}
	require.Equal(t, progress, mishap.Spoil(&m, progress))
	require.Equal(t, mishap.Mishaps{Lose: true, Repeat: true}, m)
}

// What is struck may be shared with other watches.
func TestTheSoundBatchStaysAsItWas(t *testing.T) {
	events := []store.Event{{Revision: 2}, {Revision: 3}, {Revision: 4}}
	for _, m := range []mishap.Mishaps{{Lose: true}, {Repeat: true}} {
		spoilt := mishap.Spoil(&m, backend.Batch{After: 1, Through: 4, Events: events})
		require.NotEqual(t, events, spoilt.Events)
		require.Equal(t, []store.Event{{Revision: 2}, {Revision: 3}, {Revision: 4}}, events)
		require.Equal(t, mishap.Mishaps{}, m, "once")
	}
}

func TestTheOnlyEventCanBeLost(t *testing.T) {
	m := mishap.Mishaps{Lose: true}
	spoilt := mishap.Spoil(&m, backend.Batch{After: 1, Through: 2, Events: []store.Event{{Revision: 2}}})
	require.Empty(t, spoilt.Events)
	require.Equal(t, store.Revision(2), spoilt.Through)
}
