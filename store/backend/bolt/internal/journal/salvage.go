package journal

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store"
)

// salvage discards damaged records, and the history up to the revision from which all
// states are known again. If the newest record of an object is damaged and its key is
// plausible, a record without a value takes its place, marked as Lost, or none if it says that
// the object was deleted. A state that may not be what it was gets a revision of its own. All
// is done in one transaction: after an error, as on a full disk, the file is as it was.
func (f *File) salvage(damaged []CorruptError) error {
	if len(damaged) == 0 {
		return nil
	}
	byLog := map[string][]CorruptError{}
	for _, d := range damaged {
		byLog[d.Log] = append(byLog[d.Log], d)
	}
	changed, repairs := map[string]log{}, []string(nil)
	err := f.update(func(tx *bbolt.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(byLog)) {
			l, err := f.log(name)
			if err != nil {
				return err
			}
			s := newSalvage(name, l, byLog[name])
			if err := s.run(tx); err != nil {
				return err
			}
			changed[name] = s.log
			repairs = append(repairs, s.repairs...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.learn(changed)
	f.repairs = repairs
	return nil
}

type salvaging struct {
	name    string
	log     log
	bad     map[uint64]*CorruptError
	repairs []string

	state    map[string]uint64 // the newest good record of each existing key
	replaced map[uint64]uint64 // the successor of each damaged record that has one
	lost     map[uint64]Record // damaged records that are the newest of their keys
	// altered: the newest state may not be what it was.
	altered bool
}

func newSalvage(name string, l log, damaged []CorruptError) *salvaging {
	s := &salvaging{
		name: name, log: l, bad: map[uint64]*CorruptError{},
		state: map[string]uint64{}, replaced: map[uint64]uint64{}, lost: map[uint64]Record{},
	}
	for i := range damaged {
		s.bad[damaged[i].Revision] = &damaged[i]
	}
	return s
}

func (s *salvaging) run(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte(logBucket + s.name))
	b.FillPercent = 1
	if err := s.each(b, s.log.last, s.learn); err != nil {
		return err
	}
	floor := s.judge(b)
	clear(s.state)
	if err := s.each(b, floor, s.learn); err != nil {
		return err
	}
	if err := s.rebuild(b, floor); err != nil {
		return err
	}
	if s.altered {
		if err := s.moveOn(b); err != nil {
			return err
		}
	}
	return putHead(tx, s.name, s.log.head)
}

// each calls fn with the good records up to a revision.
func (s *salvaging) each(b *bbolt.Bucket, through uint64, fn func(uint64, Record)) error {
	c := b.Cursor()
	for key, data := c.First(); key != nil && revisionOf(key) <= through; key, data = c.Next() {
		revision := revisionOf(key)
		if _, damaged := s.bad[revision]; damaged {
			continue
		}
		r, err := ParseRecord(revision, data)
		if err != nil {
			return err
		}
		fn(revision, r)
	}
	return nil
}

// learn applies a record to the state.
func (s *salvaging) learn(revision uint64, r Record) {
	if _, damaged := s.bad[r.Prev]; damaged {
		s.replaced[r.Prev] = revision
	}
	switch r.Kind {
	case Put:
		s.state[string(r.Key)] = revision
	case Delete:
		delete(s.state, string(r.Key))
	}
}

// judge determines which damaged records were superseded and which are lost, and returns
// the revision from which on all states are known.
func (s *salvaging) judge(b *bbolt.Bucket) (floor uint64) {
	floor = s.log.floor
	for _, revision := range slices.Sorted(maps.Keys(s.bad)) {
		d := s.bad[revision]
		if next, ok := s.replaced[revision]; ok {
			floor = max(floor, next)
			s.repaired(d, "its object was written again at revision %d, so only history is lost", next)
			continue
		}
		floor, s.altered = s.log.last, true
		r, err := parseUnchecked(revision, b.Get(revisionKey(revision)))
		switch {
		case err != nil || !s.plausible(r):
			s.repaired(d, "its object is unknown, and may be shown as it was before")
		case r.Kind == Emit:
			s.repaired(d, "it seems to be an emitted value of %q, which is lost", r.Key)
		case r.Kind == Delete && r.Prev != 0 && len(r.Value) == 0:
			s.lose(revision, Delete, r)
			s.repaired(d, "it seems to have deleted %q", r.Key)
		default:
			s.lose(revision, Put, r)
			s.repaired(d, "it seems to be the newest state of %q, whose value is lost", r.Key)
		}
	}
	return floor
}

// lose makes a damaged record the newest of its key, even if that was a damaged one before.
func (s *salvaging) lose(revision uint64, kind Kind, r Record) {
	delete(s.lost, s.state[string(r.Key)])
	s.lost[revision] = Record{Kind: kind, Lost: true, Created: r.Created, Written: r.Written, Key: bytes.Clone(r.Key)}
	s.learn(revision, s.lost[revision])
}

func (s *salvaging) repaired(d *CorruptError, format string, args ...any) {
	s.repairs = append(s.repairs, fmt.Sprintf("%v: %s", d, fmt.Sprintf(format, args...)))
}

// plausible reports whether the key of a damaged record is likely to be right: it is one, and the
// record continues the object's known records, or there are none and it says so.
func (s *salvaging) plausible(r Record) bool {
	newest := s.state[string(r.Key)] // zero if there is none
	return store.ValidateKey(string(r.Key)) == nil && r.Prev == newest
}

// rebuild deletes the records at or below the floor that are not part of the state there.
func (s *salvaging) rebuild(b *bbolt.Bucket, floor uint64) error {
	keep := make(map[uint64]bool, len(s.state))
	for _, revision := range s.state {
		keep[revision] = true
	}
	for _, r := range s.lost {
		delete(keep, s.state[string(r.Key)]) // what it replaces, if anything
	}
	var toDelete []uint64
	c := b.Cursor()
	s.log.base = base{}
	for key, data := c.First(); key != nil && revisionOf(key) <= floor; key, data = c.Next() {
		if revision := revisionOf(key); keep[revision] {
			s.log.base.add(revision, data)
		} else {
			toDelete = append(toDelete, revision)
		}
	}
	for _, revision := range toDelete {
		if err := b.Delete(revisionKey(revision)); err != nil {
			return err
		}
	}
	for revision, r := range s.lost {
		if r.Kind == Delete {
			continue
		}
		data := r.AppendTo(nil, revision)
		s.log.base.add(revision, data)
		if err := b.Put(revisionKey(revision), data); err != nil {
			return err
		}
	}
	s.log.floor, s.log.trimmed = floor, floor
	return nil
}

// moveOn gives the state that is left a revision of its own, without a record. A consumer that has
// seen the newest one lists again: it may have a value that is lost.
func (s *salvaging) moveOn(b *bbolt.Bucket) error {
	s.log.last++
	s.log.floor, s.log.trimmed = s.log.last, s.log.last
	return b.SetSequence(s.log.last)
}
