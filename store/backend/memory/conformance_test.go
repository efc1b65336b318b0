package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
		virtual := clock.NewVirtual(began)
		b, err := memory.New(schema, memory.Options{Clock: virtual, FirstRevision: 1})
		require.NoError(t, err)
		return backendtest.Harness{Backend: b, Pass: virtual.Advance}
	})
}
