package journal

import (
	"os"

	"go.etcd.io/bbolt"
)

// ParseUnchecked is for fuzzing what salvage parses.
var ParseUnchecked = parseUnchecked

// Unfinished is where a new file is until it is complete.
var Unfinished = unfinished

// IsFree is the step of making a file at which another process may have made it.
var IsFree = isFree

// Validate checks options for a file with pages of a size that those of this system need not have.
func (o Options) Validate(pageSize int) error { return o.validate(pageSize) }

// MinMaxBytes returns the smallest MaxBytes where the system has pages of that size.
func MinMaxBytes(pageSize int) int64 { return minMaxBytes(pageSize) }

// SetSupported changes whether this is a system on which files can be used, until restore is called.
func SetSupported(to bool) (restore func()) {
	old := supported
	supported = to
	return func() { supported = old }
}

// SetSync replaces what syncs a file that is opened, until restore is called.
func SetSync(by func(*os.File) error) (restore func()) {
	old := syncFile
	syncFile = by
	return func() { syncFile = old }
}

// SetSyncDirectory replaces what syncs its directory, likewise.
func SetSyncDirectory(by func(string) error) (restore func()) {
	old := syncDirectory
	syncDirectory = by
	return func() { syncDirectory = old }
}

// ParseIdentity is the reverse of Encode.
var ParseIdentity = parseIdentity

// Encode is for making files of other formats.
func (id Identity) Encode() []byte { return id.encode() }

// Seal is for making identities with other contents.
var Seal = seal

// Footer is for making snapshots with other contents.
func (m Manifest) Footer() ([]byte, error) { return m.footer() }

// Descriptor is the file's, for tests that let the disk fail.
func (f *File) Descriptor() int { return int(f.file.Fd()) }

// Settle is what happens after a commit that failed.
func (f *File) Settle(err error, id int) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.commitFailed(err, id)
}

// LastCommit returns the number of the last transaction.
func (f *File) LastCommit() (id int) {
	_ = f.view(func(tx *bbolt.Tx) error {
		id = tx.ID()
		return nil
	})
	return id
}

// SnapshotsInProgress returns how many snapshots the file holds pages for.
func (f *File) SnapshotsInProgress() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pinned)
}

// Spoil damages records, in a transaction as any other.
func (f *File) Spoil(name string, revisions map[uint64]bool) error {
	return f.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(logBucket + name))
		for revision := range revisions {
			data := append([]byte(nil), b.Get(revisionKey(revision))...)
			data[len(data)-1-int(revision)%8] ^= 16
			if err := b.Put(revisionKey(revision), data); err != nil {
				return err
			}
		}
		return nil
	})
}

// Lose deletes a record, likewise.
func (f *File) Lose(name string, revision uint64) error {
	return f.update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(logBucket + name)).Delete(revisionKey(revision)) })
}
