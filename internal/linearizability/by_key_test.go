package linearizability_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/internal/linearizability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestByKey_PartsHaveTheCallsOfAKeyInOrder(t *testing.T) {
	type call struct{ key string }
	var history []porcupine.Operation
	for client, key := range []string{"a", "b", "a", "c", "b"} {
		history = append(history, porcupine.Operation{ClientId: client, Input: call{key}})
	}
	partition := linearizability.ByKey(func(c call) string { return c.key })
	require.ElementsMatch(t, [][]porcupine.Operation{
		{history[0], history[2]}, {history[1], history[4]}, {history[3]},
	}, partition(history))
	require.Empty(t, partition(nil))
}
