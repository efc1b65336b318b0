package bolt

import (
	"runtime"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

// wanted is a record that is to be decoded.
type wanted struct {
	revision uint64
	key      string
	// place is the caller's index for the object.
	place int
}

// decoding decodes records, in runs: the only one in the caller's goroutine, several in
// others, of which GOMAXPROCS are under way at most:
//
//	file ──▶ add: copies, in runs ──▶ decode ──▶ done
//	            ▲                        │
//	            └──── runs to reuse ─────┘
//
// Only the caller's goroutine reads the file: a damaged page makes that panic or fault,
// which the journal contains in no other goroutine.
type decoding struct {
	values *values
	// done takes each object. Several goroutines call it at the same time, in any order.
	done func(w wanted, o *store.Object, undecodable *backend.UndecodableError)

	// filling is the run that takes the next record, if any; the others are in empty or
	// are being decoded.
	filling  *decodingRun
	empty    chan *decodingRun
	runs     int // that were made
	decoders int
	running  sync.WaitGroup
	// mu guards failed, the first failure of a run.
	mu     sync.Mutex
	failed error
}

// decodingRun is a number of records that one goroutine decodes.
type decodingRun struct {
	records []wanted
	stored  []stored
	bytes   []byte // the values of all, which stored refers to
}

const (
	// A run ends with maxRunRecords records, or when its values have maxRunBytes.
	maxRunRecords = 256
	maxRunBytes   = 1 << 20
)

// newDecoding starts a decoding, which the caller has to wait for.
func newDecoding(v *values, done func(wanted, *store.Object, *backend.UndecodableError)) *decoding {
	decoders := runtime.GOMAXPROCS(0)
	return &decoding{
		values: v, done: done, decoders: decoders,
		empty: make(chan *decodingRun, decoders+1), // one of them is being filled
	}
}

// add copies a record and has it decoded before wait returns.
func (d *decoding) add(w wanted, r journal.Record) {
	if d.filling == nil {
		d.filling = d.nextRun()
	}
	if d.filling.add(w, r); d.filling.isFull() {
		d.startRun()
	}
}

// nextRun returns an empty run, and waits for one if there are enough.
func (d *decoding) nextRun() *decodingRun {
	if d.runs < cap(d.empty) {
		d.runs++
		return &decodingRun{}
	}
	return <-d.empty
}

// startRun decodes the run that was filled, in a goroutine if there is a processor for it.
func (d *decoding) startRun() {
	run := d.filling
	d.filling = nil
	if d.decoders == 1 {
		d.decodeRun(run)
		return
	}
	d.running.Go(func() { d.decodeRun(run) })
}

// flush decodes the last run, which need not be full.
func (d *decoding) flush() {
	switch {
	case d.filling == nil:
	case d.runs == 1:
		run := d.filling
		d.filling = nil
		d.decodeRun(run)
	default:
		d.startRun()
	}
}

// wait returns when the last call of done has returned. After an error some records were
// not decoded.
func (d *decoding) wait() error {
	d.running.Wait()
	return d.failed
}

// decodeRecords decodes these records of a view, in the order of their revisions, and
// waits. If read is not nil, it is called before each record is read.
func (d *decoding) decodeRecords(v journal.View, records []wanted, read func()) error {
	defer d.running.Wait() // also if reading panics
	revisions := func(yield func(uint64) bool) {
		for _, w := range records {
			if read != nil {
				read()
			}
			if !yield(w.revision) {
				return
			}
		}
	}
	i := 0
	err := v.Pick(revisions, func(_ uint64, r journal.Record) error {
		d.add(records[i], r)
		i++
		return nil
	})
	if err != nil {
		return err
	}
	d.flush()
	return d.wait()
}

// add copies a record into the run.
func (run *decodingRun) add(w wanted, r journal.Record) {
	start := len(run.bytes)
	run.bytes = append(run.bytes, r.Value...)
	r.Key, r.Value = nil, run.bytes[start:len(run.bytes):len(run.bytes)]
	run.records = append(run.records, w)
	run.stored = append(run.stored, stored{revision: w.revision, key: w.key, record: r})
}

func (run *decodingRun) isFull() bool {
	return len(run.records) == maxRunRecords || len(run.bytes) >= maxRunBytes
}

// decodeRun decodes a run, and returns it with its bytes for reuse, since a codec must not
// keep what it has decoded. User code that ends the goroutine fails the whole decoding.
func (d *decoding) decodeRun(run *decodingRun) {
	var cause error = &usercode.PanicError{Func: "Codec or Schema", Value: usercode.ErrGoexit}
	defer func() {
		d.fail(cause)
		run.reset()
		d.empty <- run
	}()
	for i, s := range run.stored {
		w := run.records[i]
		if err := usercode.Call("Schema", w.key, func() { d.decode(w, s) }); err != nil {
			d.fail(err)
		}
	}
	cause = nil
}

// fail keeps the first error.
func (d *decoding) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = err
	}
}

func (run *decodingRun) reset() {
	clear(run.records)
	clear(run.stored)
	run.records, run.stored, run.bytes = run.records[:0], run.stored[:0], run.bytes[:0]
}

func (d *decoding) decode(w wanted, s stored) {
	o, undecodable := d.values.decode(s)
	d.done(w, o, undecodable)
}
