package apiextensions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	crd "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apiextensions-apiserver/test/integration/fixtures"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// originalVariable makes a process of this test serve the kinds by Kubernetes' own server. It
// is the folder for the data of its etcd.
const originalVariable = "WATCHMILL_ORIGINAL_DIR"

// location is how to reach the server. Its process prints it as a line of JSON.
type location struct {
	URL, ServerName, Token string
	CA                     []byte
}

// serveOriginal starts an etcd and the server, prints where it is, and returns when the
// standard input ends.
func serveOriginal(dir string) error {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // it logs what is wrong with requests
	etcd, err := etcdtest.Run(dir, nil)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	// By this the fixture knows which etcd to use.
	if err := os.Setenv("KUBE_INTEGRATION_ETCD_URL", "http://"+etcd.Endpoint); err != nil {
		return err
	}
	stop, config, _, err := fixtures.StartDefaultServer(quiet{})
	if err != nil {
		return fmt.Errorf("starting apiextensions-apiserver: %w", err)
	}
	defer stop()
	if err := install(config); err != nil {
		return fmt.Errorf("installing the kinds: %w", err)
	}
	at := location{URL: config.Host, ServerName: config.ServerName, Token: config.BearerToken, CA: config.CAData}
	if err := json.NewEncoder(os.Stdout).Encode(at); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// quiet takes what the fixture logs.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}
func (quiet) Logf(string, ...any)   {}

// install creates the kinds, and returns when each is served.
func install(config *rest.Config) error {
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(kindsFile)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		definition := &crd.CustomResourceDefinition{}
		if err := documents.Decode(definition); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if definition, err = fixtures.CreateNewV1CustomResourceDefinitionWatchUnsafe(definition, definitions); err != nil {
			return err
		}
		resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: "v1", Resource: definition.Spec.Names.Plural}
		of := objects.Resource(resource)
		err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			_, err := of.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			return err == nil, nil
		})
		if err != nil {
			return err
		}
	}
}
