package journal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// Each part of a file that is not what it should be is listed once, and what follows it is read.
func TestCheck_ListsEachPartThatIsWrong(t *testing.T) {
	main := func(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket([]byte("watchmill")) }
	log := func(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket([]byte("watchmill/" + logName)) }
	key := func(revision uint64) []byte { return binary.BigEndian.AppendUint64(nil, revision) }
	for name, c := range map[string]struct {
		change   func(tx *bbolt.Tx) error
		problems []string
	}{
		"nothing": {func(*bbolt.Tx) error { return nil }, nil},
		"another program's bucket": {func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("other"))
			return err
		}, []string{"not one that watchmill made"}},
		"the head of a log": {func(tx *bbolt.Tx) error { return main(tx).Put([]byte("log/"+logName), []byte("no head")) },
			[]string{`"log/pods": `, "nothing is known about this log"}},
		"the identity": {func(tx *bbolt.Tx) error { return main(tx).Put([]byte("file"), []byte("no identity")) }, []string{`"file": `}},
		"a record's key": {func(tx *bbolt.Tx) error { return log(tx).Put([]byte("7 bytes"), []byte("x")) },
			[]string{"the key of a record has 7 bytes"}},
		"a record of the base": {func(tx *bbolt.Tx) error { return log(tx).Put(key(15), []byte("no record")) },
			[]string{"revision 15: damaged: the record's checksum is wrong"}},
		"a record of the history": {func(tx *bbolt.Tx) error { return log(tx).Put(key(28), []byte("no record")) },
			[]string{"revision 28: damaged: the record's checksum is wrong"}},
		"an old end": {func(tx *bbolt.Tx) error { return log(tx).SetSequence(28) }, []string{
			"revision 29: damaged: the log ends at 28: a page is an old one", "revision 30: damaged: the log ends at 28: a page is an old one",
		}},
		"an end before the floor": {func(tx *bbolt.Tx) error { return errors.Join(log(tx).SetSequence(15), cut(log(tx), 16, 30)) },
			[]string{"revision 15: damaged: the log ends before its floor, 20", "the state at revision 20 is not what was written"}},
		"no records at the end": {func(tx *bbolt.Tx) error { return cut(log(tx), 30, 30) },
			[]string{"revision 30: damaged: the records from here to 30 are missing"}},
		"a head that is cut off": {func(tx *bbolt.Tx) error { return main(tx).Put([]byte("log/"+logName), sealedHead(1, 20)) },
			[]string{`"log/pods": the record's content makes no sense`, "nothing is known about this log"}},
		"a head that trims more than the floor": {func(tx *bbolt.Tx) error { return main(tx).Put([]byte("log/"+logName), sealedHead(1, 19, 20, 0, 0)) },
			[]string{`"log/pods": the record's content makes no sense`, "nothing is known about this log"}},
		"an identity that is cut off": {func(tx *bbolt.Tx) error { return main(tx).Put([]byte("file"), sealedHead(journal.Format, 7)) },
			[]string{`"file": the record's content makes no sense`}},
		"an identity that is hardly there": {func(tx *bbolt.Tx) error { return main(tx).Put([]byte("file"), []byte{0, 0, 0}) },
			[]string{`"file": the record's checksum is wrong`}},
		"a hole": {func(tx *bbolt.Tx) error { return log(tx).Delete(key(24)) },
			[]string{"revision 25: damaged: the records before it are missing, from revision 24 on"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			for f.last < 30 {
				f.put(fmt.Sprint(f.last), "x")
			}
			f.raise(20)
			f.trim(journal.Budget{})
			identity := f.Identity()
			require.NoError(t, f.Close())
			db, err := bbolt.Open(f.path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(c.change))
			require.NoError(t, db.Close())
			report, err := journal.Check(f.path, 0)
			require.NoError(t, err)
			require.Len(t, report.Problems, len(c.problems), "%v", report.Problems)
			if c.problems == nil {
				require.Equal(t, identity, report.Identity)
				require.False(t, report.Identity.Created.IsZero())
			}
			for i, text := range c.problems {
				require.ErrorContains(t, report.Problems[i], text)
			}
		})
	}
}

