package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/store"
)

// thing is what most tests of this package keep: a header and a value.
type thing struct {
	store.Object
	Value string
}

// columns are the fields that things have.
var columns = store.NewColumns("a", "app", "b", "p", "q", "r", "spec.nodeName", "status.phase", "x", "y")

// things is how things are dealt with.
var things = &store.Schema{
	Fields:   columns,
	New:      func() *store.Object { return &new(thing).Object },
	Clone:    func(o *store.Object) *store.Object { c := *store.As[thing](o); return &c.Object },
	Pointer:  func(o *store.Object) any { return &store.As[thing](o).Value },
	Key:      func(o *store.Object) string { return store.As[thing](o).Value },
	Describe: func(*store.Object) {},
	Size:     func(o *store.Object) int { return len(store.As[thing](o).Value) },
	Equal:    func(a, b *store.Object) bool { return store.As[thing](a).Value == store.As[thing](b).Value },
}

// newThing returns a thing with this header.
func newThing(header store.Object) *store.Object { return &(&thing{Object: header}).Object }

// valueOf returns a thing's value.
func valueOf(o *store.Object) string { return store.As[thing](o).Value }

// row returns the columns of a thing with these fields.
func row(set fields.Set) []string {
	values := make([]string, len(columns))
	for i, name := range columns {
		values[i] = set[name]
	}
	return values
}

// field returns the attribute of a declared field.
func field(name string) store.Attribute {
	a, err := columns.Attribute(name)
	if err != nil {
		panic(err)
	}
	return a
}

func TestAs_LeadsFromTheHeaderToTheWhole(t *testing.T) {
	whole := &thing{Object: store.Object{Key: "a"}, Value: "v"}
	require.Same(t, whole, store.As[thing](&whole.Object))
	require.Nil(t, store.As[thing](nil))
	*things.Pointer(&whole.Object).(*string) = "decoded"
	require.Equal(t, "decoded", whole.Value)
	require.Equal(t, thing{}, *store.As[thing](things.New()))
}

func TestSchema_CloneCopiesHeaderAndValue(t *testing.T) {
	whole := &thing{Object: store.Object{Key: "a", Revision: 3, Fields: []string{"x"}}, Value: "v"}
	clone := things.Clone(&whole.Object)
	require.NotSame(t, &whole.Object, clone)
	require.Equal(t, *whole, *store.As[thing](clone))
	require.True(t, store.SharesAttributes(&whole.Object, clone))

	gone := things.Gone(&whole.Object, 9, start)
	require.Equal(t, store.Revision(9), gone.Revision)
	require.Equal(t, start, gone.Written)
	require.Equal(t, "v", valueOf(gone), "a deletion carries the last value")
	require.Equal(t, store.Revision(3), whole.Revision, "the object itself does not change")
}

func TestObject_FieldBeyondTheColumnsIsEmpty(t *testing.T) {
	o := &store.Object{Fields: []string{"x"}}
	require.Equal(t, "x", o.Field(0))
	require.Empty(t, o.Field(1))
}

func TestColumns_AreSortedAndEachOnce(t *testing.T) {
	names := []string{"b", "a", "b"}
	c := store.NewColumns(names...)
	require.Equal(t, store.Columns{"a", "b"}, c)
	require.Equal(t, []string{"b", "a", "b"}, names, "the caller's slice is not touched")
	b, err := c.Attribute("b")
	require.NoError(t, err)
	require.Equal(t, store.Attribute{Kind: store.Field, Name: "b", Column: 1}, b)
	require.Empty(t, store.NewColumns())
}

func TestColumns_UnknownFieldSaysWhatWasMeant(t *testing.T) {
	declared := store.NewColumns("spec.nodeName", "status.phase")
	for name, want := range map[string]string{
		"spec.nodename": `unknown field "spec.nodename": did you mean "spec.nodeName"? declared are spec.nodeName, status.phase`,
		"spec.nodeNam":  `unknown field "spec.nodeNam": did you mean "spec.nodeName"? declared are spec.nodeName, status.phase`,
		"phase":         `unknown field "phase": declared are spec.nodeName, status.phase`,
		"":              `unknown field "": declared are spec.nodeName, status.phase`,
	} {
		_, err := declared.Attribute(name)
		require.ErrorIs(t, err, store.ErrUnknownField)
		require.EqualError(t, err, want)
		var unknown *store.UnknownFieldError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, name, unknown.Name)
	}
	_, err := store.NewColumns().Attribute("a")
	require.EqualError(t, err, `unknown field "a": no fields are declared`)
}
