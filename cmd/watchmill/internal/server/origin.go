package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// originKinds returns the kinds that the server of --upstream serves, each in the version that this
// prefers. What discovery does not tell, it takes from the server's definitions, if it may read them.
func (o *Options) originKinds(ctx context.Context, log *slog.Logger) ([]kind, error) {
	cfg, err := o.origin(log)
	if err != nil {
		return nil, err
	}
	served, err := remote.Kinds(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("--upstream: %w", err)
	}
	if len(served) == 0 {
		return nil, &engine.ConfigError{Field: "--upstream", Problem: fmt.Sprintf("is %s, which serves no kind that can be watched", o.Upstream)}
	}
	definitions, err := originDefinitions(ctx, cfg, served, log)
	if err != nil {
		return nil, fmt.Errorf("--upstream: the definitions of the kinds: %w", err)
	}
	var all []kind
	for _, s := range served {
		found := o.Core.replica(s.Kind)
		found.Schema, found.ReadOnly = s.Schema, s.ReadOnly
		k := kind{versions: []registry.Config[object]{found}}
		if definition := definitions[s.Kind.GroupResource().String()]; definition != nil {
			if defined, err := originKind(definition); err == nil {
				k = defined
			} else {
				log.Warn("a kind has no columns, selectable fields and scale: its definition cannot be used", "error", err)
			}
			k.definition = definition
		}
		if s.Kind.GroupResource() == definitionResource {
			k.versions[0].Columns, k.versions[0].NoAge = apiextensions.Columns(), true
			k.versions[0].StrategicMerge, k.versions[0].Decoders = strategic.Untagged, definitionDecoders // as at the origin
			k.defines = definitions != nil
		}
		all = append(all, k)
	}
	return all, nil
}

// definitionResource is that of CustomResourceDefinitions.
var definitionResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// originDefinitions returns the definitions that the origin has, by name; nil if it serves none, or the token
// must not list them.
func originDefinitions(ctx context.Context, cfg remote.Config, served []remote.Served, log *slog.Logger) (map[string]*object, error) {
	i := slices.IndexFunc(served, func(s remote.Served) bool { return s.Kind.GroupResource() == definitionResource })
	if i < 0 {
		return nil, nil
	}
	list, err := listOrigin(ctx, cfg, served[i].Kind)
	var refused *remote.StatusError
	if errors.As(err, &refused) && refused.Status.Code == http.StatusForbidden {
		log.Warn("kinds have no columns, selectable fields and scales, and those of the start stay: the token must not list their definitions", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]*object{}
	for _, o := range list {
		all[o.Key] = &o.Value
	}
	return all, nil
}

// originKind returns the kind of a definition of the origin, in the version that clients prefer. It has what
// the definition tells of reading the kind, and of writing only that an update has to name a revision: the origin
// completes and checks what is written, by the definition that it has by then.
func originKind(definition *object) (kind, error) {
	unconverted := definition.DeepCopy()
	unstructured.RemoveNestedField(unconverted.Object, "spec", "conversion") // the origin converts
	d, err := crd.Define(unconverted)
	if err != nil {
		return kind{}, err
	}
	versions := d.Versions()
	if len(versions) == 0 {
		return kind{}, fmt.Errorf("%s serves no version", definition.GetName())
	}
	preferred := slices.MaxFunc(versions, func(a, b *crd.Definition) int {
		return version.CompareKubeAwareVersionStrings(a.Kind.Version, b.Kind.Version)
	}).Config()
	return kind{versions: []registry.Config[object]{{
		Kind: preferred.Kind, Schema: preferred.Schema, Columns: preferred.Columns, NoAge: preferred.NoAge,
		Fields: preferred.Fields, HiddenFields: preferred.HiddenFields, Scale: preferred.Scale, Deprecated: preferred.Deprecated,
		Strategy: registry.Strategy[object]{RevisionRequired: preferred.Strategy.RevisionRequired},
	}}}, nil
}

// listOrigin lists the objects of a kind at the origin.
func listOrigin(ctx context.Context, origin remote.Config, of registry.Kind) (_ []*engine.Object[object], err error) {
	uncached := registry.Config[object]{Kind: of}
	uncached.Engine.NoCache = true
	opened, err := (&data{origin: &origin}).open(ctx, kind{versions: []registry.Config[object]{uncached}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.close()) }()
	list, err := opened.stores[0].Engine().List(ctx, engine.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