// cut deletes records.
func cut(log *bbolt.Bucket, from, through uint64) error {
	for revision := from; revision <= through; revision++ {
		if err := log.Delete(binary.BigEndian.AppendUint64(nil, revision)); err != nil {
			return err
		}
	}
	return nil
}

// sealedHead returns numbers with their checksum.
func sealedHead(numbers ...uint64) []byte {
	data := make([]byte, 4)
	for _, n := range numbers {
		data = binary.AppendUvarint(data, n)
	}
	return journal.Seal(data)
}

func TestCheck_ListsAllThatIsWrong(t *testing.T) {
	_, image, _ := damaged(t)
	path := filepath.Join(t.TempDir(), "state.db")
	count := func() (report *journal.Report, dumped int) {
		report, err := journal.DumpTo(path, 0, func(string, uint64, journal.Record) error {
			dumped++
			return nil
		})
		require.NoError(t, err)
		return report, dumped
	}
	require.NoError(t, os.WriteFile(path, image, 0o600))
	report, all := count()
	require.Empty(t, report.Problems)
	require.Equal(t, report.Records, all)

	partly, most := 0, 0
	for page := 2; page < len(image)/pageSize; page++ {
		harmed := bytes.Clone(image)
		clear(harmed[page*pageSize:][:pageSize])
		require.NoError(t, os.WriteFile(path, harmed, 0o600))
		report, left := count()
		for _, p := range report.Problems {
			require.ErrorIs(t, p, journal.ErrCorrupt)
		}
		if len(report.Problems) > 0 && left > 0 {
			require.LessOrEqual(t, left, all)
			if left < all {
				partly++
			}
		}
		most = max(most, len(report.Problems))
	}
	require.Positive(t, partly, "what is left can be read")
	require.Greater(t, most, 1)
}

