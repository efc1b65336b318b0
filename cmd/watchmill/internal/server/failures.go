package server

import (
	"sync"

	"github.com/watchmill/watchmill/store/backend"
)

// failing is storage that can say that it has failed for good, so that it has to be opened again: that of a
// cluster that was restored, whose revisions have another meaning.
type failing interface {
	// Failure returns why, nil if it has not. It does not block.
	Failure() error
}

// failures asks the storage of all kinds whether it has failed.
type failures struct {
	mu    sync.Mutex
	kinds map[string]failing
}

// add adds the storage of a kind, in place of what it had before.
func (f *failures) add(kind string, storage backend.Backend) {
	one, can := storage.(failing)
	if !can {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kinds == nil {
		f.kinds = map[string]failing{}
	}
	f.kinds[kind] = one
}

// failure returns that of one kind, nil if there is none.
func (f *failures) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.kinds {
		if err := one.Failure(); err != nil {
			return err
		}
	}
	return nil
}
