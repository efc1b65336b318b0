package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"time"
)

// Format is the version of the layout that this package reads and writes:
//
//	bucket "watchmill"         "file": format · ID · timeline · created · branch if any
//	                           "log/NAME": first · floor · trimmed · base count · base sum
//	bucket "watchmill/NAME"    sequence: the last revision
//	                           revision, 8 bytes big-endian: the record
//
// Values in the first bucket begin with their CRC-32C; numbers are varints. A
// log's last revision is its bucket's sequence, which bbolt stores beside the bucket's
// root. So it becomes durable with the records, and a page of records that is older than
// the root shows, since its last record has another revision. A log of less than a quarter of
// a page has no pages of its own: an older page with all of it does not show.
const Format = 1

const (
	mainBucket = "watchmill"
	logBucket  = mainBucket + "/" // and the name; sorts after mainBucket
	fileKey    = "file"
	headKey    = "log/" // and the name
)

// MaxName is the length of the longest name of a log in bytes.
const MaxName = 255

// head is the entry of a log in the main bucket.
type head struct {
	first, floor, trimmed uint64
	base                  base
}

// base is a checksum of the records in a log's base, whatever their order: it differs if
// one is missing, changed or added.
type base struct{ count, sum uint64 }

func (b *base) add(revision uint64, data []byte) {
	b.count++
	b.sum += weight(revision, data)
}

func (b *base) remove(revision uint64, data []byte) {
	b.count--
	b.sum -= weight(revision, data)
}

// weight mixes a record's revision and checksum, as splitmix64 does.
func weight(revision uint64, data []byte) uint64 {
	x := revision ^ uint64(binary.LittleEndian.Uint32(data))<<32
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (h head) encode() []byte {
	data := make([]byte, 4, 64)
	for _, n := range []uint64{h.first, h.floor, h.trimmed, h.base.count, h.base.sum} {
		data = binary.AppendUvarint(data, n)
	}
	return seal(data)
}

func parseHead(data []byte) (head, error) {
	rest, err := unseal(data)
	if err != nil {
		return head{}, err
	}
	p := parser{rest: rest}
	h := head{first: p.uvarint(), floor: p.uvarint(), trimmed: p.uvarint()}
	h.base = base{count: p.uvarint(), sum: p.uvarint()}
	if p.failed || h.trimmed > h.floor {
		return head{}, errContent
	}
	return h, nil
}

func (id Identity) encode() []byte {
	data := binary.AppendUvarint(make([]byte, 4, 64), id.Format)
	data = append(data, id.ID[:]...)
	data = binary.AppendUvarint(data, id.Timeline)
	data = appendTime(data, id.Created)
	if id.Branch != 0 {
		data = binary.AppendUvarint(data, id.Branch)
	}
	return seal(data)
}

// parseIdentity parses the identity. If the format is unknown it returns only the
// number, with which every format begins. Versions without a branch ignore what follows
// Created.
func parseIdentity(data []byte) (Identity, error) {
	rest, err := unseal(data)
	if err != nil {
		return Identity{}, err
	}
	p := parser{rest: rest}
	id := Identity{Format: p.uvarint()}
	if !p.failed && id.Format != Format {
		return id, nil
	}
	copy(id.ID[:], p.bytes(uint64(len(id.ID))))
	id.Timeline = p.uvarint()
	id.Created = p.time()
	if len(p.rest) > 0 {
		id.Branch = p.uvarint()
	}
	if p.failed {
		return Identity{}, errContent
	}
	return id, nil
}

// seal writes the checksum of data[4:] into the first four bytes.
func seal(data []byte) []byte {
	binary.LittleEndian.PutUint32(data, crc32.Checksum(data[4:], castagnoli))
	return data
}

// unseal checks the checksum and returns what follows it.
func unseal(data []byte) ([]byte, error) {
	if len(data) < 4 || binary.LittleEndian.Uint32(data) != crc32.Checksum(data[4:], castagnoli) {
		return nil, errChecksum
	}
	return data[4:], nil
}

// revisionKey is the key of a record.
func revisionKey(revision uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), revision)
}

// logOf returns the name of the log that a bucket holds.
func logOf(bucket string) (name string, ok bool) {
	name, ok = strings.CutPrefix(bucket, logBucket)
	return name, ok && name != ""
}

var errName = errors.New("the name of a log must have 1 to 255 bytes")

func validateName(name string) error {
	if name == "" || len(name) > MaxName {
		return errName
	}
	return nil
}

// now is the time for Identity.Created, which has whole seconds.
func now() time.Time { return time.Now().Truncate(time.Second) }
