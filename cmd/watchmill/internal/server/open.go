package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// openKind is a kind whose storage is open. It is a [serve.Provider].
type openKind struct {
	kind
	// stores are those of its versions, all of the same objects.
	stores []*registry.Store[object]
	// backends are the backends that close closes. Those in the file are not among them: closing the
	// file closes them, and does not wait without limit for a disk that hangs.
	backends []io.Closer
}

// Resources returns the resources of all versions.
func (k *openKind) Resources() (all []registry.Resource) {
	for _, s := range k.stores {
		all = append(all, s.Resources()...)
	}
	return all
}

// awaitReady waits until all versions have read their objects, at most until ctx is done.
func (k *openKind) awaitReady(ctx context.Context) {
	for _, s := range k.stores {
		_ = s.Engine().WaitReady(ctx) // requests get its error
	}
}

// isReady reports whether all versions have read their objects.
func (k *openKind) isReady() bool {
	return !slices.ContainsFunc(k.stores, func(s *registry.Store[object]) bool { return !s.Engine().Readiness().Ready })
}

// close closes the stores, and then the storage.
func (k *openKind) close() error {
	var errs []error
	for _, s := range k.stores {
		errs = append(errs, s.Close())
	}
	for _, b := range k.backends {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// open opens the stores of a kind, one for each version. Unless it returns a kind, it leaves nothing open.
func (d *data) open(ctx context.Context, k kind) (opened *openKind, err error) {
	opened = &openKind{kind: k}
	defer func() {
		if err != nil {
			opened, err = nil, errors.Join(err, opened.close())
		}
	}()
	var objects backend.Backend // of all versions, nil if each has its own way to them
	if d.origin == nil {
		if objects, err = d.storage(ctx, k.name().String(), registry.Schema(k.versions[0])); err != nil {
			return opened, err
		}
		if d.file == nil {
			opened.backends = append(opened.backends, objects)
		}
		if err := k.fits(ctx, objects); err != nil {
			return opened, err
		}
	}
	for i, cfg := range k.versions {
		cfg.Engine.Host, cfg.Engine.Backend, cfg.GarbageCollection, cfg.Admit = d.host, objects, d.garbageCollected, d.admit
		if i > 0 {
			cfg.Engine.Name = k.name().String() + "/" + cfg.Kind.Version // the first has the name of the kind
		}
		if err := d.openVersion(opened, cfg); err != nil {
			return opened, err
		}
	}
	return opened, nil
}

// openVersion opens the store of a version.
func (d *data) openVersion(k *openKind, cfg registry.Config[object]) error {
	if d.origin != nil {
		there, err := d.replicaOf(cfg)
		if err != nil {
			return err
		}
		cfg.Engine.Backend, k.backends = there, append(k.backends, there)
	}
	s, err := registry.New(cfg)
	if err != nil {
		return err
	}
	k.stores = append(k.stores, s)
	return nil
}

// replicaOf returns the objects of a version at the server that this one follows.
func (d *data) replicaOf(cfg registry.Config[object]) (*remote.Backend, error) {
	format, err := registry.FormatOf(cfg)
	if err != nil {
		return nil, err
	}
	return remote.New(format, *d.origin)
}

// storage opens the storage of the objects of a kind.
func (d *data) storage(ctx context.Context, kind string, schema store.Schema) (backend.Backend, error) {
	switch {
	case d.file != nil:
		return bolt.New(d.file, kind, bolt.Config{Schema: schema, OnProgress: d.progress(kind)})
	case d.opener == nil:
		return memory.New(schema, memory.Options{})
	}
	there, err := d.opener(ctx, d.place, kind, schema, func(err error) { d.log.Warn("the storage of a kind has a problem", "kind", kind, "error", err) })
	if err != nil && !errors.Is(err, engine.ErrConfig) { // which names the flag
		err = fmt.Errorf("--data: %w", err)
	}
	if err == nil {
		d.failures.add(kind, there)
	}
	return there, err
}

// progressEvery is the time between two lines about the reading of a file.
const progressEvery = 5 * time.Second

// progress returns a function that logs how far the reading of a kind has got: the server listens
// only when all is read.
func (d *data) progress(kind string) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if time.Since(last) >= progressEvery {
			last = time.Now()
			d.log.Info("reading the file of objects", "kind", kind, "records", done, "of_about", total)
		}
	}
}
