package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// shrinking is the configuration of an action that makes widgets smaller, by the size of what asks for it.
func shrinking(s *registry.Store[Widget]) registry.ActionConfig[Widget] {
	return registry.ActionConfig[Widget]{
		Of: config().Kind, Subresource: "shrinking", Kind: registry.Kind{Group: "tools.example.com", Version: "v1", Kind: "Shrinking"},
		Do: func(ctx context.Context, key string, by *Widget, opts registry.WriteOptions) error {
			if by.Spec.Size == 666 {
				panic("the number of the beast")
			}
			o, _, err := s.Update(ctx, key, grow(-by.Spec.Size), registry.WriteOptions{DryRun: opts.DryRun})
			if err == nil {
				by.Spec.Size = o.Value.Spec.Size
			}
			return err
		},
	}
}

func actionOf(t *testing.T, cfg registry.ActionConfig[Widget]) (registry.Resource, func(key, body string, opts registry.WriteOptions) (registry.Item, error)) {
	t.Helper()
	v, err := registry.NewAction(cfg)
	require.NoError(t, err)
	require.Len(t, v.Resources(), 1)
	r := v.Resources()[0]
	return r, func(key, body string, opts registry.WriteOptions) (registry.Item, error) {
		return r.(registry.Actor).Act(t.Context(), key, []byte(body), opts)
	}
}

func TestAction_DoesWithAnObjectWhatIsAskedFor(t *testing.T) {
	s := newStore(t, config())
	create(t, s, widget("a", 9))
	r, act := actionOf(t, shrinking(s))
	info := r.Info()
	require.Equal(t, "widgets shrinking Shrinking [create]", info.Kind.Plural+" "+info.Subresource+" "+info.ObjectKind().Kind+" ["+info.Verbs[0]+"]")

	it, err := act("default/a", `{"kind":"Shrinking","apiVersion":"tools.example.com/v1","spec":{"size":2}}`, registry.WriteOptions{})
	require.NoError(t, err)
	require.Contains(t, body(t, it), `"spec":{"size":7}`)
	require.Equal(t, "default/a", it.Key(), "its name is that of the object")
	it, err = act("default/a", `{"metadata":{"name":"a","namespace":"default"},"spec":{"size":3}}`, registry.WriteOptions{DryRun: true})
	require.NoError(t, err)
	require.Contains(t, body(t, it), `"spec":{"size":4}`)
	o, err := s.Engine().Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Equal(t, 7, o.Value.Spec.Size)
}

func TestAction_RefusesWhatIsWrong(t *testing.T) {
	s := newStore(t, config())
	create(t, s, widget("a", 9))
	r, act := actionOf(t, shrinking(s))
	var bad *registry.BadRequestError
	for _, body := range []string{`{`, `{"metadata":{"name":"b"}}`, `{"metadata":{"namespace":"other"}}`, `{"kind":"Widget"}`, `{"spec":{"size":"x"}}`} {
		_, err := act("default/a", body, registry.WriteOptions{})
		require.ErrorAs(t, err, &bad, body)
	}
	_, err := act("default/none", `{"spec":{"size":1}}`, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound, "the error of the function")
	_, err = act("default/a", `{"spec":{"size":666}}`, registry.WriteOptions{})
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "ActionConfig.Do", panicked.Func)
	_, err = r.Get(t.Context(), "default/a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
	_, err = doubled(t).(registry.Actor).Act(t.Context(), "default/a", []byte(`{}`), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported, "it is not a subresource")
}

func TestAction_OfAClusterScopedKindHasNoNamespace(t *testing.T) {
	cfg := shrinking(nil)
	cfg.Of.ClusterScoped = true
	cfg.Do = func(_ context.Context, key string, w *Widget, _ registry.WriteOptions) error {
		w.Spec.Color = key
		return nil
	}
	_, act := actionOf(t, cfg)
	it, err := act("a", `{"metadata":{"namespace":"any"}}`, registry.WriteOptions{})
	require.NoError(t, err)
	require.Empty(t, it.Meta().GetNamespace())
	require.Contains(t, body(t, it), `"color":"a"`)
}

// A body may say that it has no metadata. The object that is meant is that of the request nevertheless.
func TestAction_OfABodyWithoutMetadata(t *testing.T) {
	keys := []string{}
	v, err := registry.NewAction(registry.ActionConfig[unstructured.Unstructured]{
		Of: config().Kind, Subresource: "shrinking", Kind: registry.Kind{Group: "tools.example.com", Version: "v1", Kind: "Shrinking"},
		Do: func(_ context.Context, key string, by *unstructured.Unstructured, _ registry.WriteOptions) error {
			keys = append(keys, key+" "+by.GetNamespace()+" "+by.GetName())
			return nil
		},
	})
	require.NoError(t, err)
	for _, body := range []string{`{}`, `{"metadata":{}}`, `{"metadata":null}`} {
		_, err := v.Resources()[0].(registry.Actor).Act(t.Context(), "default/a", []byte(body), registry.WriteOptions{})
		require.NoError(t, err, body)
		require.Equal(t, "default/a default a", keys[len(keys)-1], body)
	}
}

func TestAction_ConfigurationIsChecked(t *testing.T) {
	for field, edit := range map[string]func(*registry.ActionConfig[Widget]){
		"Of.Version":  func(c *registry.ActionConfig[Widget]) { c.Of.Version = "" },
		"Kind.Kind":   func(c *registry.ActionConfig[Widget]) { c.Kind.Kind = "" },
		"Subresource": func(c *registry.ActionConfig[Widget]) { c.Subresource = "status" },
		"Do":          func(c *registry.ActionConfig[Widget]) { c.Do = nil },
	} {
		cfg := shrinking(nil)
		edit(&cfg)
		_, err := registry.NewAction(cfg)
		var wrong *engine.ConfigError
		require.True(t, errors.As(err, &wrong), field)
		require.Equal(t, field, wrong.Field)
	}
}
