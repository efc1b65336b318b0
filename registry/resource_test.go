package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

func body(t *testing.T, it registry.Item) string {
	t.Helper()
	text, err := it.JSON()
	require.NoError(t, err)
	return string(text)
}

// ahead is storage whose newest revision a cache over it never learns of.
type ahead struct {
	backend.Backend
	newest engine.Revision

	mu  sync.Mutex
	err error
}

func (a *ahead) Revision(context.Context) (engine.Revision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newest, a.err
}

// WaitFor for a revision that the cache does not have is ErrNotReady if storage has the
// revision or does not answer, and ErrFuture if storage does not have it either. A refusal
// is returned.
func TestResource_WaitForTellsACacheThatIsBehindFromTheFuture(t *testing.T) {
	cfg := config()
	there, err := memory.New(registry.Schema(cfg), memory.Options{FirstRevision: 10})
	require.NoError(t, err)
	a := &ahead{Backend: there, newest: 20}
	cfg.Engine.Backend, cfg.Engine.FreshnessTimeout = a, time.Millisecond
	r := open(t, cfg).Resources()[0]
	require.Eventually(t, func() bool { return r.WaitFor(t.Context(), 10) == nil }, time.Minute, time.Millisecond)
	become := func(rev engine.Revision, text string) {
		require.Eventually(t, func() bool { return strings.Contains(r.WaitFor(t.Context(), rev).Error(), text) }, time.Minute, time.Millisecond, text)
	}
	become(21, "too large revision: 21")
	require.ErrorIs(t, r.WaitFor(t.Context(), 20), engine.ErrNotReady)
	become(20, "storage is at revision 20, and the cache is behind")
	a.mu.Lock()
	a.err = errors.New("unplugged")
	a.mu.Unlock()
	become(21, "unplugged")
	a.mu.Lock()
	a.err = fmt.Errorf("%w: read widgets", backend.ErrDenied)
	a.mu.Unlock()
	require.Eventually(t, func() bool {
		err := r.WaitFor(t.Context(), 21)
		return errors.Is(err, backend.ErrDenied) && !errors.Is(err, engine.ErrNotReady)
	}, time.Minute, time.Millisecond, "the client is not to come back")
}

// Without a cache there is nothing that could be behind, and storage is asked at once.
func TestResource_WaitForWithoutACacheAsksStorage(t *testing.T) {
	cfg := config()
	cfg.Engine.NoCache = true
	s := open(t, cfg)
	o := create(t, s, widget("a", 1))
	r := s.Resources()[0]
	require.NoError(t, r.WaitFor(t.Context(), 0))
	require.NoError(t, r.WaitFor(t.Context(), o.Revision))
	require.ErrorIs(t, r.WaitFor(t.Context(), o.Revision+1000), engine.ErrFuture)
}

func TestResource_BodiesAreDecodedByTheRules(t *testing.T) {
	s := open(t, config())
	r := s.Resources()[0]
	post := func(text string, opts registry.WriteOptions) (registry.Item, error) {
		return r.Create(t.Context(), "default", []byte(text), opts)
	}
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	it, err := post(`{"metadata":{"name":"a"},"spec":{"size":2000,"colour":"x","size":2000}}`, opts)
	require.NoError(t, err)
	require.Equal(t, "default/a", it.Key())
	require.Equal(t, []string{`duplicate field "spec.size"`, "this is large", `unknown field "spec.colour"`}, sorted(warnings))
	text := body(t, it)
	require.JSONEq(t, `{"size":2000,"color":"grey"}`, part(t, text, "spec"))
	require.Contains(t, text, `"resourceVersion":"`+it.Revision().String()+`"`)
	require.Contains(t, text, `"apiVersion":"example.com/v1"`)
	require.Equal(t, []any{2000}, it.AppendCells(nil))

	strict := registry.WriteOptions{Validation: registry.RefuseUnknown}
	refused := map[string]registry.WriteOptions{
		`{"metadata":{"name":"b"},"spec":{"colour":"x"}}`:         strict,
		`{"metadata":{"name":"b"},"spec":{"size":"big"}}`:         {},
		`{"metadata":{"name":"b","namespace":"other"}}`:           {},
		`{"kind":"Gadget","metadata":{"name":"b"}}`:               {},
		`{"apiVersion":"example.com/v2","metadata":{"name":"b"}}`: {},
		`{"apiVersion":"example.com/","metadata":{"name":"b"}}`:   {},
		`{"apiVersion":"a/b/c","metadata":{"name":"b"}}`:          {},
		`[]`:           {},
		`{"metadata":`: {},
		strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101):          {},
		`{"metadata":{"name":"b","labels":{"a":1}}}`:                           {},
		`{"metadata":{"name":"b"},"spec":{"size":99999999999999999999999999}}`: {},
	}
	for text, opts := range refused {
		_, err := post(text, opts)
		require.ErrorAs(t, err, new(*registry.BadRequestError), text)
	}
	_, err = post(`{"metadata":{"name":"b"},"spec":{"size":1,"colour":"x"}}`, registry.WriteOptions{Validation: registry.IgnoreUnknown})
	require.NoError(t, err)
}

