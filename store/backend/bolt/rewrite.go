package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Rewrite encodes and encrypts all values in the file, including the history, that
// Config's Codec and Sealer would now write differently. Revisions do not change, and
// watches see no events. After it, the codec does not need the old tags any more, nor
// the sealer the old keys. Other writes are possible meanwhile.
//
// The replaced records stay in the file's unused space until that is used again. [Shrink]
// removes it, and [File.Snapshot] does not copy it.
//
// It returns how many values it has changed. Values that cannot be decoded, or encoded
// again, stay unchanged; the error joins up to 100 of their errors. It can be called again
// after it failed or ctx ended.
func (b *Backend) Rewrite(ctx context.Context) (changed int, err error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	defer b.end()
	r := rewriting{backend: b}
	for more := true; more; {
		if more, err = r.run(ctx); err != nil {
			return r.changed, err
		}
	}
	return r.changed, errors.Join(r.failures...)
}

type rewriting struct {
	backend  *Backend
	at       uint64 // the revision up to which all is rewritten
	changed  int
	failures []error // of values that stay unchanged
}

// run rewrites a run of records, and reports whether there are more.
func (r *rewriting) run(ctx context.Context) (more bool, err error) {
	var run []stored
	size, at := 0, r.at
	err = r.backend.file.journal.Read(ctx, r.backend.name, func(v journal.View) error {
		return v.Scan(r.at, math.MaxUint64, func(revision uint64, rec journal.Record) (bool, error) {
			at = revision
			if rec.Kind != journal.Delete && !rec.Lost {
				run = append(run, stored{revision, string(rec.Key), rec}.kept())
				size += len(rec.Value)
			}
			return len(run) < cold.run && size < cold.runBytes, nil
		})
	})
	if err != nil || at == r.at {
		return false, err
	}
	var entries []journal.Entry
	for _, s := range run {
		if e, ok := r.rewritten(s); ok {
			entries = append(entries, e)
		}
	}
	if len(entries) > 0 {
		err = r.backend.file.journal.Rewrite(r.backend.name, entries)
	}
	if err == nil {
		r.at = at
		r.changed += len(entries)
	}
	return true, err
}

// rewritten returns the record as it would be written now, if that differs.
func (r *rewriting) rewritten(s stored) (e journal.Entry, changed bool) {
	v := &r.backend.values
	o, undecodable := v.decodeAsWritten(s)
	if undecodable != nil {
		r.note(undecodable)
		return e, false
	}
	plain, stale, err := v.unseal(s)
	if err == nil && !stale {
		now, err := v.encodePlain(o)
		if err == nil && now.tag == s.record.Tag && bytes.Equal(now.data, plain) {
			return e, false
		}
	}
	value, err := v.encode(o)
	if err != nil {
		r.note(fmt.Errorf("%s %q at revision %d stays as it is: %w", v.name, s.key, s.revision, err))
		return e, false
	}
	rec := s.record
	rec.Key, rec.Value, rec.Tag, rec.Sealed = []byte(s.key), value.data, value.tag, value.sealed
	return journal.Entry{Log: v.name, Revision: s.revision, Data: rec.AppendTo(nil, s.revision)}, true
}

func (r *rewriting) note(err error) {
	if len(r.failures) < maxUndecodable {
		r.failures = append(r.failures, err)
	}
}
