// Command watchmill-etcd has watchmill replay and watchmill serve with three features that have many
// dependencies: etcd as one more kind of storage, the rules in CEL of CustomResourceDefinitions, which it
// evaluates wherever the objects are, and kinds of Kubernetes itself, such as Secrets.
//
//	watchmill-etcd replay --backend etcd:127.0.0.1:2379/demo --watchers 1000 history.ndjson.gz
//	watchmill-etcd serve --data etcd:127.0.0.1:2379/shop --crd widgets.yaml
//	watchmill-etcd serve --data bolt:shop.db --allow-crds --core-kinds
//
//	replay: cmd/watchmill/internal/replay ──▶ sim/load ──▶ engine ──┐
//	serve:  cmd/watchmill/internal/server ──▶ registry ──▶ engine ──┴──▶ store/backend/etcd ──▶ cluster
//	                                │            └──▶ registry/crd/cel
//	                                └──▶ serve/corekinds
//
// It is a program and a module of its own, so that the main module requires no part
// of etcd, CEL and Kubernetes' API types. It is below cmd/watchmill, so that it can share that program's flags.
//
// Before a replay there must be no keys below the prefix (/watchmill/replay unless another
// is given). The objects of the replay stay there after it.
//
// A cluster in production has several members, TLS and users:
//
//	watchmill-etcd serve --data etcd:10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/shop --crd widgets.yaml \
//		--etcd-ca ca.pem --etcd-user shop --etcd-password-file password
//
// Servers with the same prefix (/watchmill/serve unless another is given) have the same
// objects, at the same revisions. Clients may use any of them, and move between them.
//
// The program reads --etcd-cert and --etcd-key again for each connection, --etcd-ca and
// --etcd-password-file only at its start: before members get certificates of another authority, add
// that to the file of --etcd-ca and restart the servers.
//
// Once the cluster has been restored from a snapshot, /livez and /readyz fail, so that a supervisor
// restarts the server. Clients then list again.
//
// The exit status is
//
//	0    for success
//	1    if a watcher was lost or its state differs, a file of objects is damaged or in use,
//	     or the run failed
//	2    for wrong usage, a bad trace or manifest, or another file that cannot be used
//	130  after an interrupt or a SIGTERM
//
// At an interrupt or a SIGTERM serve drains, and exits with 0.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/crd/cel"
	"github.com/watchmill/watchmill/serve/corekinds"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/usercode"
)

// The exit statuses, which are those of watchmill.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type commandLine struct {
	Replay replayCommand `cmd:"" help:"Replay a recorded history to many watchers and check what they saw."`
	Serve  serveCommand  `cmd:"" help:"Serve the kinds of CustomResourceDefinitions in the Kubernetes API protocol."`

	Version help.Version `help:"Print the version and exit."`
}

type (
	replayCommand struct {
		replay.Flags
		etcdFlags
	}
	serveCommand struct {
		server.Flags
		etcdFlags
	}
)

// streams has the writers of a command's output.
type streams struct{ stdout, stderr io.Writer }

// run parses the arguments and runs the command. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli commandLine
	helped := false
	parser, err := kong.New(&cli, kong.Name("watchmill-etcd"), kong.Description("watchmill, with objects in etcd, rules in CEL, and kinds of Kubernetes itself."),
		kong.UsageOnError(), kong.Writers(stdout, stderr), kong.Help(help.Print), kong.Exit(func(int) { helped = true }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&streams{stdout, stderr}))
	if err != nil {
		return complain(stderr, err)
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return exitOK
	case errors.Is(err, help.ErrUnwritten):
		return complain(stderr, err)
	case err != nil:
		fmt.Fprintln(stderr, "watchmill-etcd:", err)
		fmt.Fprintln(stderr, help.Hint(err))
		return exitUsage
	}
	return complain(stderr, command.Run())
}

// complain prints err and returns its exit status.
func complain(stderr io.Writer, err error) int {
	var bad *trace.Error
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		if !interrupt.Alone(err) {
			fmt.Fprintln(stderr, "watchmill-etcd:", err)
		}
		return exitInterrupted
	case errors.Is(err, replay.ErrFailed):
		return exitFailed
	}
	fmt.Fprintln(stderr, "watchmill-etcd:", err)
	if errors.Is(err, replay.ErrOptions) || errors.Is(err, usercode.ErrConfig) || errors.Is(err, crd.ErrManifest) || errors.Is(err, objectfile.ErrUnusable) || errors.As(err, &bad) {
		return exitUsage
	}
	return exitFailed
}

// lineEvery is the time between two lines of progress.
const lineEvery = 5 * time.Second

// Run replays, and writes the report to stdout.
func (c *replayCommand) Run(ctx context.Context, to *streams) error {
	if err := c.unused("--backend", c.Backend); err != nil {
		return err
	}
	backends := replay.Builtin()
	backends["etcd"] = func(place string, schema store.Schema) (backend.Backend, error) {
		return c.open(ctx, "--backend", place, "/watchmill/replay", etcd.Config{Schema: schema})
	}
	opts, err := c.Options(backends, func(p load.ReplayProgress) {
		if p.Finished < p.Watchers {
			fmt.Fprintf(to.stderr, "%d of %d changes written, %d of %d watchers done\n", p.Written, p.Changes, p.Finished, p.Watchers)
		}
	}, lineEvery)
	if err != nil {
		return err
	}
	report, err := replay.Run(ctx, opts)
	if err != nil {
		return err
	}
	return c.Finish(ctx, to.stdout, report)
}

// Run serves until an interrupt or a SIGTERM, and then drains: see [server.Run].
func (c *serveCommand) Run(ctx context.Context, to *streams) error {
	if err := c.unused("--data", c.Data); err != nil {
		return err
	}
	return server.Run(ctx, c.options(to))
}

// options returns the options that the flags describe, with etcd as storage, rules in CEL, and kinds of Kubernetes.
// Each kind has the keys below a prefix of its own.
func (c *serveCommand) options(to *streams) server.Options {
	open := func(ctx context.Context, place, kind string, schema store.Schema, onError func(error)) (backend.Backend, error) {
		return c.open(ctx, "--data", place, "/watchmill/serve", etcd.Config{Prefix: "/" + kind, Schema: schema, OnError: onError})
	}
	opts := c.Options(server.Storages{"etcd": open}, to.stdout, to.stderr)
	opts.Rules, opts.Core = cel.Rules{}, &server.Core{Open: openCore, Replica: corekinds.Replica}
	return opts
}

// openCore opens the kinds of --core-kinds.
func openCore(ctx context.Context, cfg server.CoreConfig) (server.CoreKinds, error) {
	kinds, err := corekinds.New(ctx, corekinds.Config{
		Storage: cfg.Storage, Host: cfg.Host, EventTTL: cfg.EventTTL, GarbageCollection: cfg.GarbageCollection, OnError: cfg.OnError,
	})
	if err != nil {
		return nil, err
	}
	return kinds, nil
}
