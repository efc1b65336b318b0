package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

// sizeOf is a value's size as its first measurement.
func sizeOf[T any](v T) int { return store.SizeOf(reflect.TypeFor[T]())(&v) }

type small struct {
	Name, Node string
	Replicas   int
}

// large has all that a value can point to.
type large struct {
	Name    string
	Raw     []byte
	Owner   *small
	Labels  map[string]string
	Parts   []small
	Any     any
	Ports   [3]string
	Next    *large
	Ready   chan bool
	Do      func()
	Since   time.Time
	private map[int][]string
	Nested  map[string]map[string][]byte
}

func newLarge(n int) large {
	text := func(i int) string { return strings.Clone(fmt.Sprintf("text number %08d", i)) }
	v := large{
		Name: text(n), Raw: make([]byte, 300), Owner: &small{Name: text(1), Node: text(2)},
		Labels: map[string]string{}, Any: &small{Name: text(3)}, Ports: [3]string{text(4), text(5), text(6)},
		Next: &large{Name: text(7)}, Since: time.Now(), private: map[int][]string{}, Nested: map[string]map[string][]byte{},
	}
	for i := range 20 {
		v.Labels[text(i)] = text(i + 1)
		v.Parts = append(v.Parts, small{Name: text(i), Node: text(i)})
		v.private[i] = []string{text(i), text(i)}
	}
	v.Nested["a"] = map[string][]byte{text(1): make([]byte, 100)}
	return v
}

// What is estimated for many values is what the heap holds more with them.
// Strings are longer than 8 bytes: the race detector takes more for shorter ones.
func TestSizeOf_IsTrueOfTheHeap(t *testing.T) {
	for name, c := range map[string]struct {
		value func(n int) any // a pointer to a value
		of    reflect.Type
	}{
		"strings":    {func(n int) any { return &small{Name: strings.Repeat("x", 50+n%10), Node: strings.Clone("node-0001")} }, reflect.TypeFor[small]()},
		"everything": {func(n int) any { v := newLarge(n); return &v }, reflect.TypeFor[large]()},
		"map": {func(n int) any {
			m := map[string]int{}
			for i := range 5 + n%40 {
				m[fmt.Sprintf("key-%06d", i)] = i
			}
			return &m
		}, reflect.TypeFor[map[string]int]()},
		"bytes":     {func(n int) any { v := make([]byte, 10_000+n); return &v }, reflect.TypeFor[[]byte]()},
		"pointer":   {func(n int) any { p := &small{Name: strings.Repeat("x", n%100)}; return &p }, reflect.TypeFor[*small]()},
		"interface": {func(n int) any { var v any = small{Name: strings.Repeat("x", n%100)}; return &v }, reflect.TypeFor[any]()},
		"list": {func(n int) any {
			var v *large
			for range 10 {
				v = &large{Next: v, Raw: make([]byte, n%500)}
			}
			return &v
		}, reflect.TypeFor[*large]()},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 5000 // what the runtime itself takes is little beside them
			values := make([]any, n)
			before := heapNow()
			for i := range values {
				values[i] = c.value(i * 263 % n)
			}
			grown := heapNow() - before
			size, estimated := store.SizeOf(c.of), 0
			for _, v := range values {
				estimated += size(v)
			}
			runtime.KeepAlive(values)
			require.InEpsilon(t, grown, estimated, 0.2)
		})
	}
}

// heapNow returns the bytes that are in use after a collection.
func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// All of a document that fits into a request is measured, and in a larger one no part counts as a whole
// branch, so that the estimate does not grow with each level. The parts that are visited first are like
// the rest only if the branches are alike.
func TestSizeOf_OfDocumentsIsNotFarFromTheHeap(t *testing.T) {
	for name, c := range map[string]struct {
		texts      int
		most       float64
		least, top float64 // of what the heap holds more
	}{
		"large":                 {texts: 50_000, most: 0.75, least: 0.8, top: 1.2},
		"large, deep":           {texts: 10_000, most: 0.97, least: 0.8, top: 1.2},
		"too large":             {texts: 200_000, least: 0.5, top: 2},
		"too large, one branch": {texts: 200_000, most: 0.97, least: 0.1, top: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			before := heapNow()
			value := document(r, c.texts, c.most)
			grown := float64(heapNow() - before)
			estimated := float64(sizeOf(value))
			runtime.KeepAlive(value)
			require.Greater(t, estimated, c.least*grown)
			require.Less(t, estimated, c.top*grown)
		})
	}
}

// document returns what JSON of so many texts may be decoded to. One field of each object has most of
// them, and the others have the same of the rest.
func document(r *rand.Rand, texts int, most float64) any {
	if texts <= 1 {
		return strings.Repeat("x", 10+r.IntN(50))
	}
	fields := map[string]any{}
	n := min(texts, 2+r.IntN(6))
	heavy := int(most * float64(texts))
	for i := range n {
		of := (texts - heavy) / n
		if i == n/2 {
			of += heavy
		}
		fields[fmt.Sprintf("field-%d", i)] = document(r, of, most)
	}
	return fields
}

