package encode_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/encode"
)

// Widget is a kind whose specifications count how often they are encoded.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

type Spec struct{ Size int }

var encoded atomic.Int32

func (s Spec) MarshalJSON() ([]byte, error) {
	encoded.Add(1)
	return fmt.Appendf(nil, `{"size":%d}`, s.Size), nil
}

func newStore(t *testing.T) *registry.Store[Widget] {
	t.Helper()
	all, err := registry.New(registry.Config[Widget]{
		Kind:    registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Apply:   apply.New,
		Columns: []registry.Column[Widget]{{Name: "Size", Type: "integer", Value: func(w *Widget) any { return w.Spec.Size }}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, all.Close()) })
	return all
}

// widgets returns a resource with so many widgets, w0 and so on, and these as items.
func widgets(t *testing.T, n int) (registry.Resource, []registry.Item) {
	t.Helper()
	all := newStore(t)
	resource, items := all.Resources()[0], []registry.Item(nil)
	for i := range n {
		name := fmt.Sprint("w", i)
		_, err := all.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: Spec{i}}, registry.WriteOptions{Manager: "test"})
		require.NoError(t, err)
		item, err := resource.Get(t.Context(), "default/"+name, engine.GetOptions{Read: engine.Latest()})
		require.NoError(t, err)
		items = append(items, item)
	}
	return resource, items
}

// All readers of a state share its bytes, also those that come while these are made.
func TestCache_EncodesAStateOnce(t *testing.T) {
	_, items := widgets(t, 1)
	c := encode.NewCache(1 << 20)
	before := encoded.Load()
	texts := make([][]byte, 20)
	var all sync.WaitGroup
	for i := range texts {
		read := c.ForEvent
		if i%2 == 0 {
			read = c.ForRead
		}
		all.Go(func() { texts[i], _ = read(encode.State{Item: items[0]}) })
	}
	all.Wait()
	require.EqualValues(t, 1, encoded.Load()-before)
	for _, text := range texts {
		require.Contains(t, string(text), `"spec":{"size":0}`)
		require.Same(t, &texts[0][0], &text[0])
	}
	hits, misses, bytes := c.Stats()
	require.Equal(t, []uint64{19, 1}, []uint64{hits, misses})
	require.Greater(t, bytes, len(texts[0]))
}

// Reads fill no more than half of a cache. Events replace the oldest above all of it.
func TestCache_IsBounded(t *testing.T) {
	const limit = 5000
	_, items := widgets(t, 40)
	c := encode.NewCache(limit)
	for _, item := range items {
		_, err := c.ForRead(encode.State{Item: item})
		require.NoError(t, err)
	}
	_, _, bytes := c.Stats()
	require.True(t, bytes > limit/3 && bytes < limit*2/3, bytes)
	for _, item := range items {
		_, err := c.ForEvent(encode.State{Item: item})
		require.NoError(t, err)
	}
	_, _, bytes = c.Stats()
	require.True(t, bytes > limit/2 && bytes <= limit, bytes)
	before := encoded.Load()
	for _, i := range []int{0, len(items) - 1} {
		_, err := c.ForRead(encode.State{Item: items[i]})
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, encoded.Load()-before, "the newest is there")
}

// Each form of an object has bytes of its own.
func TestState_Forms(t *testing.T) {
	_, items := widgets(t, 1)
	for state, want := range map[encode.State][3]bool{
		{Item: items[0]}: {true, true, false},
		{Item: items[0], Form: accept.Form{Lean: true}}:                        {true, false, false},
		{Item: items[0], Form: accept.Form{Shape: accept.Partial}}:             {false, true, true},
		{Item: items[0], Form: accept.Form{Shape: accept.Partial, Lean: true}}: {false, false, true},
	} {
		text, err := state.Encode()
		require.NoError(t, err)
		has := func(what string) bool { return strings.Contains(string(text), what) }
		require.Equal(t, want, [3]bool{has(`"spec"`), has(`"managedFields"`), has(encode.PartialKind)}, string(text))
	}
}

