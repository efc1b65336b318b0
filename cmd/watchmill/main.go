// Command watchmill replays recorded histories of object changes through the
// engine, puts load on it from scenarios, and looks for errors in random
// interleavings; and each time checks what every watcher saw.
//
//	watchmill replay --watchers 1000 --reconnect 5 history.ndjson.gz
//	watchmill sim run --small kubelets
//	watchmill sim explore --seeds 2000
//
//	main ──▶ run: parse (kong) ──▶ replayCommand ──▶ internal/replay ──▶ report on stdout
//	                      │                 └── progress on stderr: a bar, or plain lines
//	                      └──▶ simCommand: run, list, lint, explain, compare, explore ──▶ package sim
//
// The exit status is 0 if all went well; 1 if a watcher was lost or saw something
// else than there is, an assertion failed, or the run did; 2 for wrong usage, a bad
// trace, a bad scenario or a report that cannot be read; 3 if an invariant is
// broken; and 130 after an interrupt.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The first interrupt ends the run; from then on a second one ends the
	// process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
