package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/convert"
	"github.com/watchmill/watchmill/registry/internal/reads"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Store holds the objects of one kind and applies its rules to every write. Make one with
// [New]. All methods are safe for concurrent use; they block as long as storage does, and
// ctx bounds them.
type Store[T any] struct {
	engine *engine.Engine[T]
	core   *core
}

// core is a [Store] without its type of objects. It has the order of a write's steps; what a step takes that
// needs no store is in packages of its own:
//
//	jsonlimit    which JSON is parsed
//	layout       values to JSON and back
//	patch        documents as patches change them
//	scale        objects as their scales
//	objectmeta   the rules for metadata
//	fielderrors  how much of what is wrong is told
//	convert      the form that storage has
//	reads        the engine without its type
type core struct {
	*form
	admit  []Admitter
	schema json.RawMessage
	fields reads.Fields // that selectors may name
	// ttl is how long an object lives after a write, zero for ever.
	ttl time.Duration
	// readOnly: the users of Resources cannot write.
	readOnly bool
	// noDeleteCollection: nor can they delete objects together.
	noDeleteCollection bool
	// garbageCollected: a garbage collector orphans and deletes what the objects own.
	garbageCollected bool
	// deprecated is the warning for clients.
	deprecated string
	// storageVersion is empty if the store is a replica.
	storageVersion string
	// decoders are for bodies that are not JSON, by media type.
	decoders map[string]func([]byte) ([]byte, error)
	engine   reads.Engine
	// storage takes the writes until the engine stops taking writes. The engine's typed
	// methods do not suffice: they do not return the object that is replaced.
	storage *backend.Storage
	// converts is the backend that converts the objects of storage; nil if it has them as they are shown.
	converts *convert.Backend
	now      func() time.Time
	// forwarder takes the writes in place of storage if the store is a replica.
	forwarder Forwarder
	// applier is nil if there is no server-side apply.
	applier Applier
	// mergeObject and mergeScale are nil if there are no strategic merge patches.
	mergeObject, mergeScale Merge
}

// New opens a store over an engine of its own. Close it when done.
//
// Errors: [engine.ErrConfig], as an [*engine.ConfigError] that names the field.
func New[T any, P Ptr[T]](cfg Config[T]) (*Store[T], error) {
	cfg.Kind = cfg.Kind.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Schema = cfg.openAPISchema()
	forwarder := forwarderOf(cfg.Engine.Backend)
	applier, err := cfg.applier()
	if err != nil {
		return nil, err
	}
	mergeObject, mergeScale, err := cfg.merges()
	if err != nil {
		return nil, err
	}
	converts := useConversion[T, P](&cfg)
	e, err := engine.New(engineConfig[T, P](&cfg))
	if err != nil {
		return nil, err
	}
	if converts != nil {
		converts.ReadFrom(engine.CachedOf(e))
	}
	f := formOf[T, P](&cfg)
	storage := storageOf(e, f.schema, converts != nil)
	c := &core{
		form: f, admit: slices.Clone(cfg.Admit), schema: cfg.Schema, deprecated: cfg.Deprecated, storageVersion: cfg.storageVersion(),
		fields: reads.FieldsOf(slices.Collect(maps.Keys(cfg.Fields)), cfg.HiddenFields), readOnly: cfg.ReadOnly, noDeleteCollection: cfg.NoDeleteCollection, ttl: cfg.TTL, garbageCollected: cfg.GarbageCollection, decoders: maps.Clone(cfg.Decoders),
		engine: reads.Over(storage.Backend(), typedReads[T]{e}, cfg.Engine.NoCache), now: e.Host().Clock().Now,
		storage: storage, converts: converts, forwarder: forwarder,
		applier: applier, mergeObject: mergeObject, mergeScale: mergeScale,
	}
	return &Store[T]{engine: e, core: c}, nil
}

// applier returns the kind's server-side apply, nil if there is none or another server has it.
func (c *Config[T]) applier() (Applier, error) {
	if c.Apply == nil || forwarderOf(c.Engine.Backend) != nil {
		return nil, nil
	}
	applier, err := c.Apply(c.Kind, c.Schema)
	if err != nil {
		return nil, &engine.ConfigError{Field: "Apply", Problem: "refuses the kind: " + err.Error()}
	}
	return applier, nil
}

// storageVersion returns the version in which storage has the objects, "" for a replica.
func (c *Config[T]) storageVersion() string {
	if forwarderOf(c.Engine.Backend) != nil {
		return ""
	}
	return cmp.Or(c.StorageVersion, c.Kind.Version)
}

// Create stores value by the rules of the kind and returns it as stored. value must not
// be changed afterwards.
//
// Errors: [engine.ErrExists], [*InvalidError], [*BadRequestError], [*AdmissionError], a
// panic of the kind's rules or of an admitter as a [*usercode.PanicError],
// [engine.ErrEngineClosed], ctx's cause, or that of storage. At a replica a refusal by the origin's
// admission is an error of storage: see [Forwarder].
func (s *Store[T]) Create(ctx context.Context, value T, opts WriteOptions) (*engine.Object[T], error) {
	draft := s.core.layout.Draft(store.Header(&engine.Object[T]{Value: value}))
	namespace := s.core.meta(draft).GetNamespace()
	if s.core.forwarder != nil {
		if s.core.kind.ClusterScoped {
			namespace = "" // of the path: the origin drops the object's
		}
		body, err := s.core.encodeDraft(draft, nil)
		if err != nil {
			return nil, err
		}
		o, err := forwarding{s.core}.create(ctx, namespace, body, opts)
		return store.As[engine.Object[T]](o), err
	}
	draft, err := s.core.prunedDraft(draft, &opts)
	if err != nil {
		return nil, err
	}
	if err := s.core.defaultDraft(draft); err != nil {
		return nil, err
	}
	o, err := s.core.create(ctx, draft, namespace, opts)
	return store.As[engine.Object[T]](o), err
}

