package journal

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Trim moves records of the history that are at or below the floor into the base, and
// deletes what that makes unnecessary: a record's predecessor, and the record itself
// unless it is the state of its object. So the cost depends on the history that is
// trimmed, and not on the size of the state.
func (f *File) Trim(name string, budget Budget) (Trimmed, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	l, err := f.log(name)
	if err != nil {
		return Trimmed{}, err
	}
	from := l.bounds().Trimmed
	if from >= l.floor {
		return Trimmed{Through: from}, f.writable()
	}
	t := trimming{file: f, name: name, log: &l}
	err = f.update(func(tx *bbolt.Tx) error {
		if err := t.run(tx.Bucket([]byte(logBucket+name)), from, budget.withDefaults()); err != nil {
			return err
		}
		return putHead(tx, name, l.head)
	})
	if err != nil {
		return Trimmed{}, err
	}
	f.learn(map[string]log{name: l})
	return Trimmed{Deleted: t.deleted, Through: l.trimmed, More: l.trimmed < l.floor}, nil
}

type trimming struct {
	file     *File
	name     string
	log      *log
	deleted  int
	toDelete []uint64 // revisions of the records
}

// trimRun is how many records are processed between two looks at the clock.
const trimRun = 512

// run processes the history after from, in runs. The records that a run deletes are
// deleted in the order of their revisions, so that it changes each page once.
func (t *trimming) run(b *bbolt.Bucket, from uint64, budget Budget) error {
	b.FillPercent = 1
	deadline := time.Now().Add(budget.Time)
	end := min(t.log.floor, from+uint64(budget.Records))
	for at := from; at < end; {
		next := min(at+trimRun, end)
		if err := t.collect(b, at, next); err != nil {
			return err
		}
		if err := t.deleteCollected(b); err != nil {
			return err
		}
		at = next
		t.log.trimmed = at
		if !time.Now().Before(deadline) {
			break
		}
	}
	return nil
}

// collect moves the records after one revision, through another, into the base.
func (t *trimming) collect(b *bbolt.Bucket, after, through uint64) error {
	c := b.Cursor()
	key, data := c.Seek(revisionKey(after + 1))
	for revision := after + 1; revision <= through; revision++ {
		if key == nil || revisionOf(key) != revision {
			return t.corrupt(revision, "the record is missing")
		}
		r, err := ParseRecord(revision, data)
		if err != nil {
			return t.corrupt(revision, err.Error())
		}
		if r.Kind == Put {
			t.log.base.add(revision, data)
		} else {
			t.toDelete = append(t.toDelete, revision)
		}
		if r.Prev != 0 {
			if err := t.supersede(b, revision, r.Prev); err != nil {
				return err
			}
		}
		key, data = c.Next()
	}
	return nil
}

// supersede removes the predecessor of a record from the base.
func (t *trimming) supersede(b *bbolt.Bucket, revision, prev uint64) error {
	old := b.Get(revisionKey(prev))
	if len(old) < 4 {
		return t.corrupt(revision, fmt.Sprintf("its predecessor, revision %d, is missing", prev))
	}
	t.log.base.remove(prev, old)
	t.toDelete = append(t.toDelete, prev)
	return nil
}

func (t *trimming) deleteCollected(b *bbolt.Bucket) error {
	slices.Sort(t.toDelete)
	for _, revision := range t.toDelete {
		if err := b.Delete(revisionKey(revision)); err != nil {
			return err
		}
	}
	t.deleted += len(t.toDelete)
	t.toDelete = t.toDelete[:0]
	return nil
}

func (t *trimming) corrupt(revision uint64, what string) error {
	return &CorruptError{Path: t.file.path, Page: NoPage, Log: t.name, Revision: revision, What: what}
}
