package server

import (
	"context"

	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// definitions are the kinds that clients define, nil if they may not.
type definitions struct{ *apiextensions.Definitions }

// definitions opens the definitions, if clients may create them.
func (o *Options) definitions(ctx context.Context, d *data) (*definitions, error) {
	if !o.AllowCRDs {
		return nil, nil
	}
	opened, err := apiextensions.New(ctx, apiextensions.Config{
		Storage: d.storage, Host: d.host, Rules: o.Rules,
		OnError: func(err error) { d.log.Error("a definition is not served", "error", err) },
	})
	if err != nil {
		return nil, err
	}
	return &definitions{opened}, nil
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

func (d *definitions) close() error {
	if d == nil {
		return nil
	}
	return d.Close()
}
