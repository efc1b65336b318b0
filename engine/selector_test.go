package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
)

// withFields declares two fields of pods.
func withFields(c *engine.Config[pod]) {
	c.Fields = engine.Fields[pod]{
		"spec.nodeName": func(p pod) string { return p.App },
		"status.phase":  func(p pod) string { return p.Name },
	}
}

// selection is what can be asked for by Watch, Handle and List alike.
type selection struct {
	labels, fields string
	labelSelector  labels.Selector
	fieldSelector  fields.Selector
}

func (s selection) watch() engine.WatchOptions {
	return engine.WatchOptions{Labels: s.labels, Fields: s.fields, LabelSelector: s.labelSelector, FieldSelector: s.fieldSelector}
}

func (s selection) list() engine.ListOptions {
	return engine.ListOptions{Labels: s.labels, Fields: s.fields, LabelSelector: s.labelSelector, FieldSelector: s.fieldSelector}
}

// engines are a test's engines with a cache and without.
func engines(t *testing.T, test func(t *testing.T, change func(*engine.Config[pod]))) {
	t.Run("cached", func(t *testing.T) { test(t, withFields) })
	t.Run("uncached", func(t *testing.T) {
		test(t, func(c *engine.Config[pod]) {
			withFields(c)
			c.NoCache = true
		})
	})
}

func TestSelector_UnknownFieldIsRefusedWithWhatWasMeant(t *testing.T) {
	parsed := fields.ParseSelectorOrDie("spec.nodename!=n7")
	engines(t, func(t *testing.T, change func(*engine.Config[pod])) {
		e, ctx := newEngine(t, change)
		for name, test := range map[string]struct {
			selection selection
			want      string
		}{
			"another case": {
				selection{fields: "spec.nodename=n7"},
				`invalid Fields "spec.nodename=n7": unknown field "spec.nodename": did you mean "spec.nodeName"? declared are spec.nodeName, status.phase`,
			},
			"a slip of the finger": {
				selection{fields: "status.phase=Running,status.phasse!=Failed"},
				`invalid Fields "status.phase=Running,status.phasse!=Failed": unknown field "status.phasse": did you mean "status.phase"? declared are spec.nodeName, status.phase`,
			},
			"nothing like it": {
				selection{fields: "zone=z1"},
				`invalid Fields "zone=z1": unknown field "zone": declared are spec.nodeName, status.phase`,
			},
			"parsed": {
				selection{fieldSelector: parsed},
				`invalid FieldSelector "spec.nodename!=n7": unknown field "spec.nodename": did you mean "spec.nodeName"? declared are spec.nodeName, status.phase`,
			},
		} {
			t.Run(name, func(t *testing.T) {
				_, watch := e.Watch(ctx, test.selection.watch())
				_, handle := e.Handle(ctx, test.selection.watch(), func(engine.Event[pod]) {})
				_, list := e.List(ctx, test.selection.list())
				for _, err := range []error{watch, handle, list} {
					require.EqualError(t, err, test.want)
					require.ErrorIs(t, err, engine.ErrInvalidSelector)
					require.ErrorIs(t, err, engine.ErrUnknownField)
					var unknown *engine.UnknownFieldError
					require.ErrorAs(t, err, &unknown)
					require.EqualValues(t, []string{"spec.nodeName", "status.phase"}, unknown.Declared)
				}
			})
		}
		require.Zero(t, e.Stats().Watches)
	})
}

// Labels that nothing declares would match nothing, or with != everything, and say nothing.
func TestSelector_LabelOfATypeWithoutLabels(t *testing.T) {
	for name, noCache := range map[string]bool{"cached": false, "uncached": true} {
		t.Run(name, func(t *testing.T) {
			e, ctx := newEngine(t, func(c *engine.Config[pod]) {
				c.Labels, c.IndexLabels, c.NoCache = nil, nil, noCache
			})
			for _, opts := range []engine.ListOptions{
				{Labels: "app!=web"},
				{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"})},
			} {
				_, err := e.List(ctx, opts)
				require.ErrorIs(t, err, engine.ErrNoLabels)
				require.ErrorIs(t, err, engine.ErrInvalidSelector)
				_, err = e.Watch(ctx, engine.WatchOptions{Labels: opts.Labels, LabelSelector: opts.LabelSelector})
				require.ErrorIs(t, err, engine.ErrNoLabels)
			}
			_, err := e.List(ctx, engine.ListOptions{Labels: "app=web"})
			require.EqualError(t, err, `invalid Labels "app=web": the type has no labels: give Config.Labels or Config.LabelValues`)
			for _, opts := range []engine.ListOptions{{}, {LabelSelector: labels.Everything()}, {LabelSelector: labels.Nothing()}} {
				_, err := e.List(ctx, opts)
				require.NoError(t, err)
			}
		})
	}
}

func TestSelector_FieldOfATypeWithoutFields(t *testing.T) {
	e, ctx := newEngine(t, nil)
	_, err := e.List(ctx, engine.ListOptions{Fields: "metadata.name=a"})
	require.EqualError(t, err, `invalid Fields "metadata.name=a": unknown field "metadata.name": no fields are declared`)
}

func TestConfig_IndexOnAnUnknownFieldIsRefusedWithWhatWasMeant(t *testing.T) {
	c := cfg()
	withFields(&c)
	c.Index = []string{"status.phase", "spec.nodename"}
	_, err := engine.New(c)
	require.EqualError(t, err, `invalid configuration: Index names what Fields does not declare: `+
		`unknown field "spec.nodename": did you mean "spec.nodeName"? declared are spec.nodeName, status.phase`)
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorIs(t, err, engine.ErrUnknownField)
	var wrong *engine.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Index", wrong.Field)
	var unknown *engine.UnknownFieldError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "spec.nodename", unknown.Name)
}

