package registry

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// VirtualConfig describes a kind whose objects are not stored: a client creates an object to ask,
// and the answer is the same object, completed. Kubernetes' reviews of access are such kinds.
type VirtualConfig[T any] struct {
	// Kind names the kind. It has no subresources.
	Kind Kind
	// Schema and Decoders are as in [Config].
	Schema   json.RawMessage
	Decoders map[string]func(body []byte) ([]byte, error)
	// Answer completes an object that a client has sent. It is called concurrently, and obj is
	// the call's own. Errors are those of a write: an [*InvalidError], a [*BadRequestError], a
	// StatusError of k8s.io/apimachinery; others mean that the answer is not known now. Required.
	Answer func(ctx context.Context, obj *T) error
}

// Virtual is a kind whose objects are not stored, to be served. Make one with [NewVirtual]. It is safe
// for concurrent use and has nothing to close.
type Virtual struct{ resource *virtual }

// NewVirtual returns the kind that cfg describes.
//
// Errors: [engine.ErrConfig], as an [*engine.ConfigError] that names the field.
func NewVirtual[T any, P Ptr[T]](cfg VirtualConfig[T]) (*Virtual, error) {
	if cfg.Answer == nil {
		return nil, &engine.ConfigError{Field: "Answer", Problem: "is missing; give the function that completes an object"}
	}
	return newVirtual[T, P]("VirtualConfig.Answer", cfg.Kind, cfg.Schema, cfg.Decoders, func(ctx context.Context, o *store.Object, _ *WriteOptions) error {
		return cfg.Answer(ctx, valueOf[T](o))
	})
}

// newVirtual returns a kind whose objects the function of that name answers.
func newVirtual[T any, P Ptr[T]](name string, kind Kind, schema json.RawMessage, decoders map[string]func([]byte) ([]byte, error), answer answerFunc) (*Virtual, error) {
	of := Config[T]{Kind: kind.withDefaults(), Schema: schema, Decoders: maps.Clone(decoders)}
	of.Kind.Status = false
	if err := of.validate(); err != nil {
		return nil, err
	}
	of.Schema = of.openAPISchema()
	return &Virtual{&virtual{
		form:   formOf[T, P](&of),
		info:   Info{Kind: of.Kind, Verbs: []string{"create"}, Schema: of.Schema, Decoders: of.Decoders},
		name:   name,
		answer: answer,
	}}, nil
}

// answerFunc completes an object that a client has sent.
type answerFunc func(ctx context.Context, o *store.Object, opts *WriteOptions) error

// Resources returns the kind, for a server.
func (v *Virtual) Resources() []Resource { return []Resource{v.resource} }

// virtual is a [Resource] that has the verb create alone.
type virtual struct {
	form *form
	info Info
	// answer is the user's function, and name its name.
	name   string
	answer answerFunc
}

// Info describes the resource.
func (v *virtual) Info() *Info { return &v.info }

// Create completes the object in body, which is JSON.
func (v *virtual) Create(ctx context.Context, namespace string, body []byte, opts WriteOptions) (Item, error) {
	o, err := v.form.decode(body, &opts)
	if err != nil {
		return Item{}, err
	}
	m := v.form.meta(o)
	if err := v.form.setNamespace(m, namespace); err != nil {
		return Item{}, err
	}
	return v.complete(ctx, o, &opts)
}

// complete answers with the object as the function completes it.
func (v *virtual) complete(ctx context.Context, o *store.Object, opts *WriteOptions) (it Item, err error) {
	m := v.form.meta(o)
	objectmeta.DropSystemFields(m)
	m.SetResourceVersion("")
	o.Key = v.form.keyOf(o)
	if panicked := usercode.Call(v.name, o.Key, func() { err = v.answer(ctx, o, opts) }); panicked != nil {
		return Item{}, panicked
	}
	if err != nil {
		return Item{}, err
	}
	return Item{o, v.form}, nil
}

// Readiness is that of an engine that has nothing to read before it serves.
func (v *virtual) Readiness() engine.Readiness { return engine.Readiness{Ready: true} }

func (*virtual) isResource() {}

// The methods below are for verbs that a virtual kind does not have, which a server refuses by
// Info.

func (v *virtual) Get(context.Context, string, engine.GetOptions) (Item, error) {
	return Item{}, engine.ErrUnsupported
}

func (v *virtual) List(context.Context, engine.ListOptions) (Page, error) {
	return Page{}, engine.ErrUnsupported
}

func (v *virtual) Watch(context.Context, engine.WatchOptions) (Stream, error) {
	return nil, engine.ErrUnsupported
}

func (v *virtual) WaitForRevision(context.Context, engine.Revision) error {
	return engine.ErrUnsupported
}

func (v *virtual) Timeline(context.Context) (engine.Timeline, error) {
	return engine.Timeline{}, engine.ErrUnsupported
}

func (v *virtual) Update(context.Context, string, func(Item) ([]byte, error), WriteOptions) (Item, bool, error) {
	return Item{}, false, engine.ErrUnsupported
}

func (v *virtual) Apply(context.Context, string, []byte, WriteOptions) (Item, bool, error) {
	return Item{}, false, engine.ErrUnsupported
}

func (v *virtual) Delete(context.Context, string, DeleteOptions) (Item, bool, error) {
	return Item{}, false, engine.ErrUnsupported
}

func (v *virtual) DeleteCollection(context.Context, engine.ListOptions, DeleteOptions) (Page, error) {
	return Page{}, engine.ErrUnsupported
}
