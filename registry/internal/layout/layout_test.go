package layout_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

type lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]int `json:"spec"`
	Status            map[string]int `json:"status,omitempty"`
}

// common is embedded in the types of kinds.
type common struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            map[string]int `json:"status,omitempty"`
}

type commonLamp struct {
	common   `json:",inline"`
	Spec     map[string]int    `json:"spec"`
	Template metav1.ObjectMeta `json:"template,omitzero"`
}

// Marked is metadata with a field more.
type Marked struct {
	metav1.ObjectMeta
	Team string `json:"team,omitempty"`
}

type markedLamp struct {
	metav1.TypeMeta `json:",inline"`
	Marked          `json:"metadata"`
	Spec            map[string]int `json:"spec"`
	Status          map[string]int `json:"status,omitempty"`
}

// older has a status that hidingLamp's own hides.
type older struct {
	Status string `json:"status,omitempty"`
}

type hidingLamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            map[string]int `json:"status,omitempty"`
	older             `json:",inline"`
	Spec              map[string]int `json:"spec"`
}

// kind is a layout with what a test needs beside it.
type kind struct {
	layout.Layout
	schema store.Schema
	meta   func(*store.Object) metav1.Object
}

func kindOf[T any, P interface {
	*T
	metav1.Object
}]() *kind {
	cfg := engine.Config[T]{Key: func(v T) string { return P(&v).GetName() }}
	k := &kind{schema: cfg.Schema()}
	k.meta = func(o *store.Object) metav1.Object { return P(k.schema.Pointer(o).(*T)) }
	k.Layout = layout.Of(&k.schema, k.meta, reflect.TypeFor[T](), schema.GroupVersionKind{Version: "v1", Kind: "Lamp"})
	return k
}

// decoded returns the object of a body without unknown fields.
func (k *kind) decoded(t *testing.T, body string) *store.Object {
	t.Helper()
	o := k.schema.New()
	strict, err := k.Decode([]byte(body), o)
	require.NoError(t, err)
	require.Empty(t, strict)
	return o
}

// text returns the object's JSON without a resourceVersion.
func (k *kind) text(t *testing.T, o *store.Object) string {
	t.Helper()
	text, err := k.Encode(o, "", false)
	require.NoError(t, err)
	return string(text)
}

// kinds are structs and a map, which obey the same contract.
var kinds = map[string]*kind{
	"struct": kindOf[lamp](), "embedding struct": kindOf[commonLamp](), "struct with more metadata": kindOf[markedLamp](), "struct with two statuses": kindOf[hidingLamp](), "map": kindOf[unstructured.Unstructured](),
}

// full is an object with everything that a layout treats apart.
const full = `{"apiVersion":"v1","kind":"Lamp","metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{"watts":5},"status":{"on":1}}`

// forEach runs a test on both layouts.
func forEach(t *testing.T, test func(t *testing.T, k *kind)) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

func TestLayout_EncodesWhatItDecodes(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, full)
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(k.text(t, o)), &fields))
		delete(fields["metadata"].(map[string]any), "creationTimestamp") // which a struct always has
		var given map[string]any
		require.NoError(t, json.Unmarshal([]byte(full), &given))
		require.Equal(t, given, fields)
	})
}

func TestLayout_EncodesARevisionAndLeavesOutManagedFields(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, full)
		before := k.text(t, o)
		text, err := k.Encode(o, "7", true)
		require.NoError(t, err)
		lean := k.decoded(t, string(text))
		require.Equal(t, "7", k.meta(lean).GetResourceVersion())
		require.Empty(t, k.meta(lean).GetManagedFields())
		require.Equal(t, before, k.text(t, o), "the object is as it was")
	})
}

func TestLayout_FieldsAreWhatIsEncoded(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		fields, err := k.Fields(k.decoded(t, full), "7")
		require.NoError(t, err)
		require.Equal(t, "Lamp", fields["kind"])
		require.Equal(t, "7", fields["metadata"].(map[string]any)["resourceVersion"])
		require.Equal(t, map[string]any{"watts": int64(5)}, fields["spec"])
	})
}

