package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
)

func TestBefore_HasNoKeyInBetween(t *testing.T) {
	key := rapid.StringMatching(`[a-c\x{1}\x{7f}\x{80}\x{7ff}\x{ffff}\x{10ffff}]{1,3}(/[a-c]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		at, other := key.Draw(t, "key"), key.Draw(t, "other")
		require.Less(t, store.Before(at), at)
		require.Equal(t, other >= at, other > store.Before(at), "%q from %q on", other, at)
	})
	require.Empty(t, store.Before(""))
}

func ExampleBefore() {
	for _, key := range []string{"b", "b0", "c"} {
		fmt.Println(key, key > store.Before("b0"))
	}
	// Output:
	// b false
	// b0 true
	// c true
}
