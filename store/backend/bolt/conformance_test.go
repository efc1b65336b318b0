package bolt_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
		clock := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC))
		f, err := bolt.Open(filepath.Join(t.TempDir(), "state.db"), bolt.Options{Clock: clock})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		b, err := bolt.New(f, "items", bolt.Config{Schema: schema})
		require.NoError(t, err)
		return backendtest.Harness{Backend: b, Pass: clock.Advance}
	})
}
