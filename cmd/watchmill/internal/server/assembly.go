package server

import (
	"context"
	"errors"
	"slices"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/page"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/inspect"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// assembly is a server with what it serves.
type assembly struct {
	data        *data
	core        *coreKinds
	reviews     *reviews
	definitions *definitions
	shown       *apiextensions.Static
	following   *following
	snapshots   *snapshots
	audit       *auditLog
	server      *serve.Server
	// host is that of all engines, and page shows it; nil without --inspect.
	host *engine.Host
	page *inspect.Server
}

// assemble opens the storage of the kinds, which reads all objects of a file, and makes the server.
// It may make a file, so all that can be wrong with the options is found before it.
func (o *Options) assemble(ctx context.Context, kinds []kind, cfg serve.Config) (a *assembly, err error) {
	a = &assembly{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	var measured *metrics
	if o.Metrics {
		measured = newMetrics()
	}
	if err := a.openHost(o, measured.hostConfig(cfg.Logger)); err != nil {
		return a, err
	}
	if a.audit, err = o.openAudit(cfg.Logger); err != nil {
		return a, err
	}
	if a.audit != nil {
		cfg.Audit = a.audit.request
	}
	if a.data, err = openData(o, a.host, cfg.Logger); err != nil {
		return a, err
	}
	cfg.Checks = a.data.checks()
	if a.snapshots, err = o.snapshots(a.data.file, cfg.Logger); err != nil {
		return a, err
	}
	if err := measured.addTo(&cfg, a.host, slices.Concat(a.data.collectors(), a.snapshots.collectors(), a.audit.collectors())); err != nil {
		return a, err
	}
	if err := a.openKinds(ctx, o, kinds, &cfg); err != nil {
		return a, err
	}
	if a.server, err = serve.New(cfg); err != nil {
		return a, err
	}
	if err := a.definitions.start(ctx, a.server); err != nil {
		return a, err
	}
	if err := a.core.start(ctx, a.server); err != nil { // what a namespace has may be of all kinds
		return a, err
	}
	if a.following, err = a.data.follow(a.server); err != nil {
		return a, err
	}
	measured.observe(a.server)
	return a, nil
}

// openKinds opens all kinds, and adds them to what the server is to serve.
func (a *assembly) openKinds(ctx context.Context, o *Options, kinds []kind, cfg *serve.Config) (err error) {
	if a.core, err = o.coreKinds(ctx, a.data); err != nil {
		return err
	}
	if a.reviews, err = a.data.reviews(); err != nil {
		return err
	}
	cfg.Resources = append(append(cfg.Resources, a.core.providers()...), a.reviews)
	for _, k := range kinds {
		opened, err := a.data.open(ctx, k)
		if err != nil {
			return err
		}
		a.data.kinds = append(a.data.kinds, opened)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cfg.Resources = append(cfg.Resources, opened)
	}
	if a.definitions, err = o.definitions(ctx, a.data); err != nil {
		return err
	}
	cfg.Resources = append(cfg.Resources, a.definitions.providers()...)
	if a.shown, err = o.shownDefinitions(ctx, kinds, a.host); err == nil && a.shown != nil {
		cfg.Resources = append(cfg.Resources, a.shown)
	}
	return err
}

// openHost makes the host of the engines, and opens its page, which shows them while they still read
// their storage.
func (a *assembly) openHost(o *Options, cfg engine.HostConfig) (err error) {
	if a.host, err = engine.NewHost(cfg); err != nil || o.Inspect == "" {
		return err
	}
	if a.page, err = page.Listen(o.Inspect, a.host); err != nil {
		return err
	}
	cfg.Logger.Info("the engines can be inspected", "url", a.page.URL())
	return nil
}

// close closes what the server serves, each part before those that it uses.
func (a *assembly) close() error {
	err := errors.Join(a.core.closeSoon(), a.definitions.closeSoon(), a.following.close(), a.reviews.close())
	if a.shown != nil {
		err = errors.Join(err, a.shown.Close())
	}
	if a.data != nil {
		err = errors.Join(err, a.data.close())
	}
	if a.page != nil {
		err = errors.Join(err, a.page.Close())
	}
	if a.host != nil {
		err = errors.Join(err, a.host.Close())
	}
	return errors.Join(err, a.audit.close())
}

// discard closes a server that is complete only after an interrupt, whose error is the one to report.
func (a *assembly) discard() { _ = a.close() }
