package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// The user's Size is called without the lock, and storage may be closed meanwhile.
func TestClose_WhileAWriteMeasuresAnObject(t *testing.T) {
	var b *memory.Backend
	var closes *store.Object // storage is closed when this one is measured
	schema := lamps
	schema.Size = func(o *store.Object) int {
		if o == closes {
			require.NoError(t, b.Close())
		}
		return lamps.Size(o)
	}
	for name, write := range map[string]func(hall *store.Object) error{
		"create": func(*store.Object) error {
			closes = newLamp("attic", false)
			_, err := b.Put(t.Context(), closes, nil, backend.PutOptions{})
			return err
		},
		"replace": func(hall *store.Object) error {
			closes = hall
			_, err := b.Put(t.Context(), newLamp("hall", true), hall, backend.PutOptions{})
			return err
		},
		"remove": func(hall *store.Object) error {
			closes = hall
			_, err := b.Remove(t.Context(), hall)
			return err
		},
		"emit": func(*store.Object) error {
			closes = newLamp("attic", false)
			_, err := b.Emit(t.Context(), closes)
			return err
		},
	} {
		var err error
		b, err = memory.New(schema, memory.Options{})
		require.NoError(t, err)
		hall, err := b.Put(t.Context(), newLamp("hall", false), nil, backend.PutOptions{})
		require.NoError(t, err)
		require.NotPanics(t, func() { err = write(hall) }, name)
		require.ErrorIs(t, err, store.ErrClosed, name)
	}
}
