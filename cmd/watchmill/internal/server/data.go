package server

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// object is what all kinds of the command are of.
type object = unstructured.Unstructured

// data is where the objects of all kinds live, on one host.
type data struct {
	host   *engine.Host
	file   *bolt.File // nil in memory
	stores []*registry.Store[object]
	logs   []*bolt.Backend
}

// openData opens what --data says.
func openData(where string) (*data, error) {
	d := &data{}
	name, isFile := strings.CutPrefix(where, "bolt:")
	switch {
	case isFile && name != "":
		var err error
		if d.file, err = bolt.Open(name, bolt.Options{}); err != nil {
			return nil, err
		}
	case where != "memory":
		return nil, &engine.ConfigError{Field: "--data", Problem: fmt.Sprintf("is %q; give memory, or bolt:FILE", where)}
	}
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.host = host
	return d, nil
}

// open opens the objects of a kind.
func (d *data) open(of *crd.Definition) (*registry.Store[object], error) {
	cfg := of.Config()
	cfg.Engine.Host = d.host
	if d.file != nil {
		log, err := bolt.New(d.file, of.Kind.Plural+"."+of.Kind.Group, bolt.Config{Schema: registry.Schema(cfg)})
		if err != nil {
			return nil, err
		}
		d.logs = append(d.logs, log)
		cfg.Engine.Backend = log
	}
	s, err := registry.New(cfg)
	if err != nil {
		return nil, err
	}
	d.stores = append(d.stores, s)
	return s, nil
}

// close closes everything, the upper parts first.
func (d *data) close() error {
	var errs []error
	for _, s := range d.stores {
		errs = append(errs, s.Close())
	}
	for _, log := range d.logs {
		errs = append(errs, log.Close())
	}
	if d.file != nil {
		errs = append(errs, d.file.Close())
	}
	if d.host != nil {
		errs = append(errs, d.host.Close())
	}
	return errors.Join(errs...)
}
