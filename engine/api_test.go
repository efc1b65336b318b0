package engine_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// What a user holds has the user's methods, and none that only the engine may
// call.
func TestWatch_HasExactlyTheMethodsOfItsUsers(t *testing.T) {
	for held, want := range map[reflect.Type][]string{
		reflect.TypeFor[*engine.Watch[pod]]():   {"Batches", "Behind", "Chan", "Delivered", "Done", "Err", "Events", "Lag", "Lost", "Name", "Next", "Revision", "Stalled", "Stop", "Wait"},
		reflect.TypeFor[*engine.Subscription](): {"Behind", "Done", "Err", "Lag", "Name", "Revision", "Stop", "Wait"},
		reflect.TypeFor[*engine.Event[pod]]():   {"Is", "Key", "String"},
		reflect.TypeFor[*engine.Object[pod]]():  nil,
	} {
		var have []string
		for method := range held.Methods() {
			have = append(have, method.Name)
		}
		require.Equal(t, want, have, held)
	}
}

// Nothing inside of what a user holds is the user's, or lends it methods.
func TestHandles_HideWhatTheyAreMadeOf(t *testing.T) {
	for _, held := range []reflect.Type{
		reflect.TypeFor[engine.Engine[pod]](), reflect.TypeFor[engine.Watch[pod]](), reflect.TypeFor[engine.Topic[pod]](),
		reflect.TypeFor[engine.Subscription](), reflect.TypeFor[engine.Host](),
	} {
		require.Positive(t, held.NumField(), held)
		for field := range held.Fields() {
			require.False(t, field.Anonymous || field.IsExported(), "%v.%s", held, field.Name)
		}
	}
}
