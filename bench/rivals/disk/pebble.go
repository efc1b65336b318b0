package disk

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchmill/watchmill/bench"
)

// Pebble is a log in Pebble, the storage engine of CockroachDB.
func Pebble() bench.Contender {
	return bench.Contender{Name: "pebble", Durable: openPebble}
}

func openPebble(_ context.Context, dir string) (bench.Durable, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}})
	if err != nil {
		return nil, err
	}
	return &log{db: db}, nil
}

// log is records under increasing numbers.
type log struct {
	db      *pebble.DB
	numbers atomic.Uint64 // the last number
}

// Writer returns a function that appends an object.
func (l *log) Writer() func(context.Context, bench.Object) error {
	return func(_ context.Context, o bench.Object) error {
		data, err := json.Marshal(o)
		if err != nil {
			return err
		}
		return l.db.Set(binary.BigEndian.AppendUint64(nil, l.numbers.Add(1)), data, pebble.Sync)
	}
}

// Close closes the log.
func (l *log) Close() error { return l.db.Close() }

// silent is a logger that drops the messages about compactions, which would otherwise be
// printed between the figures. Errors go to stderr: figures with errors are not to be used.
type silent struct{}

func (silent) Infof(string, ...any) {}

func (silent) Errorf(format string, args ...any) {
	pebble.DefaultLogger.Errorf(format, args...)
}

func (silent) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}