// The items of a list have no kind of their own, and those of a table are its rows.
func TestList_ItemsAreAsItsKindSays(t *testing.T) {
	resource, items := widgets(t, 2)
	info, c := resource.Info(), encode.NewCache(1<<20)
	whole := func(head []byte, item func(registry.Item) ([]byte, error)) (list map[string]any) {
		t.Helper()
		text := string(head)
		for i, one := range items {
			encoded, err := item(one)
			require.NoError(t, err)
			text += strings.Repeat(",", min(i, 1)) + string(encoded)
		}
		require.NoError(t, json.Unmarshal([]byte(text+"]}"), &list))
		return list
	}
	for as, kind := range map[accept.Shape]string{accept.Whole: "WidgetList", accept.Partial: "PartialObjectMetadataList"} {
		head, item, err := c.List(info, accept.Form{Shape: as}, metav1.ListMeta{ResourceVersion: "7"})
		require.NoError(t, err)
		list := whole(head, item)
		require.Equal(t, kind, list["kind"])
		require.Equal(t, "7", list["metadata"].(map[string]any)["resourceVersion"])
		for _, one := range list["items"].([]any) {
			require.NotContains(t, one, "kind")
			require.Contains(t, one, "metadata")
		}
	}
	table, err := c.Table(info, "None", accept.Form{Shape: accept.Table})
	require.NoError(t, err)
	head, err := table.Head(metav1.ListMeta{}, true)
	require.NoError(t, err)
	rows := whole(head, table.Row)["rows"].([]any)
	require.Len(t, rows, 2)
	require.Equal(t, []any{"w1", 1.0}, rows[1].(map[string]any)["cells"].([]any)[:2])
	_, err = c.Table(info, "All", accept.Form{Shape: accept.Table})
	require.ErrorContains(t, err, "includeObject")
}

// The last column is the age. It is not known of an object without a time, as a backend may have.
func TestTable_RowsHaveAnAge(t *testing.T) {
	all := newStore(t)
	resource := all.Resources()[0]
	table, err := encode.NewCache(1<<20).Table(resource.Info(), "None", accept.Form{Shape: accept.Table})
	require.NoError(t, err)
	head, err := table.Head(metav1.ListMeta{}, true)
	require.NoError(t, err)
	require.Contains(t, string(head), `"name":"Age"`)
	for want, created := range map[string]metav1.Time{"3d4h": metav1.NewTime(time.Now().Add(-76 * time.Hour)), "unknown": {}} {
		o, err := all.Engine().Put(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", CreationTimestamp: created}})
		require.NoError(t, err)
		item, err := resource.Get(t.Context(), o.Key, engine.GetOptions{Read: engine.Latest()})
		require.NoError(t, err)
		row, err := table.Row(item)
		require.NoError(t, err)
		require.Contains(t, string(row), want)
	}
}

// Watches share the bytes of the objects in their tables, however full the cache is.
func TestTable_OfEventsEncodesAnObjectOnce(t *testing.T) {
	resource, items := widgets(t, 20)
	c := encode.NewCache(1000)
	for _, item := range items[1:] {
		_, err := c.ForEvent(encode.State{Item: item})
		require.NoError(t, err)
	}
	encodings := func(tableOf func(*registry.Info, string, accept.Form) (*encode.Table, error)) int32 {
		before := encoded.Load()
		for range 2 {
			table, err := tableOf(resource.Info(), "Object", accept.Form{Shape: accept.Table})
			require.NoError(t, err)
			_, err = table.Row(items[0])
			require.NoError(t, err)
		}
		return encoded.Load() - before
	}
	require.EqualValues(t, 2, encodings(c.Table), "a read keeps nothing now")
	require.EqualValues(t, 1, encodings(c.EventTable))
	_, err := c.EventTable(resource.Info(), "All", accept.Form{Shape: accept.Table})
	require.ErrorContains(t, err, "includeObject")
}