// Only brackets outside of strings nest, wherever a string ends.
func TestResource_BracketsInStringsAreNotNested(t *testing.T) {
	r := open(t, config()).Resources()[0]
	many := strings.Repeat("[", 200)
	for name, text := range map[string]string{"a": many, "b": `\"` + many, "c": many + `\\`, "d": `\\\"` + many} {
		_, err := r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"`+name+`","annotations":{"text":"`+text+`"}}}`), registry.WriteOptions{})
		require.NoError(t, err, text)
	}
	for _, text := range []string{`\"`, `\\`} {
		deep := `{"metadata":{"name":"e","annotations":{"text":"` + text + `"}},"other":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + "}"
		_, err := r.Create(t.Context(), "default", []byte(deep), registry.WriteOptions{})
		require.ErrorContains(t, err, "nested more than 100 deep", text)
	}
}

// Lists and objects side by side are not nested, however many.
func TestResource_WideBodiesAreNotNested(t *testing.T) {
	r := open(t, config()).Resources()[0]
	for name, one := range map[string]string{"a": `{}`, "b": `[]`} {
		wide := `{"metadata":{"name":"` + name + `"},"other":[` + strings.TrimSuffix(strings.Repeat(one+",", 1000), ",") + `]}`
		_, err := r.Create(t.Context(), "default", []byte(wide), registry.WriteOptions{})
		require.NoError(t, err, one)
	}
}

// The parser puts the names of the fields around together for each field that is there twice, also where
// nothing is told of it: a body has room for one name of a megabyte and for many fields below it.
func TestResource_FieldsOfLongNamesAreRefused(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: config().Kind})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := s.Resources()[0]
	var repeated strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&repeated, `"a%d":1,"a%d":1,`, i, i)
	}
	spec := `{"` + strings.Repeat("long", 1<<16) + `":{` + repeated.String() + `"b":1}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":`+spec+`}`), registry.WriteOptions{Validation: registry.IgnoreUnknown})
	runtime.ReadMemStats(&after)
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	require.ErrorContains(t, err, "more than 16777216 bytes")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20))
	_, err = r.Info().ParsePatch(registry.MergePatch, []byte(`{"spec":`+spec+`}`))
	require.ErrorContains(t, err, "more than 16777216 bytes")

	half := strings.Repeat("n", 8<<10)
	for text, refused := range map[string]bool{
		`{"` + half + `":{"` + half + `":1}}`: false, `[{"` + half + half + `":[{` + repeated.String() + `"b":{}}]}]`: true,
		`{"` + half + `":{"a":1},"x` + half + `":{"b":[{"c":1},{"d":1}]}}`: false, `{"a":"` + half + half + half + `","b":{"c":1}}`: false,
		`{"a":"\"` + half + half + `\\","b":1}`: false,
	} {
		_, err := r.Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"a-"},"spec":`+text+`}`), registry.WriteOptions{})
		require.Equal(t, refused, err != nil, "%.20s: %.200v", text, err)
	}
}

func TestResource_PatchesAreAppliedToTheLiveObject(t *testing.T) {
	s := open(t, config())
	create(t, s, widget("a", 1))
	r := s.Resources()[0]
	patch := func(r registry.Resource, kind registry.PatchType, text string) (registry.Item, error) {
		return patchA(t, r, kind, text)
	}
	it, err := patch(r, registry.MergePatch, `{"metadata":{"labels":{"app":"web"}},"spec":{"size":7},"status":{"phase":"No"}}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"size":7,"color":"grey"}`, part(t, body(t, it), "spec"))
	require.JSONEq(t, `{}`, part(t, body(t, it), "status"))
	it, err = patch(s.Resources()[1], registry.JSONPatch, `[{"op":"add","path":"/status","value":{"phase":"Ready"}},{"op":"replace","path":"/spec/size","value":0}]`)
	require.NoError(t, err)
	require.JSONEq(t, `{"phase":"Ready"}`, part(t, body(t, it), "status"))
	require.JSONEq(t, `{"size":7,"color":"grey"}`, part(t, body(t, it), "spec"))
	_, err = patch(r, registry.JSONPatch, `[{"op":"test","path":"/spec/size","value":1}]`)
	require.ErrorAs(t, err, new(*registry.PatchError))
	_, err = patch(r, registry.MergePatch, `{"metadata":{"resourceVersion":"1"},"spec":{"size":8}}`)
	if err != nil { // 1 may be the revision of the object
		require.ErrorIs(t, err, engine.ErrConflict)
	}
}

// RFC 6902 allows neither, and Kubernetes both.
func TestPatch_OperationsMayReplaceWhatIsMissingAndCountFromTheEnd(t *testing.T) {
	for operation, want := range map[string]string{
		`{"op":"replace","path":"/b","value":1}`:          `{"a":{"0":1},"b":1,"l":[1,2,3]}`,
		`{"op":"replace","path":"/a/b~1c~0","value":[1]}`: `{"a":{"0":1,"b/c~":[1]},"l":[1,2,3]}`,
		`{"op":"replace","path":"/b","value":null}`:       `{"a":{"0":1},"b":null,"l":[1,2,3]}`,
		`{"op":"replace","path":"/a","value":1}`:          `{"a":1,"l":[1,2,3]}`,
		`{"op":"replace","path":"/a/0","value":2}`:        `{"a":{"0":2},"l":[1,2,3]}`,
		`{"op":"replace","path":"/l/1","value":9}`:        `{"a":{"0":1},"l":[1,9,3]}`,
		`{"op":"replace","path":"/l/-1","value":9}`:       `{"a":{"0":1},"l":[1,2,9]}`,
		`{"op":"replace","path":"","value":{"c":1}}`:      `{"c":1}`,
		`{"op":"remove","path":"/l/-3"}`:                  `{"a":{"0":1},"l":[2,3]}`,
		`{"op":"add","path":"/l/-1","value":4}`:           `{"a":{"0":1},"l":[1,2,3,4]}`,
		`{"op":"test","path":"/l/-1","value":3}`:          `{"a":{"0":1},"l":[1,2,3]}`,
		`{"op":"replace","path":"/none/deep","value":1}`:  "",
		`{"op":"replace","path":"/l/3","value":1}`:        "",
		`{"op":"replace","path":"/l/-","value":1}`:        "",
		`{"op":"replace","path":"/l/x","value":1}`:        "",
		`{"op":"replace","path":"/l/-4","value":1}`:       "",
		`{"op":"replace","path":"/a/0/deep","value":1}`:   "",
		`{"op":"remove","path":"/b"}`:                     "",
		`{"op":"move","from":"/b","path":"/c"}`:           "",
	} {
		p, err := registry.ParsePatch(registry.JSONPatch, []byte("["+operation+"]"))
		require.NoError(t, err, operation)
		for range 2 { // a patch is applied to each state that comes in between
			got, err := p.Apply([]byte(`{"a":{"0":1},"l":[1,2,3]}`))
			if want == "" {
				require.ErrorAs(t, err, new(*registry.PatchError), operation)
				continue
			}
			require.NoError(t, err, operation)
			require.JSONEq(t, want, string(got), operation)
		}
	}
}

func TestPatch_MalformedOnesAreRefused(t *testing.T) {
	for text, kind := range map[string]registry.PatchType{
		`[]`: registry.MergePatch, `null`: registry.MergePatch, `{`: registry.MergePatch, `"x"`: registry.MergePatch,
		`{}`: registry.JSONPatch, `[{`: registry.JSONPatch, `{"spec":{}}`: "application/json",
		`[` + strings.Repeat(`{"op":"remove","path":"/a"},`, 10_000) + `{"op":"remove","path":"/a"}]`: registry.JSONPatch,
	} {
		_, err := registry.ParsePatch(kind, []byte(text))
		require.ErrorAs(t, err, new(*registry.BadRequestError), text[:min(len(text), 40)])
	}
	bomb, err := registry.ParsePatch(registry.JSONPatch, []byte(`[`+strings.Repeat(`{"op":"copy","from":"/a","path":"/a/-"},`, 40)+`{"op":"copy","from":"/a","path":"/a/-"}]`))
	require.NoError(t, err)
	_, err = bomb.Apply([]byte(`{"a":["` + strings.Repeat("x", 1000) + `"]}`))
	require.ErrorAs(t, err, new(*registry.PatchError), "doubling forty times must not be tried")
}

// The library that applies patches panics where it compares lists with null in them.
func TestPatch_TestsOfListsWithNullFail(t *testing.T) {
	for _, text := range []string{
		`[{"op":"test","path":"/a","value":[1,null]}]`, `[{"op":"test","path":"/a","value":[1,2]}]`, `[{"op":"test","path":"","value":{"a":[1,null]}}]`,
	} {
		p, err := registry.ParsePatch(registry.JSONPatch, []byte(text))
		require.NoError(t, err)
		_, err = p.Apply([]byte(`{"a":[1,null]}`))
		require.ErrorAs(t, err, new(*registry.PatchError), text)
		require.NotErrorIs(t, err, usercode.ErrPanic)
	}
}

func TestResource_InfoDescribesTheKind(t *testing.T) {
	s := open(t, config())
	all := s.Resources()
	require.Len(t, all, 2)
	info := all[0].Info()
	require.Equal(t, "widgets", info.Kind.Plural)
	require.Equal(t, "widget", info.Kind.Singular)
	require.Contains(t, info.Verbs, "deletecollection")
	require.Equal(t, []string{"spec.color", "metadata.name", "metadata.namespace"}, info.Fields)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(info.Schema, &schema))
	spec := schema["properties"].(map[string]any)["spec"].(map[string]any)
	require.Equal(t, map[string]any{"type": "integer", "format": "int64", "description": "How large it is."}, spec["properties"].(map[string]any)["size"])
	require.Equal(t, []any{"size"}, spec["required"])
	require.Equal(t, "status", all[1].Info().Subresource)
	require.Equal(t, []string{"get", "patch", "update"}, all[1].Info().Verbs)
	_, err := all[1].Create(t.Context(), "default", []byte(`{}`), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
}

func TestResource_KindsKnownOnlyAtRunTime(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Policy", Status: true, ClusterScoped: true},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r, status := s.Resources()[0], s.Resources()[1]
	require.Equal(t, "policies", r.Info().Kind.Plural)
	it, err := r.Create(t.Context(), "", []byte(`{"metadata":{"name":"p"},"spec":{"n":1},"status":{"x":1}}`), registry.WriteOptions{})
	require.NoError(t, err)
	before := body(t, it)
	require.NotContains(t, before, "status")
	next, _, err := status.Update(t.Context(), "p", func(live registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"n":2},"status":{"x":2}}`), nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, part(t, body(t, next), "spec"))
	require.JSONEq(t, `{"x":2}`, part(t, body(t, next), "status"))
	require.Equal(t, before, body(t, it), "what was handed out is not changed")
	again, _, err := r.Update(t.Context(), "p", func(live registry.Item) ([]byte, error) { return live.JSON() }, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, next.Revision(), again.Revision())
	_, err = r.Create(t.Context(), "", []byte(`{"metadata":{"name":"q","labels":["a"]}}`), registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.BadRequestError))
}

