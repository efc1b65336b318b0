package bolt_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
		virtual := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC))
		path := filepath.Join(t.TempDir(), "state.db")
		var f *bolt.File
		open := func() backend.Backend {
			var err error
			f, err = bolt.Open(path, bolt.Options{Clock: virtual})
			require.NoError(t, err)
			b, err := bolt.New(f, "items", bolt.Config{Schema: schema})
			require.NoError(t, err)
			return b
		}
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return backendtest.Harness{Backend: open(), Pass: virtual.Advance, Reopen: func(down time.Duration) backend.Backend {
			require.NoError(t, f.Close())
			virtual.Advance(down)
			return open()
		}}
	})
}