func TestLayout_DecodeTellsOfRepeatedFieldsAndRefusesWrongTypes(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		strict, err := k.Decode([]byte(`{"metadata":{"name":"a"},"spec":{},"spec":{}}`), k.schema.New())
		require.NoError(t, err)
		require.Len(t, strict, 1)
		for _, body := range []string{`{`, `[]`, `{"metadata":7}`, `{"metadata":{"name":7}}`, `{"metadata":{"labels":[]}}`, `{"apiVersion":5}`, `{"kind":{}}`} {
			_, err := k.Decode([]byte(body), k.schema.New())
			require.Error(t, err, body)
		}
	})
}

func TestLayout_UnknownFieldsOfMetadataAreToldAndDropped(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.schema.New()
		strict, err := k.Decode([]byte(`{"metadata":{"name":"a","Labels":{},"ownerReferences":[{"uid":"1","of":2}],"managedFields":[]},"spec":{}}`), o)
		require.NoError(t, err)
		require.ErrorContains(t, errors.Join(strict...), `unknown field "metadata.Labels"`)
		require.ErrorContains(t, errors.Join(strict...), `unknown field "metadata.ownerReferences[0].of"`)
		require.Len(t, strict, 2)
		text := k.text(t, o)
		require.Contains(t, text, `"name":"a"`)
		require.Contains(t, text, `"uid":"1"`)
		require.NotContains(t, text, "Labels")
		require.NotContains(t, text, `"of"`)
		require.NotNil(t, k.meta(o).GetManagedFields(), "an empty list is not none")
	})
}

// A null among finalizers must not hide the others from those that ask for them.
func TestLayout_EmptyFieldsOfMetadataAreLeftOut(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		plain := k.text(t, k.decoded(t, `{"metadata":{"name":"a"},"spec":{}}`))
		for _, empty := range []string{
			`"labels":{}`, `"annotations":{}`, `"finalizers":[]`, `"ownerReferences":[]`, `"generateName":""`, `"labels":null`, `"creationTimestamp":null`,
		} {
			require.Equal(t, plain, k.text(t, k.decoded(t, `{"metadata":{"name":"a",`+empty+`},"spec":{}}`)), empty)
		}
	})
}

func TestLayout_NullsInMetadataAreEmpty(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, `{"metadata":{"name":"a","creationTimestamp":null,"labels":{"a":null},"finalizers":[null,"b"],"ownerReferences":[null]},"spec":{}}`)
		require.Equal(t, []string{"", "b"}, k.meta(o).GetFinalizers())
		require.Equal(t, map[string]string{"a": ""}, k.meta(o).GetLabels())
		require.Len(t, k.meta(o).GetOwnerReferences(), 1)
		require.NotContains(t, k.text(t, o), "null")
	})
}

func TestLayout_MetadataThatIsNullCanBeSet(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, `{"metadata":null,"spec":{}}`)
		k.meta(o).SetName("b")
		require.Equal(t, "b", k.meta(o).GetName())
	})
}

func TestLayout_TellsWhetherTheStatusIsTheSame(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, full)
		for body, same := range map[string]bool{
			`{"metadata":{"name":"b"},"spec":{},"status":{"on":1}}`:          true,
			`{"metadata":{"name":"a"},"spec":{"watts":5},"status":{"on":2}}`: false,
			`{"metadata":{"name":"a"},"spec":{"watts":5}}`:                   false,
		} {
			require.Equal(t, same, k.SameStatus(o, k.decoded(t, body)), body)
		}
	})
}

func TestLayout_AStructTellsOfUnknownFields(t *testing.T) {
	k := kinds["struct"]
	strict, err := k.Decode([]byte(`{"metadata":{},"volts":230}`), k.schema.New())
	require.NoError(t, err)
	require.Len(t, strict, 1)
	require.ErrorContains(t, strict[0], "volts")
}

func TestLayout_AClonesMetadataAndStatusAreItsOwn(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, full)
		before := k.text(t, o)
		c := k.Clone(o)
		k.meta(c).SetName("b")
		k.meta(c).SetManagedFields(nil)
		k.TakeStatus(c, nil)
		require.Equal(t, before, k.text(t, o))
		require.NotContains(t, k.text(t, c), "status")
		require.True(t, k.SameSpec(c, o))
	})
}

func TestLayout_ADeepCloneSharesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, full)
		before := k.text(t, o)
		c, err := k.DeepClone(o)
		require.NoError(t, err)
		require.Equal(t, before, k.text(t, c))
		k.meta(c).GetManagedFields()[0].Manager = "another"
		if l, ok := k.schema.Pointer(c).(*lamp); ok {
			l.Spec["watts"] = 6
		}
		require.Equal(t, before, k.text(t, o))
	})
}

