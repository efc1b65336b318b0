// Package mutation detects that a program changes objects which it shares with others.
//
//	writes ──▶ ┌────────────────┐ ──▶
//	reads  ◀── │ [Detect]'s     │ ◀── the underlying backend
//	events ◀── └───────┬────────┘ ◀──
//	                   ▼ objects
//	                detector ──[Error]──▶ report
//
// The backend that [Detect] returns prints every object when it first sees it, and prints it
// again later: when the object is superseded, deleted or read, with some call after that,
// and at the end. A print that differs is a change in place, which every reader of the object
// has seen. An engine does all that if its Config.DetectMutations is set.
//
// Printing costs more than most backends do, and a change while the object is printed is a
// data race, which -race finds. So this is for tests.
//
// # Concurrency
//
// Everything is safe for concurrent use. The package starts no goroutine.
package mutation
