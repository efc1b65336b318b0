package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// memo is a type that is not laid out as a pod is.
type memo struct {
	Lines []string
	Size  int
}

// A value of another type would be read as what it is not: memory would be corrupt.
func TestConfig_BackendOfAnotherTypeIsRefused(t *testing.T) {
	memos := engine.Config[memo]{}.Schema()
	inMemory, err := memory.New(memos, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, inMemory.Close()) }()
	file, err := bolt.Open(filepath.Join(t.TempDir(), "state.db"), bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	inFile, err := bolt.New(file, "memos", bolt.Config{Schema: memos})
	require.NoError(t, err)
	for name, b := range map[string]backend.Backend{
		"memory": inMemory, "bolt": inFile, "decorated": faulty.New(inMemory, faulty.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.New(cfgOver(b))
			require.ErrorIs(t, err, engine.ErrConfig)
			require.EqualError(t, err, "invalid configuration: Backend holds objects of engine_test.memo, not of engine_test.pod; give one that was made with the Schema of this Config")
			require.ErrorContains(t, engine.SourceOf[pod](b).Validate(), "Source holds objects of engine_test.memo, not of engine_test.pod")
			require.NoError(t, engine.SourceOf[memo](b).Validate())

			e, err := engine.New(engine.Config[memo]{Backend: b})
			require.NoError(t, err)
			require.ErrorContains(t, engine.SourceOf[pod](e.Source().ListerWatcher).Validate(), "not of engine_test.pod")
			require.NoError(t, e.Close())
		})
	}
}
