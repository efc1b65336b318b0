package bolt

import (
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
)

// pastIndex has the records that make up the state at a revision, in the order of their
// keys.
type pastIndex struct {
	revision store.Revision
	keys     []string
	records  []uint64 // the revision of each key's record
	// objects are those of the records, nil where they have to be read from the file.
	objects []*store.Object
	// later[i] is the object written at revision+1+i, nil where it has to be read from the
	// file.
	later []*store.Object
}

func newPastIndex(at store.Revision, size int) *pastIndex {
	return &pastIndex{
		revision: at,
		keys:     make([]string, 0, size), records: make([]uint64, 0, size), objects: make([]*store.Object, 0, size),
	}
}

func (i *pastIndex) add(key string, record uint64, o *store.Object) {
	i.keys, i.records, i.objects = append(i.keys, key), append(i.records, record), append(i.objects, o)
}

// written returns the object that was written at a revision after the state, or nil if
// it has to be read from the file. The index may be nil.
func (i *pastIndex) written(at store.Revision) *store.Object {
	if i == nil || at <= i.revision || uint64(at-i.revision) > uint64(len(i.later)) {
		return nil
	}
	return i.later[at-i.revision-1]
}

const (
	// indexLife is how long indexes are kept after the first of them was made, so that the pages of a list
	// need one scan a minute at most.
	indexLife = time.Minute
	// maxIndexes is how many there are, so that a few clients can take turns to list different states. The
	// index of a million objects takes about 60 MB.
	maxIndexes = 4
)

// pastIndexes are indexes of different states, the one that was used last first.
type pastIndexes []*pastIndex

// use returns the index of the state at a revision, or nil.
func (x pastIndexes) use(at store.Revision) *pastIndex {
	i := slices.IndexFunc(x, func(index *pastIndex) bool { return index.revision == at })
	if i < 0 {
		return nil
	}
	used := x[i]
	copy(x[1:], x[:i])
	x[0] = used
	return used
}

// add adds an index, in place of the one that was not used for the longest if there are enough.
func (x *pastIndexes) add(index *pastIndex) {
	if x.use(index.revision) == nil { // else two lists have made it at a time
		*x = slices.Insert((*x)[:min(len(*x), maxIndexes-1)], 0, index)
	}
}

// ofNew returns the index that New has made, or nil if it is forgotten.
func (x pastIndexes) ofNew() *pastIndex {
	for _, index := range x {
		if index.later != nil {
			return index
		}
	}
	return nil
}

// remember keeps the index for a while. The caller holds the lock.
func (b *Backend) remember(index *pastIndex) {
	b.indexes.add(index)
	if !b.forget.IsSet() {
		b.forget.SetIn(indexLife)
	}
}

// forgetIndexes releases the indexes when the alarm rings.
func (b *Backend) forgetIndexes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.forget.Rang()
		b.indexes = nil
	}
}
