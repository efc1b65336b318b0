// Command watchmill replays recorded histories of object changes through the
// engine, in front of many watchers, and checks what each of them saw.
//
//	watchmill replay --watchers 1000 --reconnect 5 history.ndjson.gz
//
//	main ──▶ run: parse (kong) ──▶ replayCommand ──▶ internal/replay ──▶ report on stdout
//	                                     └── progress on stderr: a bar, or plain lines
//
// The exit status is 0 if all went well, 1 if a watcher was lost or saw
// something else than there is (or the run failed), 2 for wrong usage or a bad
// trace, 3 if an exploration broke an invariant, and 130 after an interrupt.
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
