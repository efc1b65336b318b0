package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/remote"
)

// originKinds returns the kinds that the server of --upstream serves, each in the version that this
// prefers. What discovery does not tell, it takes from the server's definitions, if it may read them.
func (o *Options) originKinds(ctx context.Context, log *slog.Logger) ([]kind, error) {
	cfg, err := o.origin()
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
		of := registry.Config[object]{Kind: s.Kind, Schema: s.Schema}
		if d := definitions[s.Kind.GroupResource()]; d != nil && !addDefinition(&of, d) {
			log.Warn("a kind has no columns, selectable fields and scale of its definition, which does not tell those of its version",
				"kind", s.Kind.GroupResource(), "version", s.Kind.Version, "notes", strings.Join(d.Notes, "; "))
		}
		all = append(all, kind{versions: []registry.Config[object]{of}})
	}
	return all, nil
}

// definitionResource is that of CustomResourceDefinitions.
var definitionResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// originDefinitions returns the definitions that the origin has, by the kind that they define. The
// log gets those that cannot be used.
func originDefinitions(ctx context.Context, cfg remote.Config, served []remote.Served, log *slog.Logger) (map[schema.GroupResource]*crd.Definition, error) {
	i := slices.IndexFunc(served, func(s remote.Served) bool { return s.Kind.GroupResource() == definitionResource })
	if i < 0 {
		return nil, nil
	}
	list, err := listOrigin(ctx, cfg, served[i].Kind)
	var refused *remote.StatusError
	if errors.As(err, &refused) && refused.Status.Code == http.StatusForbidden {
		log.Warn("kinds have no columns, selectable fields and scales: the token must not list their definitions", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[schema.GroupResource]*crd.Definition{}
	for _, o := range list {
		d, err := crd.Define(&o.Value)
		if err != nil {
			log.Warn("a kind has no columns, selectable fields and scale: its definition cannot be used", "error", err)
			continue
		}
		all[d.Kind.GroupResource()] = d
	}
	return all, nil
}

// newOriginObjects returns the objects of a kind at the origin.
func newOriginObjects(kind registry.Config[object], origin remote.Config) (*remote.Backend, error) {
	format, err := registry.FormatOf(kind)
	if err != nil {
		return nil, err
	}
	return remote.New(format, origin)
}

// listOrigin lists the objects of a kind at the origin.
func listOrigin(ctx context.Context, origin remote.Config, of registry.Kind) (_ []*engine.Object[object], err error) {
	kind := registry.Config[object]{Kind: of}
	there, err := newOriginObjects(kind, origin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, there.Close()) }()
	kind.Engine.Backend, kind.Engine.NoCache = there, true
	s, err := registry.New(kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	list, err := s.Engine().List(ctx, engine.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// addDefinition adds to the configuration of a kind what its definition tells of reading it: columns,
// selectable fields and the scale. It does not add what is about writing, which the origin decides by the
// definition that it has by then. It reports whether the definition has the version.
func addDefinition(of *registry.Config[object], d *crd.Definition) bool {
	versions := d.Versions()
	i := slices.IndexFunc(versions, func(v *crd.Definition) bool { return v.Kind.Version == of.Kind.Version })
	if i < 0 {
		return false
	}
	defined := versions[i].Config()
	of.Columns, of.NoAge = defined.Columns, defined.NoAge
	of.Fields, of.HiddenFields = defined.Fields, defined.HiddenFields
	of.Scale, of.Deprecated = defined.Scale, defined.Deprecated
	return true
}

// origin returns the configuration of the client of the server that a replica follows.
func (o *Options) origin() (remote.Config, error) {
	// Clients that apply read from the replica, and their writes go to the origin, so both
	// need the managed fields.
	cfg := remote.Config{URL: o.Upstream, KeepManagedFields: true}
	if o.UpstreamTokenFile == "" {
		return cfg, nil
	}
	cfg.TokenSource = func(context.Context) (string, error) { return readToken(o.UpstreamTokenFile) }
	if _, err := readToken(o.UpstreamTokenFile); err != nil {
		return cfg, err
	}
	return cfg, nil
}

// readToken returns the token in the file of --upstream-token-file.
func readToken(name string) (string, error) {
	wrong := func(problem string) error {
		return &engine.ConfigError{Field: "--upstream-token-file", Problem: problem}
	}
	text, err := readFile(name)
	if err != nil {
		return "", wrong("cannot be read: " + err.Error())
	}
	token := string(bytes.TrimSpace(text))
	if token == "" {
		return "", wrong(fmt.Sprintf("is %s, which has no token; write one to it", name))
	}
	return token, nil
}
