package interop_test

import (
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/serve"
)

// The detectors of client-go read these when it is loaded, so the test binary
// starts itself with them.
func TestMain(m *testing.M) { os.Exit(withDetectors(m)) }

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
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

var widgetResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// server serves widgets to clients that cfg configures.
type server struct {
	widgets *registry.Store[Widget]
	handler *serve.Server
	cfg     *rest.Config
}

func newServer(t *testing.T, edit ...func(*registry.Config[Widget], *serve.Config)) *server {
	t.Helper()
	widgetCfg := registry.Config[Widget]{
		Kind:    registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true, ShortNames: []string{"wd"}},
		Columns: []registry.Column[Widget]{{Name: "Size", Type: "integer", Value: func(w *Widget) any { return w.Spec.Size }}},
		Fields:  map[string]func(*Widget) string{"spec.color": func(w *Widget) string { return w.Spec.Color }},
		Scale: &registry.Scale[Widget]{
			Replicas:    func(w *Widget) (int32, bool) { return int32(w.Spec.Size), true },
			SetReplicas: func(w *Widget, n int32) { w.Spec.Size = int(n) },
		},
		Apply: apply.New,
	}
	cfg := serve.Config{}
	for _, e := range edit {
		e(&widgetCfg, &cfg)
	}
	widgets, err := registry.New(widgetCfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, widgets.Close()) })
	cfg.Resources = []serve.Provider{widgets}
	handler, client := served(t, cfg)
	return &server{widgets, handler, client}
}

// served serves cfg until the end of the test, and configures clients. What is served is closed
// after it.
func served(t *testing.T, cfg serve.Config) (*serve.Server, *rest.Config) {
	t.Helper()
	handler, err := serve.New(cfg)
	require.NoError(t, err)
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return handler, &rest.Config{Host: h.URL, QPS: -1}
}
