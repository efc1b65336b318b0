package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// notes is an engine of texts, whose keys cannot follow from them.
func notes(t *testing.T, change func(*engine.Config[string])) *engine.Engine[string] {
	c := engine.Config[string]{FirstRevision: 1, FreshnessTimeout: patience}
	if change != nil {
		change(&c)
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.WaitForRevision(t.Context(), 1))
	return e
}

// Without Config.Key the key is given together with the value.
func TestKeys_GivenBesideTheValue(t *testing.T) {
	for name, change := range map[string]func(*engine.Config[string]){
		"cache": nil, "no cache": func(c *engine.Config[string]) { c.NoCache = true },
		"detecting mutations": func(c *engine.Config[string]) { c.DetectMutations = true },
	} {
		t.Run(name, func(t *testing.T) {
			e, ctx := notes(t, change), t.Context()
			put := func(key, text string, p engine.Preconditions) (*engine.Object[string], error) {
				return e.PutWith(ctx, text, engine.PutOptions{Key: key, Preconditions: p})
			}
			w, err := e.Watch(ctx, engine.WatchOptions{Prefix: "lists"})
			require.NoError(t, err)
			created, err := put("lists/food", "bread", engine.Preconditions{Absent: true})
			require.NoError(t, err)
			require.Equal(t, "lists/food", created.Key)
			_, err = put("lists/food", "milk", engine.Preconditions{Absent: true})
			require.ErrorIs(t, err, engine.ErrExists)
			replaced, err := put("lists/food", "milk", engine.Preconditions{Revision: created.Revision})
			require.NoError(t, err)
			_, err = put("lists/food", "eggs", engine.Preconditions{Revision: created.Revision})
			require.ErrorIs(t, err, engine.ErrConflict)
			_, err = put("lists/books", "Go", engine.Preconditions{})
			require.NoError(t, err)
			same, err := put("lists/food", "milk", engine.Preconditions{})
			require.NoError(t, err)
			require.Equal(t, replaced, same, "an equal value writes nothing")
			_, err = e.Update(ctx, "lists/food", func(s string) (string, error) { return s + ", bread", nil }, engine.UpdateOptions{})
			require.NoError(t, err)
			gone, err := e.Modify(ctx, "lists/books", func(*engine.Object[string]) (engine.Change[string], error) {
				return engine.Change[string]{Delete: true}, nil
			}, engine.ModifyOptions{})
			require.NoError(t, err)
			o, err := e.Get(ctx, "lists/food", engine.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, "milk, bread", o.Value)
			var seen []string
			for ev, err := range w.Events() {
				require.NoError(t, err)
				seen = append(seen, ev.String())
				if ev.Revision == gone.Revision {
					break
				}
			}
			require.Equal(t, []string{
				"ADDED lists/food@2", "MODIFIED lists/food@3", "ADDED lists/books@4", "MODIFIED lists/food@5", "DELETED lists/books@6",
			}, seen)
		})
	}
}

func TestKeys_OfWritesWithoutRoomForOne(t *testing.T) {
	e, ctx := notes(t, nil), t.Context()
	_, create := e.Create(ctx, "a")
	_, put := e.Put(ctx, "a")
	_, replace := e.Replace(ctx, "a", 1)
	_, emit := e.Emit(ctx, "a")
	for call, err := range map[string]error{"Create": create, "Put": put, "Replace": replace, "Emit": emit} {
		t.Run(call, func(t *testing.T) {
			wanted{usercode.ErrConfig, []string{": Key is nil", "PutOptions.Key"}}.require(t, err)
		})
	}
	_, err := e.PutWith(ctx, "a", engine.PutOptions{Key: "/"})
	require.ErrorIs(t, err, engine.ErrInvalidKey)
	pods, _ := newEngine(t, nil)
	_, err = pods.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{Key: "b"})
	wanted{engine.ErrInvalidKey, []string{`"a"`, `"b"`}}.require(t, err)
	_, err = pods.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{Key: "b//"})
	var invalid *engine.KeyError
	require.ErrorAs(t, err, &invalid, "it cannot be a value's")
	require.Equal(t, "b//", invalid.Key)
	_, err = pods.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{Key: "a"})
	require.NoError(t, err, "the value's own key")
}