// Update replaces the object under key by the one that change returns, and returns it as
// stored. change may be called several times and must not alter its argument. The argument
// is nil if there is no object and the kind creates on update; created reports that.
//
// If an object is being deleted, the update that removes its last finalizer deletes it and
// returns its last state.
//
// Errors: [engine.ErrNotFound], [engine.ErrConflict], that of change, and as for Create.
func (s *Store[T]) Update(ctx context.Context, key string, change func(old *engine.Object[T]) (T, error), opts WriteOptions) (o *engine.Object[T], created bool, err error) {
	return s.update(ctx, key, "", change, opts)
}

// UpdateStatus is Update of the status and the metadata alone, or of only the status with
// [Strategy].StatusOnly. It creates nothing.
//
// Errors: [engine.ErrUnsupported] if the kind has no status subresource, and as for Update.
func (s *Store[T]) UpdateStatus(ctx context.Context, key string, change func(old *engine.Object[T]) (T, error), opts WriteOptions) (*engine.Object[T], error) {
	if err := s.core.checkStatus(key); err != nil {
		return nil, err
	}
	o, _, err := s.update(ctx, key, statusSubresource, change, opts)
	return o, err
}

// UpdatePart is Update of one of [Kind].Parts, by its name. It creates nothing.
//
// Errors: [engine.ErrUnsupported] if the kind has no such part, and as for Update.
func (s *Store[T]) UpdatePart(ctx context.Context, key, part string, change func(old *engine.Object[T]) (T, error), opts WriteOptions) (*engine.Object[T], error) {
	if s.core.kind.part(part) == nil {
		return nil, fmt.Errorf("%s of %q: %w: Kind.Parts of %s has no such part", part, key, engine.ErrUnsupported, s.core.kind.Kind)
	}
	o, _, err := s.update(ctx, key, part, change, opts)
	return o, err
}

// checkStatus refuses a write of the status of a kind that has no such subresource.
func (c *core) checkStatus(key string) error {
	if c.kind.Status {
		return nil
	}
	return fmt.Errorf("status of %q: %w: Kind.Status of %s is not set", key, engine.ErrUnsupported, c.kind.Kind)
}

func (s *Store[T]) update(ctx context.Context, key, subresource string, change func(old *engine.Object[T]) (T, error), opts WriteOptions) (*engine.Object[T], bool, error) {
	if change == nil {
		return nil, false, &engine.ConfigError{Field: "change", Problem: "is nil; give a function that returns the new value"}
	}
	produce := func(old *store.Object) (*store.Object, error) {
		value, err := change(store.As[engine.Object[T]](old))
		if err != nil {
			return nil, err
		}
		return s.core.layout.Draft(store.Header(&engine.Object[T]{Value: value})), nil
	}
	if s.core.forwarder != nil {
		o, created, err := forwarding{s.core}.update(ctx, key, subresource, s.core.encoded(produce), opts)
		return store.As[engine.Object[T]](o), created, err
	}
	o, created, err := s.core.update(ctx, key, subresource, s.core.completed(produce, &opts), opts)
	return store.As[engine.Object[T]](o), created, err
}

// Delete deletes the object under key, or marks it if finalizers, a grace period or
// [Strategy].Keep keep it; gone reports which. It returns the object as marked, or its last state.
//
// Errors: [engine.ErrNotFound], [engine.ErrConflict], [*BadRequestError],
// [*AdmissionError], [engine.ErrEngineClosed], ctx's cause, or that of storage.
func (s *Store[T]) Delete(ctx context.Context, key string, opts DeleteOptions) (o *engine.Object[T], gone bool, err error) {
	header, gone, err := s.core.delete(ctx, key, opts)
	return store.As[engine.Object[T]](header), gone, err
}

// DeleteCollection deletes the objects that which selects, one by one, as Delete does, and
// returns how many it deleted or marked: at most which.Limit, if that is not zero. It
// stops at the first error. Objects that are gone by then are not counted, and are not an
// error. Errors: as for Delete, and for [engine.Engine.List]. The object that it stopped at is the
// Key of a [*ConflictError] and of an [*AdmissionError].
func (s *Store[T]) DeleteCollection(ctx context.Context, which engine.ListOptions, opts DeleteOptions) (int, error) {
	deleted, err := s.core.deleteCollection(ctx, which, opts)
	return len(deleted.Items), err
}

// Engine returns the engine below, for reads, watches and informers. Writes through it
// bypass the rules. Values of [engine.Engine.Emit] reach only watches in the process: a server
// leaves them out, and so replicas do not have them.
func (s *Store[T]) Engine() *engine.Engine[T] { return s.engine }

// Resources returns the kind as a [Resource], and the subresources that it has: first its
// status, then its scale, and those of [Kind].Parts, except that with Config.ReadOnly those are left out that cannot be
// read.
func (s *Store[T]) Resources() []Resource {
	all := []Resource{&resource{s.core, "", s.core.form}}
	if s.core.kind.Status {
		all = append(all, &resource{s.core, statusSubresource, s.core.form})
	}
	if s.core.scale != nil {
		all = append(all, &scaleResource{resource{s.core, scaleSubresource, s.core.scaleForm()}})
	}
	for _, p := range s.core.kind.Parts {
		if len(s.core.verbs(p.Name)) > 0 {
			all = append(all, &resource{s.core, p.Name, s.core.form})
		}
	}
	return all
}

// Close closes the engine below, which ends its watches. It blocks and fails as
// [engine.Engine.Close] does. A backend and a host that [Config].Engine has been given stay open.
func (s *Store[T]) Close() error { return s.engine.Close() }
