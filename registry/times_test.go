package registry_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// Timer has times, as many kinds of Kubernetes have.
type Timer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	At                metav1.Time      `json:"at"`
	Exactly           metav1.MicroTime `json:"exactly"`
}

// Kubernetes' types encode times in UTC, where that of another zone may be in the year 10000 or -1, which
// none of them decodes: a list with the object would be of no use to any client, and storage would not open.
func TestResource_TimesStayInTheYearsThatCanBeDecoded(t *testing.T) {
	s := newStore(t, registry.Config[Timer]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Timer"}})
	r := s.Resources()[0]
	n := 0
	for _, c := range []struct {
		field, time string
		taken       bool
	}{
		{"at", "9999-12-31T23:59:59-00:01", false}, {"at", "9999-12-31T00:00:00-24:00", false}, {"at", "0000-01-01T00:00:00+00:01", false},
		{"at", `\u0039999-12-31T23:59:59-00:01`, false}, {"at", `9999\u002D12-31T23:59:59-00:01`, false}, {"at", `9999\u002d12-31T23:59:59-00:01`, false},
		{"exactly", "9999-12-31T23:59:59.000000-23:59", false}, {"exactly", "0000-01-02T00:00:00.000000+24:01", false},
		{"at", "9999-12-31T23:59:59Z", true}, {"at", "9999-12-31T23:59:59+00:01", true}, {"at", "0000-01-01T00:00:00Z", true}, {"at", `2026\u002d12-31T00:00:00-01:00`, true},
		{"exactly", "9999-12-31T23:59:59.999999Z", true},
	} {
		n++
		sent := fmt.Sprintf(`{"metadata":{"name":"t%d"},"%s":"%s"}`, n, c.field, c.time)
		it, err := r.Create(t.Context(), "default", []byte(sent), registry.WriteOptions{})
		if !c.taken {
			require.ErrorAs(t, err, new(*registry.BadRequestError), sent)
			require.ErrorContains(t, err, "a time is not in the years 0 to 9999 of UTC")
			continue
		}
		require.NoError(t, err, sent)
		require.NoError(t, json.Unmarshal([]byte(body(t, it)), &Timer{}))
	}
}

// A writer may send the managed fields, whose times every kind has.
func TestManagedFields_TimesStayInTheYearsThatCanBeDecoded(t *testing.T) {
	const body = `{"apiVersion":"example.com/v1","kind":"%s","metadata":{"name":"a","managedFields":[{"manager":"me","operation":"Update",
		"apiVersion":"example.com/v1","time":"9999-12-31T23:59:59-00:01","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:size":{}}}}]},"spec":{"size":1}}`
	typed := config()
	typed.Apply = apply.New
	kind := registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	untyped := registry.Config[unstructured.Unstructured]{Kind: kind, Apply: apply.Deduced}
	for kind, r := range map[string]registry.Resource{"Widget": newStore(t, typed).Resources()[0], "Gadget": newStore(t, untyped).Resources()[0]} {
		_, err := r.Create(t.Context(), "default", fmt.Appendf(nil, body, kind), registry.WriteOptions{})
		require.ErrorAs(t, err, new(*registry.BadRequestError), kind)
		require.ErrorContains(t, err, "a time is not in the years 0 to 9999 of UTC", kind)
	}
}
