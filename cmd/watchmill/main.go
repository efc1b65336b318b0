// Command watchmill serves kinds over the network, maintains the files in which engines
// store their objects, and tests the engine: it replays recorded histories of object
// changes, runs the load of scenarios, and explores random interleavings. In each of these
// it checks what every watcher saw.
//
//	watchmill replay --watchers 1000 --reconnect 5 history.ndjson.gz
//	watchmill store check state.db
//	watchmill sim run --small kubelets
//	watchmill sim explore --seeds 2000
//	watchmill serve --crd widgets.yaml
//
//	main ──▶ run: parse (kong) ──▶ replayCommand ──▶ internal/replay ──▶ report on stdout
//	                      │                 └── progress on stderr: a bar, or plain lines
//	                      ├──▶ storeCommand: check, info, dump, snapshot, restore, shrink, salvage ──▶ package bolt
//	                      ├──▶ simCommand: run, list, lint, explain, compare, explore ──▶ package sim
//	                      └──▶ serveCommand ──▶ internal/server ──▶ packages serve and registry
//
// The exit status is
//
//	0    for success
//	1    if a watcher was lost or its state differs, an assertion or the run failed, a
//	     file of objects is damaged or in use, or the disk is full
//	2    for wrong usage, a bad trace, scenario or manifest, an unreadable report, or another
//	     file that cannot be used
//	3    if an invariant is broken
//	130  after an interrupt or a SIGTERM
//
// At an interrupt or a SIGTERM serve drains, and exits with 0. Commands that have nothing to
// finish are ended by the signal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// stoppable returns a context that ends with the first interrupt or SIGTERM, so that the
// command reports what ran so far. The second one ends the process.
func stoppable(ctx context.Context) context.Context {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}
