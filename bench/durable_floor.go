package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"go.etcd.io/bbolt"
)

// bareFile is a log in a file of bbolt, without an engine above it: each write adds a
// record under the next number.
type bareFile struct {
	db *bbolt.DB
	// queue has the writes to be committed together; if it is nil, each write is a
	// transaction.
	queue     chan bareWrite
	committer sync.WaitGroup
	numbers   uint64 // the last number; used only within a transaction, of which there is one at a time
}

// bareWrite is a record to commit; done receives the error of that, nil if it was
// committed.
type bareWrite struct {
	data []byte
	done chan error
}

// maxBatch is the maximum number of writes that are committed together.
const maxBatch = 1024

var bareBucket = []byte("log")

// openBatches opens a file with a goroutine that commits all waiting writes together.
func openBatches(ctx context.Context, dir string) (*bareFile, error) {
	f, err := newBareFile(ctx, dir)
	if err != nil {
		return nil, err
	}
	f.queue = make(chan bareWrite, maxBatch)
	f.committer.Go(f.commitAll)
	return f, nil
}

// newBareFile opens a file with a transaction for each write.
func newBareFile(_ context.Context, dir string) (*bareFile, error) {
	db, err := bbolt.Open(filepath.Join(dir, "state.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bareBucket)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &bareFile{db: db}, nil
}

// Close closes the file.
func (f *bareFile) Close() error {
	if f.queue != nil {
		close(f.queue)
		f.committer.Wait()
	}
	return f.db.Close()
}

func (f *bareFile) commitAll() {
	for first := range f.queue {
		batch := []bareWrite{first}
		for len(f.queue) > 0 && len(batch) < maxBatch {
			batch = append(batch, <-f.queue)
		}
		err := f.commit(batch...)
		for _, w := range batch {
			w.done <- err
		}
	}
}

// commit appends records in one transaction.
func (f *bareFile) commit(batch ...bareWrite) error {
	return f.db.Update(func(tx *bbolt.Tx) error {
		log := tx.Bucket(bareBucket)
		log.FillPercent = 1
		for _, w := range batch {
			f.numbers++
			if err := log.Put(binary.BigEndian.AppendUint64(nil, f.numbers), w.data); err != nil {
				return err
			}
		}
		return nil
	})
}

// Writer returns a function that writes an object.
func (f *bareFile) Writer() func(context.Context, Object) error {
	done := make(chan error, 1)
	return func(_ context.Context, o Object) error {
		data, err := json.Marshal(o) // as a file stores it
		if err != nil {
			return err
		}
		if f.queue == nil {
			return f.commit(bareWrite{data: data})
		}
		f.queue <- bareWrite{data, done}
		return <-done
	}
}
