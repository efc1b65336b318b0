package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBroken      = 3
	exitInterrupted = 130 // 128 + SIGINT, the convention of shells
)

// errFailed is the error of a command that has already reported what went wrong.
var errFailed = errors.New("the run did not end well")

// errBroken is the error of a command that has reported a broken invariant.
var errBroken = errors.New("an invariant is broken")

type commandLine struct {
	Replay replayCommand `cmd:"" help:"Replay a recorded history to many watchers and check what they saw."`
	Store  storeCommand  `cmd:"" help:"Maintain a file of objects: check, info, dump, snapshot, restore, shrink, salvage."`
	Sim    simCommand    `cmd:"" help:"Run the load of a scenario on an engine, or explore random interleavings."`
	Serve  serveCommand  `cmd:"" help:"Serve the kinds of CustomResourceDefinitions in the Kubernetes API protocol."`

	Version help.Version `help:"Print the version and exit."`
}

// streams are what a command writes to.
type streams struct {
	stdout, stderr io.Writer
}

// run parses the arguments and runs the command. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli commandLine
	helped := false
	parser, err := kong.New(&cli,
		kong.Name("watchmill"),
		kong.Description("An in-process list-watch engine, and its test bench."),
		kong.UsageOnError(),
		kong.Writers(stdout, stderr),
		kong.Help(help.Print),
		// --help and --version exit while the flags are parsed.
		kong.Exit(func(int) { helped = true }),
		// Only a command that takes a context handles signals; they end the others.
		kong.BindToProvider(func() (context.Context, error) { return stoppable(ctx), nil }),
		kong.Bind(&streams{stdout, stderr}),
	)
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
		complain(stderr, err)
		fmt.Fprintln(stderr, help.Hint(err))
		return exitUsage
	}
	return complain(stderr, command.Run())
}

// complain prints err and returns its exit status.
func complain(stderr io.Writer, err error) int {
	var lint scenario.Errors
	switch {
	case err == nil, errors.Is(err, errFailed), errors.Is(err, replay.ErrFailed), errors.Is(err, errBroken):
		// the command has reported it
	case interrupt.Alone(err):
	case errors.As(err, &lint):
		fmt.Fprintln(stderr, lint) // each line begins with its position, as editors expect
	default:
		fmt.Fprintln(stderr, "watchmill:", err)
	}
	var bad *trace.Error
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errBroken):
		return exitBroken
	case draft.OfDisk(err):
		return exitFailed
	case errors.Is(err, replay.ErrOptions), errors.Is(err, scenario.ErrInvalid), errors.Is(err, engine.ErrConfig), errors.Is(err, crd.ErrManifest), errors.Is(err, errReports), errors.Is(err, errOutput), errors.Is(err, objectfile.ErrUnusable), errors.As(err, &bad):
		return exitUsage
	}
	return exitFailed
}
