package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/watchmill/watchmill/internal/directory"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
	"github.com/watchmill/watchmill/usercode"
)

// Open opens the file at path, and creates it if there is none. It reads and checks all
// of it.
//
// Errors: [ErrLocked], [ErrCorrupt], [ErrFormat], [ErrFull] for a new file, those of the
// operating system; [ErrReadOnly] for a file that needs to be repaired; [errors.ErrUnsupported] where
// there are no locks by flock. After an error the file is unchanged.
func Open(path string, opts Options) (*File, error) {
	return open(context.Background(), path, opts)
}

// open is Open until ctx is done.
func open(ctx context.Context, path string, opts Options) (*File, error) {
	if err := opts.validate(os.Getpagesize()); err != nil {
		return nil, err
	}
	if opts.LockTimeout == 0 {
		opts.LockTimeout = DefaultLockTimeout
	}
	f, err := openLocked(directory.Followed(path), opts)
	if err != nil {
		return nil, err
	}
	if err := f.refuseSnapshot(); err != nil {
		return nil, errors.Join(err, f.abandon())
	}
	damaged, err := f.load(ctx)
	if err != nil {
		return nil, errors.Join(err, f.abandon())
	}
	if err := f.prepare(ctx, damaged); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// minMaxBytes returns the smallest Options.MaxBytes that leaves space for records, of which each
// commit writes some pages anew.
func minMaxBytes(pageSize int) int64 { return max(512<<10, 128*int64(pageSize)) }

// validate returns a [*usercode.ConfigError] if the options cannot be for a file with pages of that size.
func (o Options) validate(pageSize int) error {
	invalid := func(field, format string, args ...any) error {
		return &usercode.ConfigError{Field: "Options." + field, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case o.LockTimeout < 0:
		return invalid("LockTimeout", "is %v, which is negative; zero means %v", o.LockTimeout, DefaultLockTimeout)
	case o.MaxBytes != 0 && o.MaxBytes < minMaxBytes(pageSize):
		return invalid("MaxBytes", "is %d, which is less than %d; zero means no bound", o.MaxBytes, minMaxBytes(pageSize))
	case o.ShrinkAt < 0 || o.ShrinkAt >= 1:
		return invalid("ShrinkAt", "is %v, which is not between 0 and 1; zero means never", o.ShrinkAt)
	case o.ReadOnly && (o.Salvage || o.ShrinkAt > 0 || o.MaxBytes > 0):
		return invalid("ReadOnly", "excludes Salvage and ShrinkAt, which write, and MaxBytes, which bounds writes; leave these zero")
	}
	return nil
}

// supported is replaced by tests.
var supported = hasFlock

// validatePlace returns an error if no file can be used at path, or on this system at all. Every
// function that opens or makes one calls it first.
func validatePlace(path string) error {
	switch {
	case !supported:
		return &UnsupportedError{System: runtime.GOOS}
	case path == "":
		return &usercode.ConfigError{Field: "path", Problem: "is empty; give that of the file"}
	}
	return nil
}

// openLocked opens and locks the file at path. It opens it again if path names another
// one by then, because the process that held the lock has replaced it.
func openLocked(path string, opts Options) (*File, error) {
	if err := validatePlace(path); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(opts.LockTimeout); ; {
		file, err := openOrCreate(path, opts)
		if err != nil {
			return nil, err
		}
		release, err := lock(file, path, opts.ReadOnly, max(0, time.Until(deadline)))
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		f := &File{path: path, opts: opts, file: file, release: release, logs: map[string]*log{}, pinned: map[*pinned]struct{}{}}
		same, err := f.isAtPath()
		if same || err != nil {
			if err == nil && !opts.ReadOnly {
				err = removeLeftover(path)
			}
			if err != nil {
				return nil, errors.Join(err, f.abandon())
			}
			return f, nil
		}
		if err := f.abandon(); err != nil {
			return nil, err
		}
	}
}

func openOrCreate(path string, opts Options) (*os.File, error) {
	flag := os.O_RDWR
	if opts.ReadOnly {
		flag = os.O_RDONLY
	}
	for {
		file, err := openRegular(path, flag)
		switch {
		case err == nil:
			return file, nil
		case errors.Is(err, fs.ErrNotExist) && !opts.ReadOnly:
			if err := create(path, opts.LockTimeout); err != nil && !errors.Is(err, errTaken) {
				return nil, err
			}
		case !opts.ReadOnly && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)):
			return nil, fmt.Errorf("cannot open %s for writing: make it writable, or open it for reading only: %w", path, err)
		default:
			return nil, fmt.Errorf("cannot open %s: %w", path, err)
		}
	}
}

var errIrregular = errors.New("it is not a regular file: give the path of one")

// openRegular opens a regular file, and nothing else: a named pipe would wait for a writer.
func openRegular(path string, flag int) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	return os.OpenFile(path, flag, 0)
}

