package memory_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// script makes random writes, some with a TTL, and returns all that a watch
// sees of it.
func script(t *testing.T, seed uint64) []string {
	f := newFixture(t, memory.Options{})
	random := rand.New(rand.NewPCG(seed, seed))
	w := f.watch(1, nothing)
	for range 500 {
		key := strconv.Itoa(random.IntN(20))
		prev, _ := f.Get(f.ctx, key)
		if prev != nil && random.IntN(4) == 0 {
			_, err := f.Remove(f.ctx, prev)
			require.NoError(t, err)
		} else {
			f.put(key, prev, backend.PutOptions{TTL: time.Duration(random.IntN(3)) * time.Second})
		}
		f.clock.Advance(time.Duration(random.IntN(500)) * time.Millisecond)
	}
	return f.read(w)
}

func TestHistory_IsOneForOneScript(t *testing.T) {
	first := script(t, 1)
	require.Equal(t, first, script(t, 1))
	require.NotEqual(t, first, script(t, 2))
}
