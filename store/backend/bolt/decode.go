package bolt

import (
	"cmp"
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

// decoding decodes records: a few in the caller's goroutine, more than maxRunRecords in
// others, one for each run, of which GOMAXPROCS are under way at most:
//
//	file ──▶ read: copies, in runs ──▶ decode ──▶ done
//	            ▲                         │
//	            └──── runs to reuse ──────┘
//
// Only the caller's goroutine reads the file: a damaged page makes that panic or fault,
// which the journal contains in no other goroutine.
type decoding struct {
	values *values
	// records are those to decode, in the order of their revisions.
	records []wanted
	// read is called before each record is read, by the caller's goroutine. Optional.
	read func()
	// done takes each object. Several goroutines call it at the same time, in any order.
	done func(w wanted, o *store.Object, undecodable *backend.UndecodableError)

	empty chan *decodingRun
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

// from decodes d.records from a view, and returns when the last call of done has
// returned. After an error some were not decoded.
func (d *decoding) from(v journal.View) (err error) {
	decoders := min(runtime.GOMAXPROCS(0), (len(d.records)+maxRunRecords-1)/maxRunRecords)
	if decoders <= 1 {
		return d.alone(v)
	}
	d.empty = make(chan *decodingRun, decoders+1) // one of them is being filled
	for range cap(d.empty) {
		d.empty <- &decodingRun{}
	}
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		if err == nil {
			err = d.failed
		}
	}()
	run := <-d.empty
	err = d.eachOf(v, func(w wanted, r journal.Record) {
		if run.add(w, r); run.isFull() {
			full := run
			running.Go(func() { d.decodeRun(full) })
			run = <-d.empty
		}
	})
	if err == nil {
		running.Go(func() { d.decodeRun(run) })
	}
	return err
}

// alone decodes in the caller's goroutine.
func (d *decoding) alone(v journal.View) error {
	err := d.eachOf(v, func(w wanted, r journal.Record) {
		if err := usercode.Call("Schema", w.key, func() { d.decode(w, keep(w.revision, r)) }); err != nil {
			d.fail(err)
		}
	})
	return cmp.Or(err, d.failed)
}

// eachOf calls fn with each record, which is valid until fn returns.
func (d *decoding) eachOf(v journal.View, fn func(wanted, journal.Record)) error {
	revisions := func(yield func(uint64) bool) {
		for _, w := range d.records {
			if d.read != nil {
				d.read()
			}
			if !yield(w.revision) {
				return
			}
		}
	}
	i := 0
	return v.Pick(revisions, func(_ uint64, r journal.Record) error {
		fn(d.records[i], r)
		i++
		return nil
	})
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
	cause = usercode.Call("Schema", "", func() {
		for i, s := range run.stored {
			d.decode(run.records[i], s)
		}
	})
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
