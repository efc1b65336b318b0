package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// namedWrites are writes of the object "default/a" at a replica that name an object only by their options.
func namedWrites(t *testing.T, r *server) map[string]func(registry.WriteOptions) error {
	object, status, scale := r.store.Resources()[0], r.store.Resources()[1], r.store.Resources()[2]
	applies := func(to registry.Resource, config string) func(registry.WriteOptions) error {
		return func(opts registry.WriteOptions) error {
			_, _, err := to.Apply(t.Context(), "default/a", []byte(config), opts)
			return err
		}
	}
	puts := func(to registry.Resource, body string) func(registry.WriteOptions) error {
		return func(opts registry.WriteOptions) error {
			_, _, err := to.Update(t.Context(), "default/a", func(registry.Item) ([]byte, error) { return []byte(body), nil }, opts)
			return err
		}
	}
	return map[string]func(registry.WriteOptions) error{
		"apply":                applies(object, `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":9}}`),
		"apply of YAML":        applies(object, "apiVersion: example.com/v1\nkind: Widget\nmetadata:\nspec:\n  size: 9\n"),
		"apply of the status":  applies(status, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"status":{"phase":"Up"}}`),
		"apply of the scale":   applies(scale, `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":9}}`),
		"update":               puts(object, `{"metadata":{"name":"a","resourceVersion":"0"},"spec":{"size":9}}`),
		"update of the scale":  puts(scale, `{"metadata":{"name":"a","uid":""},"spec":{"replicas":9}}`),
		"update of the status": puts(status, `{"metadata":{"name":"a"},"status":{"phase":"Up"}}`),
	}
}

// Another write comes between the replica's look at the object and its own write.
func TestReplica_PreconditionsArePartOfTheWrite(t *testing.T) {
	origin := newServer(t, withApply, withScale)
	var between func() error
	before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut || r.Method == http.MethodPatch {
			if err := between(); err != nil {
				t.Error(err)
			}
		}
		next.ServeHTTP(w, r)
	})
	b := backendAt(t, before.URL)
	r := newServer(t, withScale, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
	resize := func() error {
		_, _, err := origin.store.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
			w := old.Value
			w.Spec.Size = 2
			return w, nil
		}, registry.WriteOptions{})
		return err
	}
	replace := func() error {
		if _, _, err := origin.store.Delete(t.Context(), "default/a", registry.DeleteOptions{}); err != nil {
			return err
		}
		_, err := origin.store.Create(t.Context(), widget("a", 2), registry.WriteOptions{})
		return err
	}
	for name, write := range namedWrites(t, r) {
		o := origin.create("a", 1)
		opts := registry.WriteOptions{Manager: "one", Force: true}
		revision, uid := opts, opts
		revision.Revision, uid.UID = o.Revision, string(o.Value.UID)
		between = resize
		require.ErrorIs(t, write(revision), engine.ErrConflict, name)
		between = replace
		require.ErrorIs(t, write(uid), engine.ErrConflict, name)
		last, err := origin.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, Widget{Spec: WidgetSpec{Size: 2}}, Widget{Spec: last.Value.Spec, Status: last.Value.Status}, name)

		between = func() error { return nil }
		uid.UID, uid.Revision = string(last.Value.UID), last.Revision
		require.NoError(t, write(uid), name)
		_, _, err = origin.store.Delete(t.Context(), "default/a", registry.DeleteOptions{})
		require.NoError(t, err)
	}
}

// The uid and the resourceVersion say which object is meant, and no manager owns them.
func TestReplica_PreconditionsOfAnApplyAreNotOwned(t *testing.T) {
	origin := newServer(t, withApply)
	r := replica(t, origin.url)
	fields := func(opts registry.WriteOptions) string {
		o := origin.create("a", 1)
		if opts.Revision != 0 {
			opts.UID, opts.Revision = string(o.Value.UID), o.Revision
		}
		opts.Manager = "one"
		o, _, err := r.store.Apply(t.Context(), "default/a", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"a":"b"}},"spec":{"size":1}}`), opts)
		require.NoError(t, err)
		_, _, err = origin.store.Delete(t.Context(), "default/a", registry.DeleteOptions{})
		require.NoError(t, err)
		text := ""
		for _, e := range o.Value.ManagedFields {
			text += fmt.Sprintln(e.Manager, e.Operation, e.FieldsV1)
		}
		return text
	}
	require.Equal(t, fields(registry.WriteOptions{}), fields(registry.WriteOptions{Revision: 1}))
}

// A body may name another object than the options do: no object is both.
func TestForward_PreconditionsAndBodyMustNotDiffer(t *testing.T) {
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		t.Error("nothing is to be sent")
		return sends("{}")(nil)
	})
	opts := registry.WriteOptions{UID: "u", Revision: 7}
	for _, body := range []string{`{"metadata":{"uid":"v"}}`, `{"metadata":{"resourceVersion":"8"}}`, `{"metadata":{"uid":5}}`} {
		_, _, err := b.ForwardUpdate(t.Context(), "default/a", "", []byte(body), opts)
		var conflict *registry.ConflictError
		require.ErrorAs(t, err, &conflict, body)
		_, _, err = b.ForwardApply(t.Context(), "default/a", "", []byte(body), opts)
		require.ErrorAs(t, err, &conflict, body)
	}
	for _, body := range []string{``, `null`, `[]`, `{"metadata":[]}`, `{`, "a: 1\na: 2"} {
		_, _, err := b.ForwardApply(t.Context(), "default/a", "", []byte(body), opts)
		var bad *registry.BadRequestError
		require.ErrorAs(t, err, &bad, body)
	}
}

// A body may repeat the preconditions of the options, or have none.
func TestForward_PreconditionsMayBeInTheBody(t *testing.T) {
	var body []byte
	b := pretend(t, func(r *http.Request) (_ *http.Response, err error) {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		return sends("{}")(r)
	})
	for _, given := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":{"uid":null,"resourceVersion":null}}`,
		`{"metadata":{"uid":"","resourceVersion":""}}`, `{"metadata":{"uid":"u","resourceVersion":"7"}}`,
	} {
		_, _, err := b.ForwardUpdate(t.Context(), "default/a", "", []byte(given), registry.WriteOptions{UID: "u", Revision: 7})
		require.NoError(t, err, given)
		require.JSONEq(t, `{"metadata":{"uid":"u","resourceVersion":"7"}}`, string(body), given)
	}
}

// A body that the server allows stays one that it allows.
func TestForward_PreconditionsLeaveTheRestOfTheBodyAsItIs(t *testing.T) {
	var body []byte
	b := pretend(t, func(r *http.Request) (_ *http.Response, err error) {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		return sends("{}")(r)
	})
	const annotations, spec = `{"<a>":"<&>"}`, `{"text":"<b>&\u003c</b>"}`
	_, _, err := b.ForwardApply(t.Context(), "default/a", "", []byte(`{"metadata":{"annotations":`+annotations+`},"spec":`+spec+`}`), registry.WriteOptions{UID: "u"})
	require.NoError(t, err)
	require.Contains(t, string(body), annotations)
	require.Contains(t, string(body), spec)
	require.Contains(t, string(body), `"uid":"u"`)
}
