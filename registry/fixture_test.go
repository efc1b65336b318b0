package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size  int    `json:"size" description:"How large it is."`
	Color string `json:"color,omitempty"`
}

type WidgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

func config() registry.Config[Widget] {
	return registry.Config[Widget]{
		Kind:    registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true},
		Engine:  engine.Config[Widget]{FreshnessTimeout: time.Hour}, // however long a machine stands still
		Columns: []registry.Column[Widget]{{Name: "Size", Type: "integer", Value: func(w *Widget) any { return w.Spec.Size }}},
		Fields:  map[string]func(*Widget) string{"spec.color": func(w *Widget) string { return w.Spec.Color }},
		Strategy: registry.Strategy[Widget]{
			Default: func(w *Widget) {
				if w.Spec.Color == "" {
					w.Spec.Color = "grey"
				}
			},
			Validate: func(_ context.Context, w, old *Widget) field.ErrorList {
				var wrong field.ErrorList
				if w.Spec.Size < 0 {
					wrong = append(wrong, field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must not be negative"))
				}
				return wrong
			},
			Warn: func(_ context.Context, w, _ *Widget) []string {
				if w.Spec.Size > 1000 {
					return []string{"this is large"}
				}
				return nil
			},
			Canonicalize: func(w *Widget) { w.Spec.Color = strings.ToLower(w.Spec.Color) },
		},
	}
}

func newStore[T any, P registry.Ptr[T]](t *testing.T, cfg registry.Config[T]) *registry.Store[T] {
	t.Helper()
	s, err := registry.New[T, P](cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func widget(name string, size int) Widget {
	return Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: WidgetSpec{Size: size}}
}

func create(t *testing.T, s *registry.Store[Widget], w Widget) *engine.Object[Widget] {
	t.Helper()
	o, err := s.Create(t.Context(), w, registry.WriteOptions{})
	require.NoError(t, err)
	return o
}

func grow(by int) func(*engine.Object[Widget]) (Widget, error) {
	return func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size += by
		return w, nil
	}
}
