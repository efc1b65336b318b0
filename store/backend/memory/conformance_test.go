package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
		clock := backendtest.NewClock()
		b, err := memory.New(schema, memory.Options{Clock: clock})
		require.NoError(t, err)
		return backendtest.Harness{Backend: b, Pass: clock.Advance}
	})
}