// isAtPath reports whether path still names the file that is open.
func (f *File) isAtPath() (bool, error) {
	mine, err := f.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// removeLeftover removes an unfinished copy of the file, which the caller has locked. It only looks
// if there is none: a file system for reading refuses to remove what is not there, too.
func removeLeftover(path string) error {
	if _, err := os.Lstat(unfinished(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.Remove(unfinished(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove what a crash has left: %w", err)
	}
	return nil
}

// maxFileName is the longest name of a file, in bytes, that all usual file systems take.
const maxFileName = 255

// unfinished returns the path of a new file until it is complete and renamed to path. A
// file at that path is removed, so its name is one that no other file is given. If the
// name of path is too long to append to, it has the beginning of that and a checksum.
func unfinished(path string) string {
	const suffix = ".watchmill-unfinished"
	dir, name := filepath.Split(path)
	if len(name)+len(suffix) > maxFileName {
		sum := sha256.Sum256([]byte(name))
		tail := fmt.Sprintf("~%x", sum[:8])
		name = strings.ToValidUTF8(name[:maxFileName-len(suffix)-len(tail)], "") + tail
	}
	return dir + name + suffix
}

// abandon closes a file that bbolt does not own.
func (f *File) abandon() error {
	defer f.release()
	if _, err := f.file.Stat(); errors.Is(err, os.ErrClosed) {
		return nil // bbolt has closed it, before it failed
	}
	return errors.Join(unlock(f.file), f.file.Close())
}

// load checks the file, and opens it with bbolt if it is intact, or has damaged records that
// are to be salvaged, which it returns.
func (f *File) load(ctx context.Context) (damaged []CorruptError, err error) {
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	most := 1
	if f.opts.Salvage {
		most = math.MaxInt
	}
	found, err := inspect(ctx, f.path, f.file, info.Size(), most)
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt) && !corrupt.foreign && info.Size() > 0:
		return nil, fmt.Errorf("%w: restore a snapshot, or dump what can be read of it", err)
	case err != nil:
		return nil, err
	}
	if damage := found.firstDamage(); damage != nil && !f.opts.Salvage {
		return nil, fmt.Errorf("%w: restore a snapshot, or discard the damaged records, by watchmill store salvage or Options.Salvage", damage)
	}
	f.identity, f.logs, f.largest = found.identity, found.logs, found.largest
	if found.metas.Invalid != nil {
		f.warnings = append(f.warnings, "one meta page is invalid, because a crash interrupted a commit or the newest batch is lost: "+found.metas.Invalid.Error())
	}
	return found.damaged, f.open()
}

// reserve is how many bytes of address space a file is mapped into, so that it can grow without a
// new mapping, which waits for all readers: 64 GiB, or 64 MiB of the little that a process of 32
// bits has.
const reserve = 1 << (26 + 10*(bits.UintSize/64))

// open opens the file with bbolt, which then owns it.
func (f *File) open() error {
	options := &bbolt.Options{
		Timeout:         f.opts.LockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		ReadOnly:        f.opts.ReadOnly,
		PreLoadFreelist: true, // for Usage
		InitialMmapSize: mappable(f.file, reserve),
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return f.file, nil },
	}
	_, err := contained(f.path, func() (err error) {
		f.db, err = bbolt.Open(f.path, 0, options)
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return &LockedError{Path: f.path, Waited: f.opts.LockTimeout}
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("cannot open %s: there is too little address space to map it: is that limited, as by ulimit -v? %w", f.path, err)
	}
	return err
}

// prepare finishes the opening of a file that bbolt has opened.
func (f *File) prepare(ctx context.Context, damaged []CorruptError) error {
	if err := f.sync(); err != nil {
		return err
	}
	if err := f.salvage(damaged); err != nil {
		return err
	}
	if f.opts.ShrinkAt == 0 {
		return nil
	}
	u, err := f.Usage()
	if err != nil || float64(u.Free) <= f.opts.ShrinkAt*float64(u.Size) || u.Size < shrinkFrom {
		return err
	}
	return f.shrink(ctx)
}

// syncFile and syncDirectory are replaced by tests.
var (
	syncFile      = (*os.File).Sync
	syncDirectory = directory.Sync
)

// sync makes what was read last: a process that ended before it had synced its last commit has left
// that in the system's memory, where a power cut would take it back from readers that have seen it.
// So may one have left the name that it gave the file. A directory that cannot be opened, for lack
// of permission or descriptors, is left alone.
func (f *File) sync() error {
	if f.opts.ReadOnly {
		return nil
	}
	if err := syncFile(f.file); err != nil {
		return fmt.Errorf("cannot sync %s, of which the last write may not be on the disk yet: %w", f.path, err)
	}
	err := syncDirectory(filepath.Dir(f.path))
	if failed := (*fs.PathError)(nil); err != nil && !(errors.As(err, &failed) && failed.Op == "open") {
		return fmt.Errorf("cannot sync the directory of %s, whose name may not be on the disk yet: %w", f.path, err)
	}
	return nil
}

// shrinkFrom is the size below which a file is not worth shrinking.
const shrinkFrom = 1 << 20

// problemOf returns the error for a problem that the walk has found.
func problemOf(path string, err error) error {
	var p pages.Problem
	if errors.As(err, &p) {
		return &CorruptError{Path: path, Page: int64(p.Page), What: p.What, foreign: errors.As(err, new(pages.ForeignError))}
	}
	return fmt.Errorf("cannot read %s: %w", filepath.Clean(path), err)
}