// What is after a page that is lost can be dumped, until the caller has enough.
func TestDumpTo_GoesOnAfterDamageButNotAfterItsCaller(t *testing.T) {
	f := newFixture(t, journal.Options{})
	for i := range 20 {
		f.stage(journal.Put, fmt.Sprint("key ", i), string(bytes.Repeat([]byte{'x'}, scaled(1000))))
	}
	f.put("victim", "this page is lost")
	_, err := f.Declare("services", 1) // which comes after the pods
	require.NoError(t, err)
	r := journal.Record{Kind: journal.Put, Created: 2, Key: []byte("a")}
	require.NoError(t, f.Append(journal.Batch{Entries: []journal.Entry{{Log: "services", Revision: 2, Data: r.AppendTo(nil, 2)}}}))
	require.NoError(t, f.Close())
	image := read(t, f.path)
	for at := bytes.Index(image, []byte("this page")); at >= 0; at = bytes.Index(image, []byte("this page")) {
		clear(image[at/pageSize*pageSize:][:pageSize])
	}
	require.NoError(t, os.WriteFile(f.path, image, 0o600))

	dumped := map[string]int{}
	report, err := journal.DumpTo(f.path, 0, func(log string, _ uint64, _ journal.Record) error {
		dumped[log]++
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, report.Problems)
	require.Positive(t, dumped[logName])
	require.Equal(t, 1, dumped["services"])

	enough, calls := errors.New("enough"), 0
	_, err = journal.DumpTo(f.path, 0, func(string, uint64, journal.Record) error {
		calls++
		return enough
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, calls)
}

// A caller that panics leaves the file free for others.
func TestDumpTo_ReleasesTheFileIfItsCallerPanics(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	require.Panics(t, func() {
		_, _ = journal.DumpTo(f.path, 0, func(string, uint64, journal.Record) error { panic("oops") })
	})
	f.open()
}

// A file with very many damaged records has a report of bounded size, and is salvaged
// all the same.
func TestCheck_ListsABoundedNumberOfProblems(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const records = 3*journal.MaxProblems + 1
	for i := range records / 2 {
		f.stage(journal.Put, fmt.Sprint(i), "bad record") // and the next continues none
		f.stage(journal.Put, fmt.Sprint(i), "next")
	}
	require.NoError(t, f.commit())
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	report, err := journal.Check(f.path, 0)
	require.NoError(t, err)
	require.Len(t, report.Problems, journal.MaxProblems)
	require.Equal(t, records/2-journal.MaxProblems, report.Unlisted)

	_, err = journal.Open(f.path, journal.Options{})
	require.ErrorContains(t, err, "revision 2: damaged")
	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Len(t, u.Repairs, records/2)
	f.requireChecked()
}

// Of what does not fit together it lists a bounded number, too.
func TestCheck_ListsABoundedNumberOfBrokenChains(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const deletions = journal.MaxProblems + 7
	for i := range deletions {
		f.last++
		r := journal.Record{Kind: journal.Delete, Created: 1, Key: fmt.Append(nil, i)}
		f.pending = append(f.pending, journal.Entry{Log: logName, Revision: f.last, Data: r.AppendTo(nil, f.last)})
	}
	require.NoError(t, f.commit())
	require.NoError(t, f.Close())
	report, err := journal.Check(f.path, 0)
	require.NoError(t, err)
	require.Len(t, report.Problems, journal.MaxProblems)
	require.ErrorContains(t, report.Problems[0], "revision 2: damaged: it deletes what does not exist")
	require.Equal(t, 7, report.Unlisted)
	require.Equal(t, deletions, report.Records)
	require.Equal(t, map[string]journal.Bounds{logName: {First: 1, Trimmed: 1, Last: f.last}}, report.Logs)
	require.Empty(t, report.Warnings)
}

// Each record of an object continues the one before it.
func TestCheck_SaysWhatDoesNotContinueAnObject(t *testing.T) {
	put := func(prev, created uint64) journal.Record {
		return journal.Record{Kind: journal.Put, Key: []byte("a"), Prev: prev, Created: created}
	}
	for _, c := range []struct {
		name    string
		records []journal.Record
		wrong   []string
	}{
		{"whole", []journal.Record{put(0, 2), put(2, 2), {Kind: journal.Delete, Key: []byte("a"), Prev: 3, Created: 2}, put(0, 5)}, nil},
		{"an event of its key", []journal.Record{put(0, 2), {Kind: journal.Emit, Key: []byte("a")}, put(2, 2)}, nil},
		{"another predecessor", []journal.Record{put(0, 2), put(0, 2), put(3, 2)}, []string{"revision 3: damaged: it does not continue the object's last record"}},
		{"another object's predecessor", []journal.Record{put(0, 2), {Kind: journal.Put, Key: []byte("b"), Prev: 2, Created: 3}},
			[]string{"revision 3: damaged: it continues another object's record"}},
		{"another creation", []journal.Record{put(0, 2), put(2, 3)}, []string{"revision 3: damaged: the object was created at another revision"}},
		{"deleted twice", []journal.Record{put(0, 2), {Kind: journal.Delete, Key: []byte("a"), Prev: 2, Created: 2}, {Kind: journal.Delete, Key: []byte("a"), Prev: 2, Created: 2}},
			[]string{"revision 4: damaged: it deletes what does not exist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			for _, r := range c.records {
				f.last++
				f.pending = append(f.pending, journal.Entry{Log: logName, Revision: f.last, Data: r.AppendTo(nil, f.last)})
			}
			require.NoError(t, f.commit())
			require.NoError(t, f.Close())
			report, err := journal.Check(f.path, 0)
			require.NoError(t, err)
			require.Len(t, report.Problems, len(c.wrong))
			for i, text := range c.wrong {
				require.ErrorContains(t, report.Problems[i], text)
			}
		})
	}
}

// A meta page that cannot be read has no consequence as long as the other one can.
func TestCheck_WarnsOfAMetaPage(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	image := read(t, f.path)
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	older := 1 - metas.Newest.Page
	clear(image[int(older)*pageSize:][:pageSize])
	require.NoError(t, os.WriteFile(f.path, image, 0o600))
	report, err := journal.Check(f.path, 0)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Len(t, report.Warnings, 1)
	says := fmt.Sprintf("page %d: it is not a meta page", older)
	require.Contains(t, report.Warnings[0], says)

	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Len(t, u.Warnings, 1)
	require.Contains(t, u.Warnings[0], "one meta page is invalid")
	require.Contains(t, u.Warnings[0], says)
}
