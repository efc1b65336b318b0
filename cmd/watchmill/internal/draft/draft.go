// Package draft writes files that are complete or not there: a draft beside a file takes its
// place once it is whole.
//
//	New ──▶ Write ... ──▶ Publish   the file is replaced
//	              └─────▶ Discard   nothing has changed
//
// [Check] finds out beforehand whether there can be such a file, [Special] whether it is not a
// file but, say, a pipe, and [SameFile] whether two files to write, or one to write and one to
// read, are the same. [OfDisk] distinguishes a full disk from a wrong name.
package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/watchmill/watchmill/internal/directory"
)

// errNoName is the error of a file without a name.
var errNoName = errors.New("the name of the file to write is empty; give one")

// Draft is an incomplete file, next to the one that it replaces when it is complete. Until
// then that one does not change. It is made by the first Write, or by Publish, so that a
// program that is killed before that leaves no file.
type Draft struct {
	// file is nil before the first Write.
	file *os.File
	// target is the file that the draft replaces; "" if file is a pipe or a device,
	// which is written directly.
	target string
	perm   fs.FileMode
}

// New begins a draft of the named file. Errors: those of opening the file for writing, and of
// creating another next to it.
func New(name string) (*Draft, error) {
	old, err := os.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return NewFile(name, 0o666)
	}
	if err != nil {
		return nil, err
	}
	info, err := old.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return &Draft{file: old}, nil
	}
	if err := errors.Join(err, old.Close()); err != nil {
		return nil, err
	}
	return NewFile(name, info.Mode().Perm())
}

// NewFile begins a draft of the named file, which is a regular file or not there, with these
// permissions.
func NewFile(name string, perm fs.FileMode) (*Draft, error) {
	if name == "" {
		return nil, errNoName
	}
	d := &Draft{target: directory.Followed(name), perm: perm} // of a link the target is replaced, not the link
	if err := d.open(); err != nil {
		return nil, err
	}
	d.Discard() // it can be made
	d.file = nil
	return d, nil
}

// Special reports whether there is something at name that is neither a regular file nor a directory,
// such as a pipe: opening that may wait for another program.
func Special(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// Check returns the error of [New], but does not open a pipe, which would wait for its reader.
func Check(name string) error {
	if Special(name) {
		return nil
	}
	_, err := New(name) // which leaves no file
	return err
}

// diskErrors are the errors of a disk that is full or fails.
var diskErrors = append([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO}, systemDiskErrors...)

// OfDisk reports whether an error of writing a file is the disk's, which is full or fails: the name
// of the file is right, and writing may succeed later.
func OfDisk(err error) bool {
	return slices.ContainsFunc(diskErrors, func(of error) bool { return errors.Is(err, of) })
}

// open makes the file of the draft, unless there is one.
func (d *Draft) open() (err error) {
	if d.file != nil {
		return nil
	}
	d.file, err = os.OpenFile(fmt.Sprintf("%s.%08x.tmp", d.target, rand.Uint32()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, d.perm)
	return d.named(err)
}

// Clean removes the drafts of the named file that killed processes have left. No process
// may be writing one.
func Clean(name string) error {
	name = directory.Followed(name)
	beside, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return err
	}
	ofDraft := regexp.MustCompile("^" + regexp.QuoteMeta(filepath.Base(name)) + `\.[0-9a-f]{8}\.tmp$`)
	for _, file := range beside {
		if ofDraft.MatchString(file.Name()) && file.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(name), file.Name())))
		}
	}
	return err
}

// named returns an error about the draft with the name of the file, which the user knows.
func (d *Draft) named(err error) error {
	var at *fs.PathError
	if !d.Direct() && errors.As(err, &at) {
		at.Path = d.target
	}
	return err
}

// Write writes to the draft.
func (d *Draft) Write(p []byte) (int, error) {
	if err := d.open(); err != nil {
		return 0, err
	}
	n, err := d.file.Write(p)
	return n, d.named(err)
}

// Direct reports whether the file is a pipe or a device, which is written directly.
func (d *Draft) Direct() bool { return d.target == "" }

// Publish closes the draft and replaces the file by it, once the draft is on disk, and makes
// that durable, too. After an error the file is as it was, unless the disk failed then.
func (d *Draft) Publish() error {
	if d.Direct() {
		return d.file.Close()
	}
	if err := d.open(); err != nil {
		return err
	}
	if err := errors.Join(d.file.Sync(), d.file.Close()); err != nil {
		return d.named(err)
	}
	if err := os.Rename(d.file.Name(), d.target); err != nil {
		return err
	}
	err := directory.Sync(filepath.Dir(d.target))
	if errors.Is(err, fs.ErrPermission) {
		err = nil // only its owner may read the directory, and so sync it
	}
	return err
}

// Discard removes the draft, if it has not been published.
func (d *Draft) Discard() {
	if d.file == nil {
		return
	}
	d.file.Close()
	if !d.Direct() {
		os.Remove(d.file.Name()) // fails if the draft was published
	}
}