// shelf has values of all kinds that can be shared.
type shelf struct {
	common  `json:",inline"`
	Pointer *[]string         `json:"pointer"`
	Any     any               `json:"any"`
	Array   [1]map[string]int `json:"array"`
	Structs []common          `json:"structs"`
	Bytes   []byte            `json:"bytes"`
	Empty   map[string]int    `json:"empty,omitempty"`
	None    []string          `json:"none"`
	Hidden  map[string]int    `json:"-"`
	since   time.Time
}

func TestLayout_ADeepCloneIsEqualWithoutSharing(t *testing.T) {
	full := func() shelf {
		return shelf{
			common:  common{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}, Status: map[string]int{"on": 1}},
			Pointer: &[]string{"a"}, Any: map[string]any{"a": []any{"b", nil}}, Array: [1]map[string]int{{"a": 1}},
			Structs: []common{{Status: map[string]int{"on": 1}}}, Bytes: []byte("a"), Empty: map[string]int{},
			Hidden: map[string]int{"a": 1}, since: time.Unix(1, 0),
		}
	}
	k := kindOf[shelf]()
	c, err := k.DeepClone(store.Header(&engine.Object[shelf]{Value: full()}))
	require.NoError(t, err)
	of := k.schema.Pointer(c).(*shelf)
	require.Equal(t, full(), *of)

	o := store.Header(&engine.Object[shelf]{Value: *of})
	c, err = k.DeepClone(o)
	require.NoError(t, err)
	of = k.schema.Pointer(c).(*shelf)
	of.Labels["a"], of.Status["on"], (*of.Pointer)[0], of.Array[0]["a"], of.Bytes[0] = "c", 2, "c", 2, 'c'
	of.Any.(map[string]any)["a"].([]any)[0] = "c"
	of.Structs[0].Status["on"], of.Empty["a"] = 2, 2
	require.Equal(t, full(), *k.schema.Pointer(o).(*shelf))
}

// Equal pointers, and very many side by side, are not a cycle.
func TestLayout_ADeepCloneIsCompleteWithoutACycle(t *testing.T) {
	k := kindOf[shelf]()
	twice := &[]string{"a"}
	full := shelf{Pointer: twice, Any: twice, Structs: slices.Repeat([]common{{Status: map[string]int{"on": 1}}}, 2000), Hidden: map[string]int{"a": 1}}
	c, err := k.DeepClone(store.Header(&engine.Object[shelf]{Value: full}))
	require.NoError(t, err)
	require.Equal(t, full, *k.schema.Pointer(c).(*shelf))
}

// dial has a DeepCopyObject, which knows what its unexported fields hold.
type dial struct {
	lamp
	marks []int
}

func (d *dial) DeepCopyObject() runtime.Object {
	if d.Name == "broken" {
		panic("cannot copy")
	}
	c := *d
	c.marks = slices.Clone(d.marks)
	return &c
}

// knob has that of another type.
type knob struct {
	dial
	Spec map[string]int `json:"spec"`
}

func TestLayout_ADeepCloneIsMadeByTheTypeItself(t *testing.T) {
	k := kindOf[dial]()
	o := store.Header(&engine.Object[dial]{Value: dial{marks: []int{1}}})
	c, err := k.DeepClone(o)
	require.NoError(t, err)
	k.schema.Pointer(c).(*dial).marks[0] = 2
	require.Equal(t, []int{1}, k.schema.Pointer(o).(*dial).marks)

	_, err = k.DeepClone(store.Header(&engine.Object[dial]{Value: dial{lamp: lamp{ObjectMeta: metav1.ObjectMeta{Name: "broken"}}}}))
	require.ErrorIs(t, err, usercode.ErrPanic)

	k = kindOf[knob]()
	o = store.Header(&engine.Object[knob]{Value: knob{Spec: map[string]int{"a": 1}}})
	c, err = k.DeepClone(o)
	require.NoError(t, err)
	k.schema.Pointer(c).(*knob).Spec["a"] = 2
	require.Equal(t, map[string]int{"a": 1}, k.schema.Pointer(o).(*knob).Spec)
}

// branch is a tree whose parts know what they are part of. JSON leaves Of out by a tag, and leaves
// out Root by the type's own method.
type branch struct {
	common `json:",inline"`
	Of     *branch   `json:"-"`
	Root   *branch   `json:"root,omitempty"`
	Parts  []*branch `json:"parts"`
}