func TestKind_WrongOnesAreRefused(t *testing.T) {
	for told, kind := range map[string]registry.Kind{
		`Kind.Version is empty; give one such as v1`: {}, `Kind.Kind is empty`: {Group: "example.com", Version: "v1"},
		`Kind.Group has the name "Example"`:     {Group: "Example", Version: "v1", Kind: "Widget"},
		`Kind.Version has the name "1"`:         {Group: "example.com", Version: "1", Kind: "Widget"},
		`Kind.Kind has the name "Wid get"`:      {Group: "example.com", Version: "v1", Kind: "Wid get"},
		`Kind.Plural has the name "Widgets"`:    {Group: "example.com", Version: "v1", Kind: "Widget", Plural: "Widgets"},
		`Kind.ListKind has the name "Wid gets"`: {Group: "example.com", Version: "v1", Kind: "Widget", ListKind: "Wid gets"},
		`Kind.ListKind is "Widget", as Kind`:    {Group: "example.com", Version: "v1", Kind: "Widget", ListKind: "Widget"},
		`Kind.ShortNames has the name "w/w"`:    {Group: "example.com", Version: "v1", Kind: "Widget", ShortNames: []string{"w/w"}},
	} {
		_, err := registry.New(registry.Config[Widget]{Kind: kind})
		require.ErrorIs(t, err, engine.ErrConfig, "%+v", kind)
		require.ErrorContains(t, err, told)
	}
}

