package journal

import (
	"errors"
	"time"
)

// Report says what is in a file, and all that is wrong with it.
type Report struct {
	Path     string
	Size     int64
	Identity Identity
	// Logs are the bounds of each log. Records is how many records all logs have.
	Logs    map[string]Bounds
	Records int
	// Warnings are defects without consequence so far.
	Warnings []string
	// Problems are [*CorruptError] and [*FormatError]: of up to [MaxProblems] damaged
	// records, and as many others. Unlisted is how many more there are. There are none in
	// a file that is whole.
	Problems []error
	Unlisted int
}

// MaxProblems is how many problems of either kind a [Report] has.
const MaxProblems = 1000

// Check reads all of a file, without changing it, and reports its defects, including those of the
// history of each object. It fails if the file cannot be read or is locked.
func Check(path string, timeout time.Duration) (*Report, error) {
	f, err := openLocked(path, Options{ReadOnly: true, LockTimeout: timeout})
	if err != nil {
		return nil, err
	}
	report, err := f.check()
	return report, errors.Join(err, f.abandon())
}

func (f *File) check() (*Report, error) {
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	r := &Report{Path: f.path, Size: info.Size(), Logs: map[string]Bounds{}}
	lines := chains{}
	e := examination{path: f.path, most: MaxProblems, report: r.add}
	e.follow = func(log string, revision uint64, r Record) string {
		known := revision > e.logs[log].trimmed && len(e.damaged) == 0
		return lines.follow(log, revision, r, known)
	}
	c, err := e.run(f.file, info.Size())
	if err != nil {
		return nil, err
	}
	damaged := make([]error, 0, len(c.damaged))
	for i := range c.damaged {
		damaged = append(damaged, &c.damaged[i])
	}
	r.Problems = append(damaged, r.Problems...) // of which some may follow from these
	r.Unlisted += c.unlisted
	r.Identity, r.Records = c.identity, c.records
	for name, l := range c.logs {
		r.Logs[name] = l.bounds()
	}
	if c.metas.Invalid != nil {
		r.Warnings = append(r.Warnings, c.metas.Invalid.Error())
	}
	return r, nil
}

// add lists a problem, or counts it if there are enough.
func (r *Report) add(problem error) (more bool) {
	if len(r.Problems) < MaxProblems {
		r.Problems = append(r.Problems, problem)
	} else {
		r.Unlisted++
	}
	return true
}

// DumpTo calls fn with all readable records of a file, by log in the order of their
// revisions, until fn fails. The report has the problems of the others.
func DumpTo(path string, timeout time.Duration, fn func(log string, revision uint64, r Record) error) (report *Report, err error) {
	f, err := openLocked(path, Options{ReadOnly: true, LockTimeout: timeout})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.abandon()) }() // even if fn panics
	if report, err = f.check(); err != nil {
		return nil, err
	}
	return report, f.dump(fn)
}

func (f *File) dump(fn func(log string, revision uint64, r Record) error) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	var failed error
	e := examination{path: f.path, follow: func(log string, revision uint64, r Record) string {
		if failed == nil {
			failed = fn(log, revision, r)
		}
		return ""
	}, report: func(error) bool { return failed == nil }}
	_, err = e.run(f.file, info.Size())
	return errors.Join(failed, err)
}

// chains has the newest record of each object, by log and key.
type chains map[string]map[string]link

// link is the newest record of an object.
type link struct{ revision, created uint64 }

// follow takes the next record of a log. It returns what is wrong with it after the
// records before it, "" if nothing. The records after it have it before them all the same.
// known: the record that it says it continues, if any, is among those, neither trimmed nor
// damaged.
func (c chains) follow(log string, revision uint64, r Record, known bool) string {
	if r.Kind == Emit {
		return ""
	}
	objects := c[log]
	if objects == nil {
		objects = map[string]link{}
		c[log] = objects
	}
	prev, exists := objects[string(r.Key)]
	if r.Kind == Delete {
		delete(objects, string(r.Key))
	} else {
		objects[string(r.Key)] = link{revision, r.Created}
	}
	switch {
	case r.Kind == Delete && !exists:
		return "it deletes what does not exist"
	case exists && r.Prev != prev.revision:
		return "it does not continue the object's last record"
	case !exists && r.Prev != 0 && known:
		return "it continues another object's record"
	case exists && r.Created != prev.created:
		return "the object was created at another revision"
	}
	return ""
}
