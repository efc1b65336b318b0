package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// large is a value of several cache lines, with pointers among them.
type large struct {
	Words [40]uint64
	Name  string
	Tags  map[string]string
	Next  *large
}

func newLarge(n int) large {
	return large{Words: [40]uint64{0: uint64(n), 39: ^uint64(n)}, Name: fmt.Sprint("large-", n), Tags: map[string]string{"n": fmt.Sprint(n)}, Next: &large{Name: "next"}}
}

// Whatever the type of the value, an object begins with the fields of its
// header and an event has the fields of its untyped one, at the same offsets.
func TestObject_LiesAsItsHeaderDoes(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[engine.Object[struct{}]](), reflect.TypeFor[engine.Event[struct{}]]()},
		{reflect.TypeFor[engine.Object[byte]](), reflect.TypeFor[engine.Event[byte]]()},
		{reflect.TypeFor[engine.Object[string]](), reflect.TypeFor[engine.Event[string]]()},
		{reflect.TypeFor[engine.Object[large]](), reflect.TypeFor[engine.Event[large]]()},
		{reflect.TypeFor[engine.Object[*large]](), reflect.TypeFor[engine.Event[*large]]()},
		{reflect.TypeFor[engine.Object[any]](), reflect.TypeFor[engine.Event[any]]()},
		{reflect.TypeFor[engine.Object[fmt.Stringer]](), reflect.TypeFor[engine.Event[fmt.Stringer]]()},
		{reflect.TypeFor[engine.Object[[0]uint64]](), reflect.TypeFor[engine.Event[[0]uint64]]()},
		{reflect.TypeFor[engine.Object[[3]byte]](), reflect.TypeFor[engine.Event[[3]byte]]()},
		{reflect.TypeFor[engine.Object[func()]](), reflect.TypeFor[engine.Event[func()]]()},
		{reflect.TypeFor[engine.Object[complex128]](), reflect.TypeFor[engine.Event[complex128]]()},
	} {
		t.Run(fmt.Sprint(pair[0]), func(t *testing.T) {
			object, event := pair[0], pair[1]
			header, untyped := reflect.TypeFor[store.Object](), reflect.TypeFor[store.Event]()
			require.Equal(t, header.NumField()+1, object.NumField())
			for i := range header.NumField() {
				requireSamePlace(t, header.Field(i), object.Field(i))
				require.Equal(t, header.Field(i).Type, object.Field(i).Type)
			}
			value := object.Field(header.NumField())
			require.Equal(t, "Value", value.Name)
			require.GreaterOrEqual(t, value.Offset, header.Size(), "the value lies behind the header")
			require.Less(t, value.Offset, object.Size(), "a pointer to the value points into the object, also to one of no size")
			require.LessOrEqual(t, header.Align(), object.Align())

			require.Equal(t, untyped.Size(), event.Size())
			require.Equal(t, untyped.Align(), event.Align())
			require.Equal(t, untyped.NumField(), event.NumField())
			for i := range untyped.NumField() {
				requireSamePlace(t, untyped.Field(i), event.Field(i))
				require.Equal(t, untyped.Field(i).Type.Kind(), event.Field(i).Type.Kind())
			}
			require.Equal(t, object, event.Field(3).Type.Elem(), "Object")
			require.Equal(t, object, event.Field(4).Type.Elem(), "Prev")
		})
	}
}

func requireSamePlace(t *testing.T, a, b reflect.StructField) {
	t.Helper()
	require.Equal(t, a.Name, b.Name)
	require.Equal(t, a.Offset, b.Offset, a.Name)
	require.Equal(t, a.Type.Size(), b.Type.Size(), a.Name)
}

