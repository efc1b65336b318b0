package server

import (
	"context"
	"errors"
	"log/slog"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// definitionDecoders decode the protobuf in which typed clients of Go send definitions.
var definitionDecoders = protobuf.Decoders[extensions.CustomResourceDefinition]("CustomResourceDefinition")

// definitions are the kinds that clients define, nil if they may not.
type definitions struct{ *apiextensions.Definitions }

// definitions opens the definitions, if clients may create them.
func (o *Options) definitions(ctx context.Context, d *data) (*definitions, error) {
	if !o.AllowCRDs {
		return nil, nil
	}
	opened, err := apiextensions.New(ctx, apiextensions.Config{
		Storage: d.storage, Host: d.host, Rules: o.Rules, GarbageCollection: o.GarbageCollector,
		Configure: func(c *registry.Config[object]) { c.Admit = d.admit },
		Decoders:  definitionDecoders, OnError: func(err error) { logControllerError(d.log, "definitions", "a definition is not served", err) },
	})
	if err != nil {
		return nil, err
	}
	return &definitions{opened}, nil
}

// logControllerError logs an error of the controller of definitions, or of namespaces: what has failed. One of the
// watch of these objects themselves is not one of an object: they are listed again.
func logControllerError(log *slog.Logger, objects, failed string, err error) {
	if listsAgain(err) {
		log.Warn("the watch of the "+objects+" has ended, and they are listed again", "error", err)
		return
	}
	log.Error(failed, "error", err)
}

// listsAgain reports whether an error of a controller is that of its source's watch, after which it lists again.
func listsAgain(err error) bool {
	source, ok := errors.AsType[*informer.SourceError](err)
	return ok && !source.Final
}

// shownDefinitions returns those of the kinds that the manifests define. There are none at a replica, which
// has those of the server that it follows, and none where clients define kinds.
func (o *Options) shownDefinitions(ctx context.Context, kinds []kind, host *engine.Host) (*apiextensions.Static, error) {
	if o.AllowCRDs || o.Upstream != "" {
		return nil, nil
	}
	cfg := apiextensions.StaticConfig{Host: host}
	for _, k := range kinds {
		cfg.Manifests = append(cfg.Manifests, k.definition)
	}
	return apiextensions.NewStatic(ctx, cfg)
}

// providers returns what the server is to serve of them.
func (d *definitions) providers() []serve.Provider {
	if d == nil {
		return nil
	}
	return []serve.Provider{d}
}

// start makes the server serve what they define.
func (d *definitions) start(ctx context.Context, server *serve.Server) error {
	if d == nil {
		return nil
	}
	return d.Start(ctx, server)
}

// closeSoon closes the definitions and their kinds. Unlike that of a file, the close of the storage of a kind
// waits for a disk that hangs without limit, which must not keep the process from ending.
func (d *definitions) closeSoon() error {
	if d == nil {
		return nil
	}
	return closeSoon("the storage of the kinds that clients have defined", d.Close)
}
