package faulty

import (
	"fmt"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Op is one operation of a backend.
type Op uint8

// The operations, named after the methods of [backend.Backend].
const (
	OpGet Op = iota
	OpList
	OpPut
	OpRemove
	OpEmit
	OpRevision
	OpCompact
	OpCompacted
	// OpWatch opens a watch, OpNext reads from one, OpStop closes one, which no
	// rule prevents. OpNext must not block.
	OpWatch
	OpNext
	OpStop
	ops // how many there are
)

// Writes are the operations that change what is stored, or pass a value through.
var Writes = []Op{OpPut, OpRemove, OpEmit}

var opNames = [ops]string{
	OpGet: "get", OpList: "list", OpPut: "put", OpRemove: "remove", OpEmit: "emit",
	OpRevision: "revision", OpCompact: "compact", OpCompacted: "compacted",
	OpWatch: "watch", OpNext: "next", OpStop: "stop",
}

// String returns the operation's name in lower case.
func (op Op) String() string {
	if op < ops {
		return opNames[op]
	}
	return fmt.Sprintf("Op(%d)", uint8(op))
}

// Call is one call of an operation: its arguments, and then its results. An
// [Action] may change the arguments before the call proceeds, and the results
// after it. It belongs to the goroutine of the call.
type Call struct {
	Op Op
	// Number counts the calls of the operation, from 1.
	Number uint64
	// Key is that of the call's object. For a list or a watch it is the
	// prefix, "" for all keys.
	Key string

	// Draft and PutOptions are what a put or an emit stores, Prev is the state
	// that a put or a remove expects.
	Draft, Prev *store.Object
	PutOptions  backend.PutOptions
	// ListOptions and WatchOptions are the options of a list and a watch.
	ListOptions  backend.ListOptions
	WatchOptions backend.WatchOptions
	// Limit is that of a next, Position the revision up to
	// which its watch has delivered.
	Limit    int
	Position store.Revision

	// Object is what a get, a put, a remove or an emit returns.
	Object *store.Object
	// Page is what a list returns, Batch what a next does.
	Page  *backend.List
	Batch backend.Batch
	// Revision is the result of a revision or compacted, and the argument of a
	// compact.
	Revision store.Revision
	// Err is the error. If it is set nothing else is returned.
	Err error

	backend *Backend
	watch   *watch // of a next
	fault   *Fault // whose action is running
}

// Spare uncounts the call in [Rule].Times and [Fault.Hits], for an action that
// found nothing to do.
func (c *Call) Spare() { c.fault.hits.Add(^uint64(0)) }
