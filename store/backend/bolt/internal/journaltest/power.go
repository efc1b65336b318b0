package journaltest

import (
	"bytes"
	"math/rand/v2"
	"os"
)

// Commit is what one transaction did to a file.
type Commit struct {
	before, after []byte
	// changed are the sectors that differ, outside and inside the meta pages.
	data, meta []int
}

// Sector is how many bytes a disk writes completely or not at all.
const Sector = 512

// Recorder takes images of a file to find out what its commits wrote. bbolt needs a real
// file, so the disk cannot be a fake; but the file before and after a commit shows what a
// power cut during the commit could leave.
type Recorder struct {
	path     string
	pageSize int
	last     []byte
	commits  []Commit
}

// NewRecorder begins with the file as it is.
func NewRecorder(path string, pageSize int) (*Recorder, error) {
	r := &Recorder{path: path, pageSize: pageSize}
	var err error
	r.last, err = os.ReadFile(path)
	return r, err
}

// Record returns what has been written since the previous call, by one transaction.
func (r *Recorder) Record() (Commit, error) {
	image, err := os.ReadFile(r.path)
	if err != nil {
		return Commit{}, err
	}
	c := Commit{before: r.last, after: image}
	r.last = image
	for at := 0; at < len(image); at += Sector {
		if bytes.Equal(sector(c.before, at), sector(image, at)) {
			continue
		}
		if at < 2*r.pageSize {
			c.meta = append(c.meta, at)
		} else {
			c.data = append(c.data, at)
		}
	}
	r.commits = append(r.commits, c)
	return c, nil
}

// sector returns the sector at an offset, as zeros where the image has ended.
func sector(image []byte, at int) []byte {
	if at >= len(image) {
		return make([]byte, Sector)
	}
	return image[at:min(at+Sector, len(image))]
}

// Progress is how far a commit got before a power cut.
type Progress int

const (
	// Unsynced: some of the data has reached the disk, and nothing of the meta page.
	Unsynced Progress = iota
	// Synced: all of the data has, and not all of the meta page.
	Synced
	// Complete: all of the commit has.
	Complete
)

// Crash returns the file as a power cut during the commit may have left it: any
// part of the data sectors if it was before the first sync, all of them and any
// part of the meta page if it was before the second. Any number of the sectors
// that were being written may be torn: half old, half new.
func (c Commit) Crash(random *rand.Rand) (image []byte, progress Progress) {
	image = make([]byte, len(c.after))
	copy(image, c.before)
	if random.IntN(4) == 0 && len(c.before) < len(image) {
		image = image[:len(c.before)] // it had not grown yet
	}
	some := c.data
	if random.IntN(2) == 0 {
		progress = Complete // unless the meta page is not
		image = image[:len(c.after)]
		for _, at := range c.data {
			copy(image[at:], sector(c.after, at))
		}
		some = c.meta
	}
	share := random.Float64()
	for _, at := range some {
		from := sector(c.after, at)
		if random.Float64() > share || at >= len(image) {
			from = nil
		} else if random.IntN(8) == 0 {
			from = from[:random.IntN(len(from))]
		}
		if progress == Complete && len(from) < Sector {
			progress = Synced
		}
		if len(from) > 0 {
			copy(image[at:], from)
		}
	}
	return image, progress
}
