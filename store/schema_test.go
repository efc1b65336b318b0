package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
)

func TestAs_LeadsFromTheHeaderToTheWhole(t *testing.T) {
	whole := &storetest.Thing{Object: store.Object{Key: "a"}, Value: "v"}
	require.Same(t, whole, store.As[storetest.Thing](&whole.Object))
	require.Nil(t, store.As[storetest.Thing](nil))
	*storetest.Things.Pointer(&whole.Object).(*string) = "decoded"
	require.Equal(t, "decoded", whole.Value)
	require.Equal(t, storetest.Thing{}, *store.As[storetest.Thing](storetest.Things.New()))
}

func TestSchema_CloneCopiesHeaderAndValue(t *testing.T) {
	whole := &storetest.Thing{Object: store.Object{Key: "a", Revision: 3, Fields: []string{"x"}}, Value: "v"}
	clone := storetest.Things.Clone(&whole.Object)
	require.NotSame(t, &whole.Object, clone)
	require.Equal(t, *whole, *store.As[storetest.Thing](clone))
	require.True(t, store.SharesAttributes(&whole.Object, clone))

	gone := storetest.Things.Gone(&whole.Object, 9, time.Unix(0, 0))
	require.Equal(t, store.Revision(9), gone.Revision)
	require.Equal(t, time.Unix(0, 0), gone.Written)
	require.Equal(t, "v", storetest.ValueOf(gone), "a deletion carries the last value")
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

func TestAttribute_IsWrittenAsText(t *testing.T) {
	require.Equal(t, "field:spec.nodeName", storetest.ByNode.String())
	require.Equal(t, "label:app", storetest.ByApp.String())
	require.Equal(t, "AttributeKind(0):", store.Attribute{}.String())
}
