package bench

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	inmemory "github.com/watchmill/watchmill/store/backend/memory"
)

// A machine may stand still for longer than an engine waits for its cache.
func TestStore_WaitsForACacheThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		m, err := inmemory.New(cfg.Schema(), inmemory.Options{})
		require.NoError(t, err)
		late := faulty.New(m, faulty.Options{})
		late.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.Delay(time.Minute)})
		cfg.Backend = late
		e, err := engine.New(cfg)
		require.NoError(t, err)
		s := engineStore{e}
		rev, err := s.Write(t.Context(), Object{Name: "a"})
		require.NoError(t, err)
		require.NoError(t, s.WaitFor(t.Context(), rev), "it is not ready")

		silent := late.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
		time.AfterFunc(time.Minute, func() {
			silent.Remove()
			late.BreakWatches(nil)
		})
		rev, err = s.Write(t.Context(), Object{Name: "a", Seq: 1})
		require.NoError(t, err)
		require.NoError(t, s.WaitFor(t.Context(), rev), "it has not got the write")
		require.NoError(t, s.Close())
		require.NoError(t, late.Close())
	})
}