func TestConfig_WrongOnesAreRefused(t *testing.T) {
	none := func(*Widget) string { return "" }
	for _, tc := range []struct {
		told  string
		wrong func(cfg *registry.Config[Widget])
	}{
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Key = func(Widget) string { return "" } }},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Labels = func(Widget) labels.Set { return nil } }},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) {
			cfg.Engine.LabelValues = engine.LabelValues[Widget]{"app": func(Widget) string { return "" }}
		}},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Fields = engine.Fields[Widget]{} }},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Equal = func(_, _ Widget) bool { return false } }},
		{"Engine.Carry is set", func(cfg *registry.Config[Widget]) {
			cfg.Engine.Carry = func(_ context.Context, w Widget) Widget { return w }
		}},
		{"Engine.SetRevision is set", func(cfg *registry.Config[Widget]) {
			cfg.Engine.SetRevision = func(w Widget, _ engine.Revision) Widget { return w }
		}},
		{`Fields has no function for "spec.size"`, func(cfg *registry.Config[Widget]) {
			cfg.Fields = map[string]func(*Widget) string{"spec.size": nil}
		}},
		{`Fields has a function for "metadata.name"`, func(cfg *registry.Config[Widget]) {
			cfg.Fields = map[string]func(*Widget) string{"metadata.name": none}
		}},
		{`Fields has a function for "metadata.namespace"`, func(cfg *registry.Config[Widget]) {
			cfg.Fields = map[string]func(*Widget) string{"metadata.namespace": none}
		}},
		{`Decoders has no function for "application/yaml"`, func(cfg *registry.Config[Widget]) {
			cfg.Decoders = map[string]func([]byte) ([]byte, error){"application/yaml": nil}
		}},
		{`StorageVersion is "V1"`, func(cfg *registry.Config[Widget]) { cfg.StorageVersion = "V1" }},
		{"Columns[0] needs", func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Type: "string", Value: func(*Widget) any { return "" }}}
		}},
		{"Columns[0] needs", func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Value: func(*Widget) any { return "" }}}
		}},
		{"Columns[0] needs", func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Type: "string"}}
		}},
		{`Columns[0].Type is "int"; give one of string, integer,`, func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Type: "int", Value: func(*Widget) any { return 1 }}}
		}},
		{"Admit[0] is nil", func(cfg *registry.Config[Widget]) { cfg.Admit = []registry.Admitter{nil} }},
	} {
		cfg := config()
		tc.wrong(&cfg)
		s, err := registry.New(cfg)
		if err == nil {
			s.Close()
		}
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, tc.told)
	}
}