func TestSizeOf_FollowsWhatValuesPointTo(t *testing.T) {
	require.Equal(t, 8, sizeOf(uint64(7)))
	require.Equal(t, 0, sizeOf(struct{}{}))
	require.Equal(t, int(reflect.TypeFor[time.Time]().Size()), sizeOf(time.Now()), "locations are shared")
	text := int(reflect.TypeFor[string]().Size())
	require.Equal(t, text, sizeOf(""))
	require.Equal(t, text+1024, sizeOf(strings.Repeat("x", 1000)), "what the allocator takes for it")
	require.Greater(t, sizeOf([]string{"long enough to count", "and another"}), sizeOf([]string{"", ""}))
	require.Less(t, sizeOf(map[string]string(nil)), 9)
	var nothing any
	require.Equal(t, 2*text/2, sizeOf(nothing))
	require.Equal(t, sizeOf[any](small{Name: "name"}), sizeOf[any](small{Name: "name"}))
}

// However large, deep or circular a value is, a bounded part of it is looked at,
// and the rest counts like that.
func TestSizeOf_IsBounded(t *testing.T) {
	many := make([]string, 1_000_000)
	for i := range many {
		many[i] = "0123456789abcdef"
	}
	text := int(reflect.TypeFor[string]().Size())
	require.InEpsilon(t, len(many)*(text+16), sizeOf(many), 0.1)

	circle := &large{Name: "around"}
	circle.Next = circle
	require.Positive(t, sizeOf(circle))

	type tree struct{ Left, Right any }
	deep := &tree{}
	for range 100_000 {
		deep = &tree{Left: deep, Right: deep}
	}
	require.Positive(t, sizeOf(deep))

	large := map[int][]byte{}
	for i := range 10_000 {
		large[i] = make([]byte, 100)
	}
	require.InEpsilon(t, 10_000*(112+32+1)*1.5, sizeOf(large), 0.4)
}

type (
	twice[T any]        struct{ A, B *T }
	twiceFour[T any]    = twice[twice[twice[twice[T]]]]
	twiceSixteen[T any] = twiceFour[twiceFour[twiceFour[twiceFour[T]]]]
)

// In each of 32 types two pointers lead to the next one, so there are 2^32 ways to the
// last.
func TestSizeOf_IsBoundedWherePointersMeetAgain(t *testing.T) {
	var types []reflect.Type
	for of := reflect.TypeFor[twiceSixteen[twiceSixteen[small]]](); of.Field(0).Type.Kind() == reflect.Pointer; of = of.Field(0).Type.Elem() {
		types = append(types, of)
	}
	require.Len(t, types, 32)
	value := reflect.ValueOf(&small{Name: strings.Repeat("x", 1000)})
	for _, of := range slices.Backward(types) {
		next := reflect.New(of)
		next.Elem().Field(0).Set(value)
		next.Elem().Field(1).Set(value)
		value = next
	}
	require.Positive(t, store.SizeOf(types[0])(value.Interface()))
}

// Between the values that are measured in full, those parts count as much as they
// had on average, and strings of the value itself as what they are.
func TestSizeOf_SamplesCostlyParts(t *testing.T) {
	type annotated struct {
		Name  string
		Notes map[string]string
	}
	size := store.SizeOf(reflect.TypeFor[annotated]())
	of := func(name, note int) int {
		return size(&annotated{strings.Repeat("x", name), map[string]string{"note": strings.Repeat("y", note)}})
	}
	first := of(0, 1024)
	for range 200 {
		require.Equal(t, first, of(0, 1024))
	}
	require.Equal(t, first+1024, of(1024, 1024), "a string of its own is always measured")
	total := 0
	for range 1600 {
		total += of(0, 4096)
	}
	require.InEpsilon(t, 1600*(first+3072), total, 0.4, "what grows is noticed")
}

func TestSizeOf_DoesNotAllocateForPlainValues(t *testing.T) {
	size := store.SizeOf(reflect.TypeFor[small]())
	v := &small{Name: "a", Node: "b"}
	require.Zero(t, testing.AllocsPerRun(100, func() { size(v) }))
}

func ExampleSizeOf() {
	type pod struct{ Name, Image string }
	size := store.SizeOf(reflect.TypeFor[pod]())
	before := size(&pod{Name: "web-1"})
	fmt.Println(size(&pod{Name: "web-1", Image: strings.Repeat("x", 64)}) - before)
	// Output: 64
}

func BenchmarkSizeOf(b *testing.B) {
	s, l := &small{Name: "web-1", Node: "node-7"}, newLarge(1)
	for name, c := range map[string]struct {
		of    reflect.Type
		value any
	}{"small": {reflect.TypeFor[small](), s}, "large": {reflect.TypeFor[large](), &l}} {
		b.Run(name, func(b *testing.B) {
			size := store.SizeOf(c.of)
			b.ReportAllocs()
			for b.Loop() {
				size(c.value)
			}
		})
	}
}
