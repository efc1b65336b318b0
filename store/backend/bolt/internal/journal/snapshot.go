package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// A snapshot is the file, with zeros in place of free pages, then its manifest as JSON, the
// length of the manifest in 8 bytes big-endian, and the magic. The manifest has the checksum of
// the file.
const (
	snapshotMagic  = "watchmill snapshot\n"
	snapshotFooter = 8 + len(snapshotMagic)
	maxManifest    = 16 << 20
	copyRun        = 1 << 20
)

// Snapshot writes the file as it is at one moment to w.
func (f *File) Snapshot(ctx context.Context, w io.Writer, timeout time.Duration) (Manifest, error) {
	p, err := f.pin()
	if err != nil {
		return Manifest{}, err
	}
	defer p.release(nil)
	// The pages must not be overwritten while they are copied, but a w that hangs must
	// not keep the file from reusing its space, or from being closed. So after the timeout,
	// and by Close, the pages are released, and the copy fails.
	timer := time.AfterFunc(timeout, func() { p.release(fmt.Errorf("%w: the reader is too slow", ErrTimeout)) })
	defer timer.Stop()

	if err := p.write(ctx, w); err != nil {
		return Manifest{}, fmt.Errorf("cannot write a snapshot of %s: %w", f.path, err)
	}
	return p.manifest, nil
}

func (m Manifest) footer() ([]byte, error) {
	footer, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	footer = binary.BigEndian.AppendUint64(footer, uint64(len(footer)))
	return append(footer, snapshotMagic...), nil
}

// pinned is the file at one moment. Its pages are not overwritten until release.
type pinned struct {
	file     *File
	meta     pages.Meta
	metaPage []byte
	free     []uint64 // the pages without contents that were not copied yet
	manifest Manifest

	mu  sync.Mutex
	tx  *bbolt.Tx // nil after release
	end error     // why it was released before the end of the copy
}

// pin begins the snapshot. It holds the writers' lock meanwhile, so that the meta page
// that it copies is that of the read transaction.
func (f *File) pin() (*pinned, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case f.failed != nil: // the copy might have a write that the file will not have
		return nil, &FailedError{Path: f.path, Cause: f.failed.Cause}
	}
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	metas, err := pages.ReadMetas(f.file, info.Size())
	if err != nil {
		return nil, problemOf(f.path, err)
	}
	p := &pinned{file: f, meta: metas.Newest, metaPage: make([]byte, metas.Newest.PageSize)}
	if _, err := f.file.ReadAt(p.metaPage, int64(p.meta.Page)*p.meta.PageSize); err != nil {
		return nil, err
	}
	if p.free, err = pages.Free(f.file, p.meta); err != nil {
		return nil, problemOf(f.path, err)
	}
	if err := f.guard(func() (err error) { p.tx, err = f.db.Begin(false); return err }); err != nil {
		return nil, err
	}
	p.manifest = Manifest{
		ID: hex.EncodeToString(f.identity.ID[:]), Timeline: f.identity.Timeline, Format: f.identity.Format,
		Revisions: map[string]uint64{}, Bytes: p.meta.Size(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, l := range f.logs {
		p.manifest.Revisions[name] = l.last
	}
	f.pinned[p] = struct{}{}
	return p, nil
}

// release allows the pages to be overwritten, and makes the copy fail with end. A second
// call does nothing.
func (p *pinned) release(end error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tx == nil {
		return
	}
	_ = p.file.guard(p.tx.Rollback)
	p.tx, p.end = nil, end
	p.file.mu.Lock()
	defer p.file.mu.Unlock()
	delete(p.file.pinned, p)
}

// ended returns why the pages were released, nil if they are not.
func (p *pinned) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// endSnapshots makes the snapshots in progress fail.
func (f *File) endSnapshots() {
	f.mu.Lock()
	all := slices.Collect(maps.Keys(f.pinned))
	f.mu.Unlock()
	for _, p := range all {
		p.release(ErrClosed)
	}
}

// write writes the copy of the file, and the manifest, which it completes.
func (p *pinned) write(ctx context.Context, w io.Writer) error {
	sum := sha256.New()
	if err := p.copy(ctx, io.MultiWriter(w, sum)); err != nil {
		return err
	}
	p.manifest.SHA256 = hex.EncodeToString(sum.Sum(nil))
	footer, err := p.manifest.footer()
	if err != nil {
		return err
	}
	_, err = w.Write(footer)
	return err
}

// copy writes the meta page twice, once with each number, and then all other pages, of which
// the free ones become zeros: they still have what was deleted or encrypted.
func (p *pinned) copy(ctx context.Context, w io.Writer) error {
	for number := range uint64(2) {
		pages.SetNumber(p.metaPage, number)
		if _, err := w.Write(p.metaPage); err != nil {
			return err
		}
	}
	run := make([]byte, copyRun)
	for at := 2 * p.meta.PageSize; at < p.meta.Size(); at += int64(len(run)) {
		run = run[:min(int64(len(run)), p.meta.Size()-at)]
		_, err := p.file.file.ReadAt(run, at)
		if end := p.ended(); end != nil {
			return end
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		p.blank(run, at)
		if _, err := w.Write(run); err != nil {
			return err
		}
	}
	return nil
}

// blank makes zeros of what a run, at an offset in the file, has of free pages.
func (p *pinned) blank(run []byte, at int64) {
	for len(p.free) > 0 {
		begin := int64(p.free[0])*p.meta.PageSize - at
		end := begin + p.meta.PageSize
		if begin >= int64(len(run)) {
			return
		}
		clear(run[max(0, begin):min(end, int64(len(run)))])
		if end > int64(len(run)) {
			return // the rest is in the next run
		}
		p.free = p.free[1:]
	}
}

// refuseSnapshot returns an error if the file is a snapshot and open for writing. A write
// would damage the snapshot, and continue the timeline of the file that it is of.
func (f *File) refuseSnapshot() error {
	if f.opts.ReadOnly {
		return nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if m, err := readFooter(f.file, info.Size()); err == nil {
		return &FormatError{Path: f.path, Format: m.Format, Snapshot: true}
	}
	return nil // what is wrong with it, if anything, load finds
}

// readFooter returns the manifest of a snapshot of size bytes.
func readFooter(r io.ReaderAt, size int64) (Manifest, error) {
	end := make([]byte, snapshotFooter)
	if size < int64(snapshotFooter) {
		return Manifest{}, errNoSnapshot
	}
	if _, err := r.ReadAt(end, size-int64(snapshotFooter)); err != nil {
		return Manifest{}, err
	}
	length := binary.BigEndian.Uint64(end)
	if string(end[8:]) != snapshotMagic || length > maxManifest || int64(length) > size-int64(snapshotFooter) {
		return Manifest{}, errNoSnapshot
	}
	data := make([]byte, length)
	if _, err := r.ReadAt(data, size-int64(snapshotFooter)-int64(length)); err != nil {
		return Manifest{}, err
	}
	m, err := parseManifest(data)
	if err == nil && m.Bytes != size-int64(snapshotFooter)-int64(length) {
		err = errNoSnapshot
	}
	return m, err
}

// parseManifest parses a manifest, which in a newer version may have unknown fields.
func parseManifest(data []byte) (m Manifest, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&m) == nil {
		return m, nil
	}
	var newer struct{ Format uint64 }
	if json.Unmarshal(data, &newer) == nil && newer.Format > Format {
		return m, &FormatError{Path: theSnapshot, Format: newer.Format}
	}
	return m, errNoSnapshot
}

var errNoSnapshot = badSnapshot("it does not end like a snapshot: it is cut off, or another kind of file")