// Of several errors the same one is told every time.
func TestConfig_TellsTheFirstWrongName(t *testing.T) {
	for range 50 {
		cfg := config()
		cfg.Fields = map[string]func(*Widget) string{"b": nil, "a": nil, "metadata.name": nil}
		_, err := registry.New(cfg)
		require.ErrorContains(t, err, `no function for "a"`)
		cfg = config()
		cfg.Decoders = map[string]func([]byte) ([]byte, error){"text/b": nil, "text/a": nil, "text/c": nil}
		_, err = registry.New(cfg)
		require.ErrorContains(t, err, `no function for "text/a"`)
	}
}

// patchA patches the object default/a.
func patchA(t *testing.T, r registry.Resource, kind registry.PatchType, text string) (registry.Item, error) {
	t.Helper()
	p, err := registry.ParsePatch(kind, []byte(text))
	require.NoError(t, err)
	it, _, err := r.Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) {
		now, err := live.JSON()
		if err != nil {
			return nil, err
		}
		return p.Apply(now)
	}, registry.WriteOptions{})
	return it, err
}

// A program may rename the version of a kind whose objects are stored.
func TestItem_HasTheVersionOfTheKind(t *testing.T) {
	renamed := func(version string) registry.Kind {
		return registry.Kind{Group: "example.com", Version: version, Kind: "Widget"}
	}
	t.Run("a struct", func(t *testing.T) {
		cfg := config()
		cfg.Kind = renamed("v1beta1")
		objects, err := memory.New(registry.Schema(cfg), memory.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, objects.Close()) }()
		cfg.Engine.Backend = objects
		create(t, open(t, cfg), widget("w", 1))
		cfg.Kind = renamed("v1")
		requireVersion(t, open(t, cfg).Resources()[0])
	})
	t.Run("a map", func(t *testing.T) {
		cfg := registry.Config[unstructured.Unstructured]{Kind: renamed("v1beta1")}
		objects, err := memory.New(registry.Schema(cfg), memory.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, objects.Close()) }()
		cfg.Engine.Backend = objects
		before, err := registry.New(cfg)
		require.NoError(t, err)
		defer before.Close()
		_, err = before.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"w"}}`), registry.WriteOptions{})
		require.NoError(t, err)
		cfg.Kind = renamed("v1")
		after, err := registry.New(cfg)
		require.NoError(t, err)
		defer after.Close()
		requireVersion(t, after.Resources()[0])
	})
}

// requireVersion requires that the object default/w is of v1, when it is read and when it is
// written.
func requireVersion(t *testing.T, r registry.Resource) {
	t.Helper()
	it, err := r.Get(t.Context(), "default/w", engine.GetOptions{})
	require.NoError(t, err)
	text, err := it.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"apiVersion":"example.com/v1"`)
	var live string
	_, _, err = r.Update(t.Context(), "default/w", func(it registry.Item) ([]byte, error) {
		text, err := it.JSON()
		live = string(text)
		return text, err
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Contains(t, live, `"apiVersion":"example.com/v1"`)
}

// Fields that the kind does not have are removed from what the process writes, as from bodies.
func TestPrune_OfWritesInTheProcess(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: config().Kind,
		Prune: func(o *unstructured.Unstructured) (gone []string) {
			if _, has := o.Object["old"]; has {
				delete(o.Object, "old")
				gone = []string{"old"}
			}
			return gone
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	value := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}, "old": int64(1)}}
	strict := registry.WriteOptions{Validation: registry.RefuseUnknown}
	_, err = s.Create(t.Context(), value, strict)
	var bad *registry.BadRequestError
	require.ErrorAs(t, err, &bad)
	var warned []string
	warn := registry.WriteOptions{Warn: func(text string) { warned = append(warned, text) }}
	o, err := s.Create(t.Context(), value, warn)
	require.NoError(t, err)
	require.NotContains(t, o.Value.Object, "old")
	add := func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
		next := *old.Value.DeepCopy()
		next.Object["old"] = int64(2)
		return next, nil
	}
	_, _, err = s.Update(t.Context(), "default/a", add, strict)
	require.ErrorAs(t, err, &bad)
	o, _, err = s.Update(t.Context(), "default/a", add, warn)
	require.NoError(t, err)
	require.NotContains(t, o.Value.Object, "old")
	require.Equal(t, []string{`unknown field "old"`, `unknown field "old"`}, warned)
	require.Contains(t, value.Object, "old", "it is the caller's")
}