func (b branch) MarshalJSON() ([]byte, error) {
	type plain branch
	if b.Root != nil && b.Root.Name == "tree" {
		b.Root = nil
	}
	return json.Marshal(plain(b))
}

func TestLayout_ADeepCloneOfATreeWithParentsIsOneTree(t *testing.T) {
	k := kindOf[branch]()
	of := &branch{}
	of.Parts = []*branch{{Of: of}, {Of: of}}
	c, err := k.DeepClone(store.Header(&engine.Object[branch]{Value: *of}))
	require.NoError(t, err)
	parts := k.schema.Pointer(c).(*branch).Parts
	require.Same(t, of, parts[0].Of, "JSON leaves it out, so it is shared")
	require.NotSame(t, of.Parts[0], parts[0])
}

// Each part leads to all others by the root, so to follow them would have no end.
func TestLayout_ADeepCloneOfAValueInItselfIsThatOfItsJSON(t *testing.T) {
	k := kindOf[branch]()
	of := &branch{common: common{ObjectMeta: metav1.ObjectMeta{Name: "tree"}}}
	for range 10 {
		of.Parts = append(of.Parts, &branch{Root: of})
	}
	c, err := k.DeepClone(store.Header(&engine.Object[branch]{Value: *of}))
	require.NoError(t, err)
	clone := k.schema.Pointer(c).(*branch)
	require.Len(t, clone.Parts, 10)
	require.Nil(t, clone.Parts[0].Root)
}

// chain has a link to itself, or a long way to its end.
type chain struct {
	common `json:",inline"`
	Next   *chain `json:"next,omitempty"`
}

// The stack of a goroutine that copies without end would end the process.
func TestLayout_ADeepCloneOfALongChainIsThatOfItsJSON(t *testing.T) {
	k := kindOf[chain]()
	of := &chain{}
	for range 2000 {
		of = &chain{Next: of}
	}
	c, err := k.DeepClone(store.Header(&engine.Object[chain]{Value: *of}))
	require.NoError(t, err)
	next := k.schema.Pointer(c).(*chain).Next
	require.Equal(t, of.Next, next)
	require.NotSame(t, of.Next, next)

	of.Next = of
	_, err = k.DeepClone(store.Header(&engine.Object[chain]{Value: *of}))
	require.ErrorContains(t, err, "cycle")
}

func TestLayout_TakesTheStatusOfAnother(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		to := k.decoded(t, `{"metadata":{"name":"a"},"spec":{"watts":7},"status":{"off":1}}`)
		k.TakeStatus(to, k.decoded(t, full))
		require.Contains(t, k.text(t, to), `"status":{"on":1}`)
		require.Contains(t, k.text(t, to), `"spec":{"watts":7}`)
		if m, isMap := k.schema.Pointer(to).(*unstructured.Unstructured); isMap {
			from := k.decoded(t, full)
			k.TakeStatus(to, from)
			m.Object["status"].(map[string]any)["on"] = int64(2) // as setting defaults does
			require.Contains(t, k.text(t, from), `"status":{"on":1}`)
		}
		k.TakeStatus(to, k.decoded(t, `{"metadata":{"name":"a"},"spec":{}}`))
		require.NotContains(t, k.text(t, to), "status")
	})
}

func TestLayout_MetadataOfATemplateIsSpec(t *testing.T) {
	k := kinds["embedding struct"]
	o := k.decoded(t, full)
	c := k.Clone(o)
	k.schema.Pointer(c).(*commonLamp).Template.Name = "b"
	require.False(t, k.SameSpec(c, o))
}

func TestLayout_TheSpecIsAllButMetadataAndStatus(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		o := k.decoded(t, full)
		for body, same := range map[string]bool{
			`{"metadata":{"name":"b"},"spec":{"watts":5}}`:                        true,
			`{"kind":"Bulb","metadata":{"name":"a"},"spec":{"watts":5}}`:          true,
			`{"metadata":{"name":"a"},"spec":{"watts":6},"status":{"on":1}}`:      false,
			`{"metadata":{"name":"a"},"status":{"on":1}}`:                         false,
			`{"metadata":{"name":"a"},"spec":{"watts":5,"x":1},"status":{"y":1}}`: false,
		} {
			require.Equal(t, same, k.SameSpec(o, k.decoded(t, body)), body)
		}
	})
}