// writePods creates five pods; App is also their field spec.nodeName.
func writePods(t *testing.T, e *engine.Engine[pod]) (last engine.Revision) {
	t.Helper()
	for _, p := range []pod{{Name: "a", App: "web"}, {Name: "b", App: "db"}, {Name: "c", App: "web"}, {Name: "d", App: "lb"}, {Name: "e", App: "web"}} {
		var err error
		last, err = revisionOf(e.Create(t.Context(), p))
		require.NoError(t, err)
	}
	return last
}

// keysOf returns the keys of a list, as in "a b".
func keysOf(l *engine.List[pod]) []string {
	found := []string{}
	for _, o := range l.Items {
		found = append(found, o.Key)
	}
	return found
}

func TestSelector_ParsedSelectsAsItsTextDoes(t *testing.T) {
	web, err := labels.Parse("app in (web)")
	require.NoError(t, err)
	engines(t, func(t *testing.T, change func(*engine.Config[pod])) {
		e, ctx := newEngine(t, change)
		writePods(t, e)
		for name, test := range map[string]struct {
			selection selection
			want      []string
		}{
			"labels":            {selection{labelSelector: web}, []string{"a", "c", "e"}},
			"fields":            {selection{fieldSelector: fields.ParseSelectorOrDie("spec.nodeName!=web")}, []string{"b", "d"}},
			"one field":         {selection{fieldSelector: fields.OneTermEqualSelector("status.phase", "d")}, []string{"d"}},
			"set":               {selection{labelSelector: labels.SelectorFromSet(labels.Set{"app": "db"})}, []string{"b"}},
			"beside their text": {selection{labels: "app!=db", labelSelector: web, fields: "status.phase!=a", fieldSelector: fields.ParseSelectorOrDie("status.phase!=e")}, []string{"c"}},
			"everything":        {selection{labelSelector: labels.Everything(), fieldSelector: fields.Everything()}, []string{"a", "b", "c", "d", "e"}},
			"contradiction":     {selection{labels: "app=db", labelSelector: web}, []string{}},
		} {
			t.Run(name, func(t *testing.T) {
				l, err := e.List(ctx, test.selection.list())
				require.NoError(t, err)
				require.Equal(t, test.want, keysOf(l))

				opts := test.selection.watch()
				opts.InitialState, opts.Bookmarks = true, true
				w, err := e.Watch(ctx, opts)
				require.NoError(t, err)
				defer w.Stop()
				require.Equal(t, test.want, initialKeys(t, w))
			})
		}
	})
}

// initialKeys returns the keys of a watch's initial state.
func initialKeys(t *testing.T, w *engine.Watch[pod]) []string {
	t.Helper()
	found := []string{}
	for ev, err := range w.Events() {
		require.NoError(t, err)
		if ev.Is(engine.InitialEnd) {
			break
		}
		found = append(found, ev.Key())
	}
	return found
}

// What selects nothing must not be taken for what restricts nothing.
func TestSelector_NothingSelectsNothing(t *testing.T) {
	nothing := map[string]selection{
		"labels":              {labelSelector: labels.Nothing()},
		"fields":              {fieldSelector: fields.Nothing()},
		"beside text":         {labels: "app=web", labelSelector: labels.Nothing()},
		"beside other fields": {fieldSelector: fields.AndSelectors(fields.ParseSelectorOrDie("spec.nodeName=web"), fields.Nothing())},
		"beside everything":   {labelSelector: labels.Everything(), fieldSelector: fields.Nothing()},
	}
	engines(t, func(t *testing.T, change func(*engine.Config[pod])) {
		for name, selection := range nothing {
			t.Run(name, func(t *testing.T) {
				e, ctx := newEngine(t, change)
				before := writePods(t, e)
				requireNothingListed(t, e, selection, before)

				opts := selection.watch()
				opts.InitialState, opts.Bookmarks = true, true
				pulled, err := e.Watch(ctx, opts)
				require.NoError(t, err)
				require.Empty(t, initialKeys(t, pulled))
				handled, err := e.Handle(ctx, selection.watch(), func(ev engine.Event[pod]) { t.Errorf("it is given %v", ev) })
				require.NoError(t, err)
				all, err := e.Watch(ctx, engine.WatchOptions{From: before})
				require.NoError(t, err)

				rev, err := revisionOf(e.Put(ctx, pod{Name: "a", App: "db"}))
				require.NoError(t, err)
				until(t, ctx, all, rev)
				eventually(t, ctx, func() bool { return handled.Revision() == rev })
				gone, cancel := context.WithCancel(ctx)
				cancel()
				_, err = pulled.Next(gone)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, uint64(1), pulled.Delivered(), "the bookmark alone")
				require.Zero(t, handled.Delivered())
			})
		}
	})
}

// requireNothingListed demands that no read of a list shows anything, whole or by
// pages.
func requireNothingListed(t *testing.T, e *engine.Engine[pod], s selection, at engine.Revision) {
	t.Helper()
	for _, read := range []engine.Read{engine.Latest(), engine.Cached(), engine.NotOlderThan(at), engine.Exactly(at)} {
		for _, limit := range []int{0, 2} {
			opts := s.list()
			opts.Read, opts.Limit = read, limit
			l, err := e.List(t.Context(), opts)
			require.NoError(t, err)
			require.Equal(t, &engine.List[pod]{Revision: at, Items: []*engine.Object[pod]{}, Timeline: l.Timeline}, l, "%v, limit %d", read, limit)
		}
	}
}
