package watcher_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
)

func ExampleParsePolicy() {
	p, err := watcher.ParsePolicy("conflate")
	fmt.Println(p, err)
	_, err = watcher.ParsePolicy("drop")
	fmt.Println(errors.Is(err, watcher.ErrInvalidPolicy))
	fmt.Println(err)
	// Output:
	// conflate <nil>
	// true
	// invalid policy "drop": it is one of park, terminate, conflate
}

func TestPolicy_ZeroValueIsPark(t *testing.T) {
	var p watcher.Policy
	require.Equal(t, watcher.Park, p)
	require.Equal(t, "park", p.String())
}

func TestPolicy_IsReadAsItIsWritten(t *testing.T) {
	for _, p := range []watcher.Policy{watcher.Park, watcher.Terminate, watcher.Conflate} {
		require.True(t, p.Valid())
		parsed, err := watcher.ParsePolicy(p.String())
		require.NoError(t, err)
		require.Equal(t, p, parsed)

		text, err := json.Marshal(map[string]watcher.Policy{"policy": p})
		require.NoError(t, err)
		var read map[string]watcher.Policy
		require.NoError(t, json.Unmarshal(text, &read))
		require.Equal(t, p, read["policy"])
	}
}

func TestPolicy_ThatThereIsNot(t *testing.T) {
	invalid := watcher.Conflate + 1
	require.False(t, invalid.Valid())
	require.Equal(t, "Policy(3)", invalid.String())
	_, err := invalid.MarshalText()
	require.ErrorIs(t, err, watcher.ErrInvalidPolicy)
	var policy *watcher.PolicyError
	require.ErrorAs(t, err, &policy)
	require.Equal(t, "Policy(3)", policy.Input)

	p := watcher.Terminate
	err = p.UnmarshalText([]byte("Park"))
	require.ErrorIs(t, err, watcher.ErrInvalidPolicy)
	require.ErrorAs(t, err, &policy)
	require.Equal(t, "Park", policy.Input)
	require.Equal(t, watcher.Terminate, p, "a failed read changes nothing")
}
