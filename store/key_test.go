package store_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
)

// The package io/fs has the same rule of paths, save that it takes "." for the root.
func TestValidateKey_AgreesWithPathsOfFiles(t *testing.T) {
	key := rapid.StringMatching(`([ab./\x{0}\x{7f}\x{80}\x{ffff}]|\.\.|/\.|//){0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		k := key.Draw(t, "key") + rapid.SampledFrom([]string{"", "", "\xff", "\x80"}).Draw(t, "broken")
		valid := fs.ValidPath(k) && k != "." && !strings.Contains(k, "\x00")
		err := store.ValidateKey(k)
		require.Equal(t, valid, err == nil, "%q: %v", k, err)
	})
	longest := strings.Repeat("k", store.MaxKeyLength)
	require.NoError(t, store.ValidateKey(longest))
	require.ErrorIs(t, store.ValidateKey(longest+"k"), store.ErrInvalidKey)
}

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
