package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// ActionConfig describes a subresource that clients create to have something done with an object, as
// Kubernetes has the eviction of a pod and the token of a service account. Nothing is stored.
type ActionConfig[T any] struct {
	// Of is the kind of the objects, and Subresource the name in paths, such as "eviction". Both are
	// required.
	Of          Kind
	Subresource string
	// Kind names the kind of the objects that clients create. It has the scope of Of. Required.
	Kind Kind
	// Schema and Decoders are as in [Config].
	Schema   json.RawMessage
	Decoders map[string]func(body []byte) ([]byte, error)
	// Do does what obj asks for to the object under key, unless opts.DryRun is set, and completes obj, which
	// is the answer. It is called concurrently, even for an object that does not exist, and obj is the
	// call's own. Errors are those of a write. After other errors something may have been done, so a server
	// lets clients ask again by themselves only if they are [backend.Retryable]. Required.
	Do func(ctx context.Context, key string, obj *T, opts WriteOptions) error
}

// NewAction returns the subresource that cfg describes, to be served with the kind of its objects.
//
// Errors: [engine.ErrConfig], as an [*engine.ConfigError] that names the field.
func NewAction[T any, P Ptr[T]](cfg ActionConfig[T]) (*Virtual, error) {
	of := cfg.Of.withDefaults()
	if wrong, ok := errors.AsType[*engine.ConfigError](of.validate()); ok {
		return nil, &engine.ConfigError{Field: strings.Replace(wrong.Field, "Kind", "Of", 1), Problem: wrong.Problem}
	}
	switch {
	case cfg.Subresource == statusSubresource || cfg.Subresource == scaleSubresource || len(validation.IsDNS1035Label(cfg.Subresource)) > 0:
		return nil, &engine.ConfigError{Field: "Subresource", Problem: fmt.Sprintf("is %q; give a name such as eviction, but neither status nor scale", cfg.Subresource)}
	case cfg.Do == nil:
		return nil, &engine.ConfigError{Field: "Do", Problem: "is missing; give the function that does what clients ask for"}
	}
	kind := cfg.Kind
	kind.ClusterScoped = of.ClusterScoped
	v, err := newVirtual[T, P]("ActionConfig.Do", kind, cfg.Schema, cfg.Decoders, func(ctx context.Context, o *store.Object, opts *WriteOptions) error {
		return cfg.Do(ctx, o.Key, valueOf[T](o), *opts)
	})
	if err != nil {
		return nil, err
	}
	info := &v.resource.info
	info.Kind, info.Subresource, info.Object = of, cfg.Subresource, info.Kind
	return v, nil
}

// Actor is implemented by a [Resource] that is a subresource which clients create.
type Actor interface {
	// Act reads an object from body, as JSON, does what that asks for to the object under key, and
	// returns the answer.
	Act(ctx context.Context, key string, body []byte, opts WriteOptions) (Item, error)
}

// Act takes the name of the object from its key, and refuses another one in the body.
func (v *virtual) Act(ctx context.Context, key string, body []byte, opts WriteOptions) (Item, error) {
	if v.info.Subresource == "" {
		return Item{}, engine.ErrUnsupported
	}
	o, err := v.form.decode(body, &opts)
	if err != nil {
		return Item{}, err
	}
	namespace, name := SplitKey(key)
	m := v.form.meta(o)
	if err := v.form.setNamespace(m, namespace); err != nil {
		return Item{}, err
	}
	if given := m.GetName(); given != "" && given != name {
		return Item{}, badRequest("the name of the object, %q, is not that of the request, %q", given, name)
	}
	m.SetName(name)
	return v.complete(ctx, o, &opts)
}
