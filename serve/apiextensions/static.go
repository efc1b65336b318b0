package apiextensions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/ownhost"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

// Static are CustomResourceDefinitions that clients can read and not change: those of the kinds that a
// program serves from manifests by itself. By them clients learn what discovery does not tell, such as the
// columns of a kind, and wait until it is Established. Make them with [NewStatic].
type Static struct {
	store   *registry.Store[object]
	ownHost *ownhost.Host
}

// StaticConfig configures [Static].
type StaticConfig struct {
	// Manifests are the definitions of the kinds that the program serves: see [crd.Definition].Manifest.
	Manifests []*unstructured.Unstructured
	// Host is as in [Config]. It may be deterministic.
	Host *engine.Host
}

// NewStatic returns the definitions in the manifests, to be served. All say that their kinds are
// Established. Each has the same UID whenever the program starts again. Close them when done.
//
// Errors: [engine.ErrConfig], a [crd.ErrManifest] of a manifest that defines no kind, [engine.ErrExists] for two of
// one name, those of a closed host, and ctx's cause.
func NewStatic(ctx context.Context, cfg StaticConfig) (_ *Static, err error) {
	if err := engine.ValidateHost("Host", cfg.Host); err != nil {
		return nil, err
	}
	s := &Static{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	rules, err := kindOfDefinitions(crd.Options{})
	if err != nil {
		return nil, err
	}
	if rules.Engine.Host, s.ownHost, err = ownhost.Of(cfg.Host); err != nil {
		return nil, err
	}
	rules.ReadOnly = true
	if s.store, err = registry.New(rules); err != nil {
		return nil, err
	}
	for i, manifest := range cfg.Manifests {
		if manifest == nil {
			return nil, &engine.ConfigError{Field: "Manifests", Problem: fmt.Sprintf("has nil at %d; give the Manifest of a definition that Parse of package registry/crd has made", i)}
		}
		if _, err := crd.Define(manifest); err != nil {
			return nil, err
		}
		shown := established(manifest, rules, s.store.Engine().Host().Clock().Now())
		if _, err := s.store.Engine().Create(ctx, *shown); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// established returns the definition in a manifest as it is once its kind is served. Of the metadata it
// has what a user may set.
func established(manifest *object, rules registry.Config[object], now time.Time) *object {
	o := &object{Object: map[string]any{
		"apiVersion": rules.Kind.GroupVersionKind().GroupVersion().String(), "kind": rules.Kind.Kind,
		"spec": runtime.DeepCopyJSONValue(manifest.Object["spec"]),
	}}
	o.SetName(manifest.GetName())
	o.SetLabels(manifest.GetLabels())
	o.SetAnnotations(manifest.GetAnnotations())
	o.SetUID(types.UID(uuid.NewSHA1(uuid.NameSpaceDNS, []byte(manifest.GetName())).String()))
	o.SetCreationTimestamp(metav1.NewTime(now.UTC().Truncate(time.Second)))
	o.SetGeneration(1)
	rules.Prune(o)
	rules.Strategy.Default(o)
	noteStored(o)
	status := part(o.Object, "status")
	status["acceptedNames"] = runtime.DeepCopyJSONValue(part(part(o.Object, "spec"), "names"))
	for _, c := range servedConditions {
		setCondition(status, c, now)
	}
	return o
}

// Resources returns the kind of the definitions, so that Static is a [serve.Provider].
func (s *Static) Resources() []registry.Resource { return s.store.Resources() }

// Close closes the definitions, which ends their watches. Calling it again does nothing.
func (s *Static) Close() error {
	var err error
	if s.store != nil {
		err = s.store.Close()
	}
	return errors.Join(err, s.ownHost.Close())
}
