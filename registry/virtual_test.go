package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// doubled is a kind that answers with twice the size.
func doubled(t *testing.T) registry.Resource {
	t.Helper()
	v, err := registry.NewVirtual(registry.VirtualConfig[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Doubling", Status: true},
		Answer: func(ctx context.Context, w *Widget) error {
			switch w.Spec.Size {
			case 13:
				return &registry.BadRequestError{Reason: "13 is not doubled"}
			case 666:
				panic("the number of the beast")
			}
			w.Spec.Size *= 2
			return context.Cause(ctx)
		},
	})
	require.NoError(t, err)
	require.Len(t, v.Resources(), 1, "it has no status of its own to write")
	return v.Resources()[0]
}

func TestVirtual_AnswersWithTheObjectCompleted(t *testing.T) {
	r := doubled(t)
	var warned []string
	item, err := r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a","uid":"mine","resourceVersion":"7"},"spec":{"size":4,"colour":"red"}}`),
		registry.WriteOptions{Warn: func(text string) { warned = append(warned, text) }})
	require.NoError(t, err)
	text, err := item.JSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"Doubling","metadata":{"name":"a","namespace":"default"},"spec":{"size":8},"status":{}}`, string(text))
	require.Len(t, warned, 1, "of the field that there is not")
	require.Equal(t, "default/a", item.Key())
	require.Equal(t, "Doubling", item.Kind().Kind)
	require.Zero(t, item.Revision())

	unnamed, err := r.Create(t.Context(), "default", []byte(`{"spec":{"size":1}}`), registry.WriteOptions{})
	require.NoError(t, err, "a question needs no name")
	require.Equal(t, "default", unnamed.Meta().GetNamespace())
}

func TestVirtual_RefusesWhatItCannotAnswer(t *testing.T) {
	r := doubled(t)
	var bad *registry.BadRequestError
	for _, body := range []string{
		`{"spec":{"size":13}}`, `{"kind":"Widget"}`, `{"spec":{"size":"large"}}`, `{"metadata":{"namespace":"other"}}`, `{`,
	} {
		_, err := r.Create(t.Context(), "default", []byte(body), registry.WriteOptions{})
		require.ErrorAs(t, err, &bad, body)
	}
	_, err := r.Create(t.Context(), "default", []byte(`{"spec":{"colour":"red"}}`), registry.WriteOptions{Validation: registry.RefuseUnknown})
	require.ErrorAs(t, err, &bad)
	_, err = r.Create(t.Context(), "default", []byte(`{"spec":{"size":666}}`), registry.WriteOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
	why := errors.New("the caller has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = r.Create(ctx, "default", []byte(`{}`), registry.WriteOptions{})
	require.ErrorIs(t, err, why)
}

// There are no objects to read, to change or to wait for.
func TestVirtual_HasCreationsAlone(t *testing.T) {
	r, ctx := doubled(t), t.Context()
	require.Equal(t, []string{"create"}, r.Info().Verbs)
	require.True(t, r.Readiness().Ready)
	for verb, call := range map[string]func() error{
		"get":      func() error { _, err := r.Get(ctx, "default/a", engine.GetOptions{}); return err },
		"list":     func() error { _, err := r.List(ctx, engine.ListOptions{}); return err },
		"watch":    func() error { _, err := r.Watch(ctx, engine.WatchOptions{}); return err },
		"wait":     func() error { return r.WaitForRevision(ctx, 1) },
		"timeline": func() error { _, err := r.Timeline(ctx); return err },
		"update":   func() error { _, _, err := r.Update(ctx, "default/a", nil, registry.WriteOptions{}); return err },
		"apply":    func() error { _, _, err := r.Apply(ctx, "default/a", nil, registry.WriteOptions{}); return err },
		"delete":   func() error { _, _, err := r.Delete(ctx, "default/a", registry.DeleteOptions{}); return err },
		"all": func() error {
			_, err := r.DeleteCollection(ctx, engine.ListOptions{}, registry.DeleteOptions{})
			return err
		},
	} {
		require.ErrorIs(t, call(), engine.ErrUnsupported, verb)
	}
}

func TestVirtual_ConfigIsChecked(t *testing.T) {
	kind := registry.Kind{Group: "example.com", Version: "v1", Kind: "Doubling"}
	answer := func(context.Context, *Widget) error { return nil }
	for field, cfg := range map[string]registry.VirtualConfig[Widget]{
		"Answer": {Kind: kind}, "Kind": {Answer: answer}, "Schema": {Kind: kind, Answer: answer, Schema: []byte("{")},
	} {
		_, err := registry.NewVirtual(cfg)
		require.ErrorIs(t, err, engine.ErrConfig, field)
		require.ErrorContains(t, err, field)
	}
}
