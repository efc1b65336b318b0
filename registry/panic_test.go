package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// fragile is a kind whose own functions for JSON panic.
type fragile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              fragileSpec `json:"spec"`
}

type fragileSpec struct{}

func (fragileSpec) MarshalJSON() ([]byte, error) { panic("cannot encode") }

func (*fragileSpec) UnmarshalJSON([]byte) error { panic("cannot decode") }

// A panic in the kind's own JSON is returned, as an error of the kind and not of what was
// sent.
func TestResource_ContainsPanicsOfTheKindsOwnJSON(t *testing.T) {
	cfg := registry.Config[fragile]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Fragile"}}
	const body = `{"apiVersion":"example.com/v1","kind":"Fragile","metadata":{"namespace":"default","name":"a","resourceVersion":"7"},"spec":{}}`
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	format, err := registry.FormatOf(cfg)
	require.NoError(t, err)

	_, created := s.Resources()[0].Create(t.Context(), "default", []byte(body), registry.WriteOptions{})
	_, decoded := format.Decode([]byte(body))
	schema := format.Schema()
	_, encoded := format.Encode(schema.New(), "7")
	for _, err := range []error{created, decoded, encoded} {
		require.ErrorIs(t, err, usercode.ErrPanic)
		var bad *registry.BadRequestError
		require.NotErrorAs(t, err, &bad)
	}
}
