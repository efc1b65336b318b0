package remote_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// An engine of another type refuses the backend by that.
func TestTraits_TellTheTypeOfTheObjects(t *testing.T) {
	require.Equal(t, reflect.TypeFor[Widget](), backendAt(t, "http://127.0.0.1:1").Traits().Type)
}
