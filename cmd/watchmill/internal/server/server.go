package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/loopback"
	"github.com/watchmill/watchmill/internal/redact"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// Options are the flags of the command.
type Options struct {
	// Listen is the address, and CRDs are the files of manifests.
	Listen string
	CRDs   []string
	// AllowCRDs lets clients create definitions of other kinds.
	AllowCRDs bool
	// CoreKinds serves kinds of Kubernetes itself, such as Secrets. Core are those of the program; nil if it
	// has none.
	CoreKinds bool
	Core      *Core
	// EventTTL is how long an event of CoreKinds lives after its last change, zero for the default.
	EventTTL time.Duration
	// GarbageCollector: a garbage collector runs beside the server.
	GarbageCollector bool
	// Rules has the manifests' rules in CEL evaluated; nil has them noted.
	Rules crd.Rules
	// Data is "memory", "bolt:FILE", or a name in Storages with a colon and the place.
	Data     string
	Storages Storages
	// Upstream is the URL of a server to be a replica of, "" for none, and
	// UpstreamTokenFile has the bearer token for it.
	Upstream, UpstreamTokenFile string
	// UpstreamCAFile has the certificates of the authorities that sign that of Upstream, "" for the system's, and
	// UpstreamCertFile and UpstreamKeyFile are the certificate to show there, "" for none.
	UpstreamCAFile, UpstreamCertFile, UpstreamKeyFile string
	// Kubeconfig is the file in which to write a kubeconfig, "" for none.
	Kubeconfig string
	// TokenFile has the users with their tokens, "" for none. CertFile and KeyFile are
	// the certificate and the key for TLS, "" for HTTP without TLS.
	TokenFile, CertFile, KeyFile string
	// ClientCAFile has the certificates of the authorities that sign those of clients, ""
	// if clients have none.
	ClientCAFile string
	// Hosts are names that clients may use for the server.
	Hosts []string
	// Origins are the origins whose pages may watch over WebSocket.
	Origins []string
	// Snapshot is the file in which to write snapshots of the file of objects, "" for none, and
	// SnapshotEvery how often, zero for the default.
	Snapshot      string
	SnapshotEvery time.Duration
	// AuditLog is the file that gets a line for each request for a resource, "" for none.
	AuditLog string
	// Metrics makes the server answer /metrics, for Prometheus.
	Metrics bool
	// Inspect is the address at which to show the engines on a page, "" for none.
	Inspect string
	// CompressAbove is that of the server's configuration.
	CompressAbove int
	// Limits are the limits of the server.
	Limits serve.Limits
	// Out receives the kinds that are served and the address. Log receives the errors, and
	// what the server waits for when it drains.
	Out, Log io.Writer
}

// Run serves until ctx is done, then drains and closes everything. If ctx is done while it still
// reads its files, it returns the error of ctx, and closes them later. A file of objects that it
// has made stays only if it has served. Errors: an [engine.ErrConfig] or a crd.ErrManifest for
// invalid options or manifests, and the errors of files, storage and the network.
func Run(ctx context.Context, opts Options) (err error) {
	log := newLog(opts.Log)
	defer outliveHangUps(log)()
	signal.Ignore(syscall.SIGPIPE) // as of a log whose reader has ended: the server drains all the same
	cfg := serve.Config{Limits: opts.Limits, CompressAbove: opts.CompressAbove, Hosts: opts.Hosts, Logger: log}
	listen := serve.ListenOptions{Address: opts.Listen}
	secured, err := interrupt.Do(ctx, func() (secured, error) { return opts.secure(&cfg, &listen) })
	if err != nil {
		return err
	}
	if err := errors.Join(opts.mayListen(listen.TLS != nil && cfg.Authenticate != nil), mayWriteKubeconfig(opts.Kubeconfig), opts.mayWriteSnapshots(), opts.mayFollow(), opts.mayServeCore()); err != nil {
		return err
	}
	kinds, err := interrupt.Do(ctx, func() ([]kind, error) { return opts.kinds(ctx, log) })
	if err != nil {
		return opts.flagged(err)
	}
	of, err := interrupt.DoOrUndo(ctx, func() (*assembly, error) { return opts.assemble(ctx, kinds, cfg) }, (*assembly).discard)
	if err != nil {
		return opts.flagged(err)
	}
	stop := func() {}
	defer func() { err = errors.Join(err, of.close()) }()
	defer func() { stop() }()
	return opts.listenAndServe(ctx, of.server, listen, log, func(at net.Addr) error {
		if err := opts.announce(at, secured, stored(of.server), notesOf(kinds)); err != nil {
			return err
		}
		of.data.keep()
		stop = of.snapshots.start(ctx)
		return nil
	})
}

// stored returns the kinds whose objects are stored, unlike reviews.
func stored(s *serve.Server) (kinds []registry.Kind) {
	for _, r := range s.Resources() {
		if of := r.Info(); slices.Contains(of.Verbs, "list") {
			kinds = append(kinds, of.Kind)
		}
	}
	return kinds
}

