package resttest_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/memory"
)

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec `json:"spec"`
}

type WidgetSpec struct {
	Size int `json:"size"`
}

// DeepCopyObject makes Widget a runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject makes WidgetList a runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return &c
}

// valid returns a widget that can be created.
func valid(name, namespace string) *Widget {
	return &Widget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "web"}},
		Spec:       WidgetSpec{Size: 1},
	}
}

// config is a kind whose objects have no negative size.
func config() registry.Config[Widget] {
	return registry.Config[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Strategy: registry.Strategy[Widget]{Validate: func(_ context.Context, w, _ *Widget) (all field.ErrorList) {
			if w.Spec.Size < 0 {
				all = append(all, field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must not be negative"))
			}
			return all
		}},
		Columns: []registry.Column[Widget]{{
			Name: "Size", Type: "integer", Description: "How large it is.", Value: func(w *Widget) any { return w.Spec.Size },
		}},
	}
}

// defaultGrace is the grace period of gracefulConfig's kind, in seconds.
const defaultGrace = 30

// gracefulConfig is the kind with graceful deletion.
func gracefulConfig() registry.Config[Widget] {
	cfg := config()
	cfg.Strategy.Grace = func(_ *Widget, asked *int64) (int64, bool) {
		if asked != nil {
			return *asked, true
		}
		return defaultGrace, true
	}
	return cfg
}

// newStorage returns the storage of a kind, empty and at revision 1, from which the suite's
// watches start.
func newStorage(t *testing.T, cfg registry.Config[Widget]) *storage {
	t.Helper()
	backend, err := memory.New(registry.Schema(cfg), memory.Options{FirstRevision: 1})
	require.NoError(t, err)
	cfg.Engine.Backend = backend
	widgets, err := registry.New(cfg)
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Client().CloseIdleConnections()
		server.Close()
		require.NoError(t, widgets.Close())
		require.NoError(t, backend.Close())
	})
	return &storage{
		resource: widgets.Resources()[0], engine: widgets.Engine(), server: server,
		returnsDeleted: cfg.Strategy.Grace != nil,
	}
}
