package scale_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/registry/internal/scale"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Wanted            *int32 `json:"wanted"`
}

func of(o *store.Object) *pool             { return &store.As[engine.Object[pool]](o).Value }
func metaOf(o *store.Object) metav1.Object { return of(o) }

// object returns a pool of that size, nil for none.
func object(wanted *int32) *store.Object {
	return store.Header(&engine.Object[pool]{Value: pool{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "u", Labels: map[string]string{"app": "shop"}}, Wanted: wanted,
	}})
}

// functions scale pools, of which one of 13 cannot become another and one of 666 panics.
func functions() *scale.Functions {
	return &scale.Functions{
		Replicas: func(o *store.Object) (int32, bool) {
			switch wanted := of(o).Wanted; {
			case wanted == nil:
				return 0, false
			case *wanted == 666:
				panic("the number of the beast")
			default:
				return *wanted, true
			}
		},
		SetReplicas: func(o *store.Object, n int32) {
			if wanted := of(o).Wanted; wanted == nil || *wanted != 13 {
				of(o).Wanted = &n
			}
		},
		Observed: func(*store.Object) int32 { return 2 },
		Selector: func(o *store.Object) string { return "of=" + of(o).Name },
	}
}

// A scale has no more of the metadata than it takes to know the object.
func TestLayout_EncodesAnObjectAsItsScale(t *testing.T) {
	objects := engine.Config[pool]{Key: func(p pool) string { return p.Name }}.Schema()
	scales := functions().Layout(layout.Of(&objects, metaOf, reflect.TypeFor[pool](), schema.GroupVersionKind{Version: "v1", Kind: "Pool"}), metaOf)
	text, err := scales.Encode(object(new(int32(3))), "7", false)
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"7"},
		"spec":{"replicas":3},"status":{"replicas":2,"selector":"of=a"}}`, string(text))

	text, err = scales.Encode(object(nil), "", false)
	require.NoError(t, err)
	s, strict, err := scale.Read(text)
	require.NoError(t, err)
	require.Empty(t, strict)
	require.EqualValues(t, scale.NoReplicas, s.Spec.Replicas)

	_, err = scales.Encode(object(new(int32(666))), "", false)
	require.ErrorIs(t, err, usercode.ErrPanic)
}

func TestFunctions_ReportWhatCannotBeSet(t *testing.T) {
	f, o := functions(), object(nil)
	_, ok, err := f.Get(o)
	require.NoError(t, err)
	require.False(t, ok)
	set, err := f.Set(o, 13)
	require.NoError(t, err)
	require.True(t, set)
	set, err = f.Set(o, 14)
	require.NoError(t, err)
	require.False(t, set)
	n, ok, err := f.Get(o)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 13, n)
	_, err = f.Set(object(nil), 666)
	require.ErrorIs(t, err, usercode.ErrPanic)
	_, _, err = f.Get(object(new(int32(666))))
	require.ErrorIs(t, err, usercode.ErrPanic)
}

func TestRead_FindsUnknownFields(t *testing.T) {
	s, strict, err := scale.Read([]byte(`{"metadata":{"name":"a"},"spec":{"replicas":5,"size":1}}`))
	require.NoError(t, err)
	require.Len(t, strict, 1)
	require.ErrorContains(t, strict[0], `unknown field "spec.size"`)
	require.EqualValues(t, 5, s.Spec.Replicas)
	for _, text := range []string{`{"spec":{"replicas":"5"}}`, `{"spec":{"replicas":3000000000}}`, `nonsense`} {
		_, _, err := scale.Read([]byte(text))
		require.Error(t, err, text)
	}
}

func TestAnother_IsNeverNegative(t *testing.T) {
	for n, want := range map[int32]int32{0: 1, 5: 6, math.MaxInt32: 0} {
		s := &scale.Object{}
		s.Spec.Replicas = n
		require.Equal(t, want, s.Another().Spec.Replicas)
		require.Equal(t, n, s.Spec.Replicas)
	}
}

func TestDiffering_FindsTheFieldsThatHaveTheNumber(t *testing.T) {
	fields := func(text string) (object map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(text), &object))
		return object
	}
	with := fields(`{"a":1,"b":{"c":1,"d":{"e":1,"f":[1]}},"g":{"h":{}},"i":{"j":1}}`)
	from := fields(`{"a":1,"b":{"c":1,"d":{"e":2,"f":[2]}},"g":{"h":{},"k":1},"i":1}`)
	require.Equal(t, fields(`{"b":{"d":{"e":1,"f":[1]}},"i":{"j":1}}`), scale.Differing(with, from))
	require.Empty(t, scale.Differing(with, with))
}
