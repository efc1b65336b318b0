package server

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// object is the type of the objects of all kinds.
type object = unstructured.Unstructured

// data is the storage of the objects of all kinds, on one host.
type data struct {
	host   *engine.Host
	file   *bolt.File     // nil in memory
	origin *remote.Config // nil if the server is no replica
	stores []*registry.Store[object]
	// backends are the backends below the stores, other than those in memory.
	backends []io.Closer
}

// openData opens the storage that --data or --upstream names, and a host for the engines.
func openData(opts *Options, hostConfig engine.HostConfig) (*data, error) {
	d, where := &data{}, opts.Data
	name, isFile := strings.CutPrefix(where, "bolt:")
	switch {
	case opts.Upstream != "" && where != "memory":
		return nil, &engine.ConfigError{Field: "--data", Problem: "cannot be given beside --upstream: a replica's objects are at the server that it follows"}
	case opts.Upstream != "":
		origin, err := opts.origin()
		if err != nil {
			return nil, err
		}
		d.origin = &origin
	case isFile && name != "":
		var err error
		if d.file, err = bolt.Open(name, bolt.Options{}); err != nil {
			return nil, err
		}
	case where != "memory":
		return nil, &engine.ConfigError{Field: "--data", Problem: fmt.Sprintf("is %q; give memory, or bolt:FILE", where)}
	}
	host, err := engine.NewHost(hostConfig)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.host = host
	return d, nil
}

// open opens the store of a kind.
func (d *data) open(k kind) (*registry.Store[object], error) {
	cfg := k.config
	cfg.Engine.Host = d.host
	if err := d.addBackend(&cfg); err != nil {
		return nil, err
	}
	s, err := registry.New(cfg)
	if err != nil {
		return nil, err
	}
	d.stores = append(d.stores, s)
	return s, nil
}

// addBackend sets the kind's backend, if its objects are not in memory.
func (d *data) addBackend(cfg *registry.Config[object]) error {
	switch {
	case d.origin != nil:
		format, err := registry.FormatOf(*cfg)
		if err != nil {
			return err
		}
		there, err := remote.New(format, *d.origin)
		if err != nil {
			return err
		}
		d.backends, cfg.Engine.Backend = append(d.backends, there), there
	case d.file != nil:
		log, err := bolt.New(d.file, cfg.Kind.Plural+"."+cfg.Kind.Group, bolt.Config{Schema: registry.Schema(*cfg)})
		if err != nil {
			return err
		}
		d.backends, cfg.Engine.Backend = append(d.backends, log), log
	}
	return nil
}

// close closes everything, each part before those that it uses.
func (d *data) close() error {
	var errs []error
	for _, s := range d.stores {
		errs = append(errs, s.Close())
	}
	for _, b := range d.backends {
		errs = append(errs, b.Close())
	}
	if d.file != nil {
		errs = append(errs, d.file.Close())
	}
	if d.host != nil {
		errs = append(errs, d.host.Close())
	}
	return errors.Join(errs...)
}
