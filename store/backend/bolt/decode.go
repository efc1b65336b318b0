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
//	file ──▶ run: copies ──▶ decode ──▶ done
//	          ▲                 │
//	          └─ runs to reuse ─┘
//
// The caller waits for a run before it reads the file, and not in a view, since a codec may
// take long: space that is freed meanwhile could not be used.
//
// Only the caller's goroutine reads the file: a damaged page makes that panic or fault,
// which the journal contains in no other goroutine.
type decoding struct {
	values *values
	// done takes each object. Several goroutines call it at the same time, in any order.
	done func(w wanted, o *store.Object, undecodable *backend.UndecodableError)

	empty    chan *decodingRun // the runs that are not being filled or decoded
	runs     int               // that were made
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

// newDecoding returns a decoding, which the caller has to wait for.
func newDecoding(v *values, done func(wanted, *store.Object, *backend.UndecodableError)) *decoding {
	decoders := runtime.GOMAXPROCS(0)
	return &decoding{
		values: v, done: done, decoders: decoders,
		empty: make(chan *decodingRun, decoders+1), // one of them is being filled
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

// start decodes a run, in a goroutine if there is a processor for it, and others than the last.
func (d *decoding) start(run *decodingRun, last bool) {
	if d.decoders == 1 || last && d.runs == 1 {
		d.decodeRun(run)
		return
	}
	d.running.Go(func() { d.decodeRun(run) })
}

// wait returns when the last call of done has returned. After an error some records were
// not decoded.
func (d *decoding) wait() error {
	d.running.Wait()
	return d.failed
}

// decodeRecords decodes these records, in the order of their revisions, and waits. It calls
// read for each run of them, for a view that has the records. If progress is not nil, it is
// called for each record.
func (d *decoding) decodeRecords(read func(func(journal.View) error) error, records []wanted, progress func()) error {
	defer d.running.Wait() // even if reading panics
	for len(records) > 0 {
		run := d.nextRun()
		revisions := func(yield func(uint64) bool) {
			for _, w := range records {
				if run.isFull() || !yield(w.revision) {
					return
				}
			}
		}
		err := read(func(v journal.View) error {
			return v.Pick(revisions, func(_ uint64, r journal.Record) error {
				run.add(records[len(run.records)], r)
				return nil
			})
		})
		if err != nil {
			return err
		}
		records = records[len(run.records):]
		for range run.records {
			if progress != nil {
				progress()
			}
		}
		d.start(run, len(records) == 0)
	}
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