// Values of every kind of type come out of an engine as they went in, by every
// way out. Under the race detector the compiler checks each pointer conversion.
func TestObject_ValuesOfEveryKindOfType(t *testing.T) {
	t.Run("struct{}", func(t *testing.T) { testValues(t, func(int) struct{} { return struct{}{} }) })
	t.Run("byte", func(t *testing.T) { testValues(t, func(n int) byte { return byte(n) }) })
	t.Run("string", func(t *testing.T) { testValues(t, func(n int) string { return fmt.Sprint("text ", n) }) })
	t.Run("large struct", func(t *testing.T) { testValues(t, newLarge) })
	t.Run("pointer", func(t *testing.T) { testValues(t, func(n int) *large { l := newLarge(n); return &l }) })
	t.Run("nil pointer", func(t *testing.T) { testValues(t, func(int) *large { return nil }) })
	t.Run("interface", func(t *testing.T) { testValues(t, func(n int) any { return []any{n, nil, newLarge(n)}[n%3] }) })
	t.Run("array of none", func(t *testing.T) { testValues(t, func(int) [0]uint64 { return [0]uint64{} }) })
	t.Run("odd array", func(t *testing.T) { testValues(t, func(n int) [3]byte { return [3]byte{1, byte(n), 3} }) })
	t.Run("slice", func(t *testing.T) { testValues(t, func(n int) []int { return make([]int, n) }) })
}

// testValues writes three values under one key, and demands to see each by
// every way out.
func testValues[T any](t *testing.T, value func(n int) T) {
	ctx := t.Context()
	e, err := engine.New(engine.Config[T]{
		Key:             func(T) string { return "k" },
		Labels:          func(T) labels.Set { return labels.Set{"a": "b"} },
		Fields:          engine.Fields[T]{"x": func(T) string { return "y" }},
		Equal:           func(T, T) bool { return false }, // every write is a change
		FirstRevision:   1,
		DetectMutations: true,
		OnError:         func(err error) { t.Error(err) },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.WaitForRevision(ctx, 1))
	byNext, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	byEvents, err := e.Watch(ctx, engine.WatchOptions{Fields: "x=y", Labels: "a=b"})
	require.NoError(t, err)
	byChan, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	handled := make(chan engine.Event[T], 4)
	_, err = e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[T]) { handled <- ev })
	require.NoError(t, err)

	first, err := revisionOf(e.Create(ctx, value(1)))
	require.NoError(t, err)
	second, err := revisionOf(e.Put(ctx, value(2)))
	require.NoError(t, err)
	updated, err := e.Update(ctx, "k", func(was T) (T, error) {
		require.Equal(t, value(2), was)
		return value(3), nil
	}, engine.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, value(3), updated.Value)
	for rev, n := range map[engine.Revision]int{first: 1, second: 2, updated.Revision: 3} {
		o, err := e.Get(ctx, "k", engine.GetOptions{Read: engine.Exactly(rev)})
		require.NoError(t, err)
		require.Equal(t, value(n), o.Value)
		l, err := e.List(ctx, engine.ListOptions{Read: engine.Exactly(rev)})
		require.NoError(t, err)
		require.Len(t, l.Items, 1)
		require.Equal(t, value(n), l.Items[0].Value)
		require.Equal(t, []string{"y"}, l.Items[0].Fields)
	}
	last, err := e.Delete(ctx, "k", engine.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, value(3), last.Value)

	var seen []engine.Event[T]
	for len(seen) < 4 {
		events, err := byNext.Next(ctx)
		require.NoError(t, err)
		seen = append(seen, events...)
	}
	requireHistory(t, seen, value)
	requireHistory(t, firstFour(ctx, t, byEvents), value)
	requireHistory(t, receive(byChan.Chan()), value)
	requireHistory(t, receive(handled), value)
	byChan.Stop()
}

func firstFour[T any](ctx context.Context, t *testing.T, w *engine.Watch[T]) (seen []engine.Event[T]) {
	for ev, err := range w.Events() {
		require.NoError(t, err)
		if seen = append(seen, ev); len(seen) == 4 {
			break
		}
	}
	return seen
}

func receive[T any](from <-chan engine.Event[T]) (seen []engine.Event[T]) {
	for range 4 {
		seen = append(seen, <-from)
	}
	return seen
}

// requireHistory demands that three values came one after the other, then the
// deletion.
func requireHistory[T any](t *testing.T, seen []engine.Event[T], value func(n int) T) {
	t.Helper()
	require.Equal(t, []string{"ADDED k@2", "MODIFIED k@3", "MODIFIED k@4", "DELETED k@5"}, names(seen))
	for i, n := range []int{1, 2, 3, 3} {
		require.Equal(t, value(n), seen[i].Object.Value)
		require.Equal(t, labels.Set{"a": "b"}, seen[i].Object.Labels.Set())
		if i > 0 {
			require.Equal(t, value(i), seen[i].Prev.Value)
		}
	}
}
