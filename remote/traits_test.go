package remote_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Reflector would give up a page that takes more than a minute, but arrives.
func TestTraits_TellThatCallsAreBounded(t *testing.T) {
	require.True(t, backendAt(t, "http://127.0.0.1:1").Traits().Bounded)
}

// An engine of another type refuses the backend by that.
func TestTraits_TellTheTypeOfTheObjects(t *testing.T) {
	require.Equal(t, reflect.TypeFor[Widget](), backendAt(t, "http://127.0.0.1:1").Traits().Type)
}