// mayListen returns an error if --listen is no address, or one that others can reach of a server that is not guarded by
// TLS and users. Reading a file of objects, after which the server listens, takes long.
func (o *Options) mayListen(guarded bool) error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return &engine.ConfigError{Field: "--listen", Problem: fmt.Sprintf("is %q; give host:port, such as 127.0.0.1:8080", o.Listen)}
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return &engine.ConfigError{Field: "--listen", Problem: fmt.Sprintf("is %s: invalid port; give a number up to 65535", o.Listen)}
	}
	if local := host == "" || loopback.Is(host); !local && !guarded {
		return &engine.ConfigError{Field: "--listen", Problem: fmt.Sprintf("is %s, which others can reach; give --tls-cert and --tls-key, and users with --token-file or --client-ca", o.Listen)}
	}
	return nil
}

// listenAndServe serves until ctx is done. It calls begun once the server listens, and ends it
// with the error that begun returns, if any.
func (o *Options) listenAndServe(ctx context.Context, server *serve.Server, listen serve.ListenOptions, log *slog.Logger, begun func(net.Addr) error) error {
	listening, stop := context.WithCancel(ctx)
	defer stop()
	told := func() {}
	defer func() { told() }()
	var unbegun error
	listen.Ready = func(at net.Addr) {
		if unbegun = begun(at); unbegun != nil {
			stop()
			return
		}
		told = o.tellOfDraining(ctx, log)
	}
	return errors.Join(o.listenFailed(server.ListenAndServe(listening, listen)), unbegun)
}

// listenFailed returns an error of listening, or another of serving, with the flag that it is about.
func (o *Options) listenFailed(err error) error {
	var network *net.OpError
	if !errors.As(err, &network) || network.Op != "listen" {
		return o.flagged(err)
	}
	return fmt.Errorf("--listen: %w", err)
}

// hangAfter is how long the end of the server waits for what is written to a disk, as long as that of a
// file of objects does.
const hangAfter = bolt.DefaultCloseTimeout

// endsSoon waits for goroutines that write to a disk, and reports whether they have ended: a disk that
// hangs must not keep the process from ending.
func endsSoon(writing *sync.WaitGroup) bool {
	ended := make(chan struct{})
	go func() {
		writing.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(hangAfter):
		return false
	}
}

// closeSoon closes storage of kinds, and fails if that does not end soon.
func closeSoon(what string, closes func() error) error {
	var closing sync.WaitGroup
	var err error // is not read unless the close has ended
	closing.Go(func() { err = closes() })
	if !endsSoon(&closing) {
		return fmt.Errorf("%s has not closed within %v", what, hangAfter)
	}
	return err
}

// tellOfDraining logs what the server waits for once ctx is done. The caller calls told when the
// server has ended: after that there is a line if ctx is done, and none otherwise.
func (o *Options) tellOfDraining(ctx context.Context, log *slog.Logger) (told func()) {
	tell := sync.OnceFunc(func() {
		log.Info(fmt.Sprintf("draining: /readyz fails for %v, so that load balancers notice, then the watches end over at most %v; a second interrupt or SIGTERM ends the server at once", o.Limits.ShutdownDelay.Round(time.Millisecond), o.Limits.DrainWatches.Round(time.Millisecond)))
	})
	stop := context.AfterFunc(ctx, tell)
	return func() {
		stop()
		if ctx.Err() != nil {
			tell() // the server, whose context ends with ctx, may be done before tell was called
		}
	}
}

// flagged returns an error of package serve or remote with the flag that it is about, and what
// to give there.
func (o *Options) flagged(err error) error {
	var wrong *engine.ConfigError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "URL":
		return &engine.ConfigError{Field: "--upstream", Problem: o.wrongUpstream()}
	case errors.As(err, &wrong) && wrong.Field == "Resources" && len(o.CRDs) > 0:
		return &engine.ConfigError{Field: "--crd", Problem: wrong.Problem}
	case errors.As(err, &wrong) && wrong.Field == "Hosts":
		return &engine.ConfigError{Field: "--host", Problem: wrong.Problem}
	}
	return err
}

// wrongUpstream says what is wrong with a URL that package remote has refused.
func (o *Options) wrongUpstream() string {
	return fmt.Sprintf("is %q; give one like https://10.0.0.1:8443, and a token with --upstream-token-file", redact.URL(o.Upstream))
}

// announce writes the kubeconfig, and then prints the address, the kinds and the notes about
// their manifests, so that the kubeconfig is there once the address is printed.
func (o *Options) announce(at net.Addr, with secured, kinds []registry.Kind, notes map[schema.GroupResource][]string) error {
	scheme := "http://"
	if with.certificate != nil {
		scheme = "https://"
	}
	if o.Kubeconfig != "" {
		if err := writeKubeconfig(o.Kubeconfig, scheme+o.reachedAt(at, with.certificate), with.token, with.chain); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "serving %s%s\n", scheme, at)
	if o.Upstream != "" {
		fmt.Fprintf(o.Out, "a replica of %s\n", o.Upstream)
	}
	for _, of := range kinds {
		fmt.Fprintf(o.Out, "  %s/%s\n", of.GroupResource(), of.Version)
		for _, note := range notes[of.GroupResource()] {
			fmt.Fprintf(o.Out, "    note: %s\n", note)
		}
		delete(notes, of.GroupResource()) // they are of all versions
	}
	return nil
}

var _ serve.Provider = (*registry.Store[unstructured.Unstructured])(nil)
