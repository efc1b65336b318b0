package interop_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// The README quotes a part of this file line by line.

// Kubernetes' own kinds are served in the process of a test, to the clients that controllers use.
func Example() {
	ctx := context.Background()
	configMaps, err := registry.New(registry.Config[core.ConfigMap]{
		Kind:           registry.Kind{Version: "v1", Kind: "ConfigMap"}, // of the core group
		Apply:          apply.WithTypes(applyconfigurations.NewTypeConverter(scheme.Scheme)),
		StrategicMerge: strategic.New,
		Decoders:       protobuf.Decoders[core.ConfigMap]("ConfigMap"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer configMaps.Close()
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{configMaps}})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		log.Fatal(err)
	}

	colors := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "colors"}, Data: map[string]string{"door": "green"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, colors, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	stored, err := configMaps.Engine().Get(ctx, "default/colors", engine.GetOptions{}) // without the network
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.Value.Data, stored.Value.UID != "")
	// Output: map[door:green] true
}

// An operator's tests install its definitions through the API, as in a cluster.
func Example_definitions() {
	ctx := context.Background()
	definitions, err := apiextensions.New(ctx, apiextensions.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer definitions.Close()
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{definitions}})
	if err != nil {
		log.Fatal(err)
	}
	if err := definitions.Start(ctx, handler); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	cfg := &rest.Config{Host: server.URL}
	_, err = envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{"../registry/crd/testdata/widgets.yaml"}})
	if err != nil {
		log.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		log.Fatal(err)
	}
	widgets, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(widgets.GetKind(), len(widgets.Items))
	// Output: WidgetList 0
}
