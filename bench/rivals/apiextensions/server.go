package apiextensions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	crd "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apiextensions-apiserver/test/integration/fixtures"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// Server returns the server as a contender.
func Server() bench.Contender { return bench.Contender{Name: "apiextensions", Custom: start} }

// etcdVariable tells the fixture which etcd to use.
const etcdVariable = "KUBE_INTEGRATION_ETCD_URL"

// running is a server and what it runs on, to be stopped in the opposite order.
type running struct{ stops []func() error }

func (r *running) onStop(stop func() error) { r.stops = append(r.stops, stop) }

func (r *running) stop() error {
	var failed []error
	for i := len(r.stops) - 1; i >= 0; i-- {
		failed = append(failed, r.stops[i]())
	}
	return errors.Join(failed...)
}

// start starts an etcd and the server, and installs the kind.
func start(context.Context) (*bench.Endpoint, error) {
	r := new(running)
	config, err := r.start()
	if err == nil {
		err = install(config)
	}
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return &bench.Endpoint{
		Addr: strings.TrimPrefix(config.Host, "https://"), Roots: config.CAData, Name: config.ServerName, Token: config.BearerToken, Stop: r.stop,
	}, nil
}

// start returns how to reach the server.
func (r *running) start() (*rest.Config, error) {
	dir, err := os.MkdirTemp("", "watchmill-bench-*")
	if err != nil {
		return nil, err
	}
	r.onStop(func() error { return os.RemoveAll(dir) })
	etcd, err := etcdtest.Run(dir, nil)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	r.onStop(func() error { etcd.Close(); return nil })
	if err := os.Setenv(etcdVariable, "http://"+etcd.Endpoint); err != nil {
		return nil, err
	}
	stop, config, _, err := fixtures.StartDefaultServer(quiet{})
	if err != nil {
		return nil, fmt.Errorf("starting apiextensions-apiserver: %w", err)
	}
	r.onStop(func() error { stop(); return nil })
	return config, nil
}

// quiet takes what the fixture logs.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}
func (quiet) Logf(string, ...any)   {}

// install creates the kind, and returns when the server serves it from its watch cache.
func install(config *rest.Config) error {
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var defined crd.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(bench.CustomDefinition), &defined); err != nil {
		return err
	}
	if _, err := fixtures.CreateNewV1CustomResourceDefinition(&defined, definitions, objects); err != nil {
		return fmt.Errorf("creating the kind: %w", err)
	}
	return nil
}
