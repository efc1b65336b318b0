package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store/backend"
)

// kind is a kind to serve.
type kind struct {
	// versions are the configurations of its versions, which have the same objects.
	versions []registry.Config[object]
	// manifest is the file that defines it, "" if the server that a replica follows does.
	manifest string
	// definition is what the manifest has or, for a replica, what the server that it follows has; nil if that
	// has none of the kind.
	definition *object
	// notes describe the parts of the manifest that the server does not honour.
	notes []string
	// defines: the objects of the kind are those definitions, and the replica may read them.
	defines bool
}

// kinds returns the kinds that the manifests define or, for a replica without manifests,
// those that the server that it follows serves.
func (o *Options) kinds(ctx context.Context, log *slog.Logger) ([]kind, error) {
	switch {
	case len(o.CRDs) > 0:
		return o.definedKinds()
	case o.AllowCRDs, o.CoreKinds:
		return nil, nil
	case o.Upstream == "":
		return nil, o.noKinds()
	}
	return o.originKinds(ctx, log)
}

// noKinds is the error of a server without kinds.
func (o *Options) noKinds() error {
	problem := "is missing; give a manifest, a server to follow with --upstream, or --allow-crds"
	if o.Core != nil {
		problem += ", or --core-kinds"
	}
	return &engine.ConfigError{Field: "--crd", Problem: problem}
}

// notesOf returns the notes about kinds.
func notesOf(kinds []kind) map[schema.GroupResource][]string {
	all := map[schema.GroupResource][]string{}
	for _, k := range kinds {
		all[k.name()] = k.notes
	}
	return all
}

// definedKinds reads the manifests.
func (o *Options) definedKinds() ([]kind, error) {
	var all []kind
	for _, name := range o.CRDs {
		file, err := os.Open(name)
		if err != nil {
			return nil, &engine.ConfigError{Field: "--crd", Problem: "cannot be read: " + err.Error()}
		}
		some, err := crd.Options{Rules: o.Rules}.Parse(file)
		var unreadable *fs.PathError
		err = errors.Join(err, file.Close())
		switch {
		case errors.As(err, &unreadable):
			return nil, &engine.ConfigError{Field: "--crd", Problem: "cannot be read: " + unreadable.Error()}
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, d := range some {
			if slices.ContainsFunc(all, func(k kind) bool { return k.name() == d.Kind.GroupResource() }) {
				return nil, &engine.ConfigError{Field: "--crd", Problem: fmt.Sprintf("defines %s.%s twice, again in %s; give each kind once", d.Kind.Plural, d.Kind.Group, name)}
			}
			all = append(all, definedKind(d, name))
		}
	}
	return all, nil
}

// name returns the name that the versions have in common.
func (k *kind) name() schema.GroupResource { return k.versions[0].Kind.GroupResource() }

// definedKind returns the kind that a manifest defines, with server-side apply.
func definedKind(d *crd.Definition, manifest string) kind {
	k := kind{manifest: manifest, definition: d.Manifest, notes: d.Notes}
	types := apply.Versions(d.Schemas())
	for _, v := range d.Versions() {
		cfg := v.Config()
		cfg.Apply = types
		if _, err := apply.New(cfg.Kind, cfg.Schema); err != nil {
			cfg.Apply = apply.Deduced
			k.notes = append(k.notes, fmt.Sprintf("server-side apply of version %s treats every list as a single field: %v", cfg.Kind.Version, err))
		}
		k.versions = append(k.versions, cfg)
	}
	return k
}

// fits returns an error if storage has objects of the kind from a time when it had the other scope:
// they would be listed, and could be neither read nor deleted. All have one scope, so it looks at one
// of them.
func (k *kind) fits(ctx context.Context, objects backend.Backend) error {
	first, err := objects.List(ctx, backend.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	for _, o := range first.Items {
		was, now := "Cluster", "Cluster"
		if strings.Contains(o.Key, "/") {
			was = "Namespaced"
		}
		if !k.versions[0].Kind.ClusterScoped {
			now = "Namespaced"
		}
		if was != now {
			return &engine.ConfigError{Field: "--crd", Problem: fmt.Sprintf("has %s with the scope %s, in %s, but --data has such objects with the scope %s, as %q: set spec.scope to that, or give other --data", k.name(), now, k.manifest, was, o.Key)}
		}
	}
	return nil
}
