package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// Kind says what a record's change does.
type Kind uint8

// The kinds of records.
const (
	// Put: the object gets this value.
	Put Kind = 1
	// Delete: the object is deleted. The record has no value.
	Delete Kind = 2
	// Emit: the value is an event and does not change the state.
	Emit Kind = 3
)

// Record is one change of one object.
type Record struct {
	Kind Kind
	// Tag is the tag that the codec returned with Value.
	Tag uint8
	// Sealed: Value is encrypted.
	Sealed bool
	// Lost: the record was damaged, and Salvage has discarded its value.
	Lost bool
	// Prev is the revision of the object's previous record, zero if there is none. It is
	// zero for an Emit, which replaces nothing.
	Prev uint64
	// Created is the revision of the object's creation.
	Created uint64
	// Written is the time of the change; Expires is when the object is to be deleted,
	// zero for never.
	Written, Expires time.Time
	// Key is the object's key, Value the encoded value. Parsed records share the bytes
	// that they were parsed from.
	Key, Value []byte
}

// MaxRecord is the size of the largest record in bytes.
const MaxRecord = 64 << 20

// The bits of the first byte after the checksum: the kind, and which fields follow.
const (
	kindMask    = 0x03
	flagExpires = 0x10
	flagSealed  = 0x20
	flagLost    = 0x40
	allFlags    = flagExpires | flagSealed | flagLost
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MaxOverhead is the most bytes that a record has besides key and value.
const MaxOverhead = 4 + 2 + 7*binary.MaxVarintLen64

// Size returns the most bytes that the encoded record can have.
func (r Record) Size() int { return MaxOverhead + len(r.Key) + len(r.Value) }

// AppendTo appends the record, as that of a revision, to dst:
//
//	crc32c · kind and flags · tag · revision−prev · revision−created ·
//	written · expires · length of key · key · value
//
// The checksum covers the revision and all that follows it. Numbers are varints,
// times are seconds and nanoseconds.
func (r Record) AppendTo(dst []byte, revision uint64) []byte {
	start := len(dst)
	flags := byte(r.Kind)
	if !r.Expires.IsZero() {
		flags |= flagExpires
	}
	if r.Sealed {
		flags |= flagSealed
	}
	if r.Lost {
		flags |= flagLost
	}
	dst = append(dst, 0, 0, 0, 0, flags, r.Tag)
	since := uint64(0)
	if r.Prev != 0 {
		since = revision - r.Prev
	}
	dst = binary.AppendUvarint(dst, since)
	dst = binary.AppendUvarint(dst, revision-r.Created)
	dst = appendTime(dst, r.Written)
	if !r.Expires.IsZero() {
		dst = appendTime(dst, r.Expires)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Key)))
	dst = append(dst, r.Key...)
	dst = append(dst, r.Value...)
	binary.LittleEndian.PutUint32(dst[start:], checksum(revision, dst[start:]))
	return dst
}

// checksum returns the first four bytes of a record. It covers the revision, so that a
// record under another revision's key is found to be damaged.
func checksum(revision uint64, data []byte) uint32 {
	seed := uint32(revision) ^ uint32(revision>>32)*0x9E3779B1
	return crc32.Update(seed, castagnoli, data[4:])
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = binary.AppendVarint(dst, t.Unix())
	return binary.AppendUvarint(dst, uint64(t.Nanosecond()))
}

// The defects of bytes that are not a record.
var (
	errShort    = errors.New("the record is cut off")
	errChecksum = errors.New("the record's checksum is wrong")
	errContent  = errors.New("the record's content makes no sense")
)

// ParseRecord returns the record that data holds, and shares its bytes.
func ParseRecord(revision uint64, data []byte) (Record, error) {
	switch {
	case len(data) < 6:
		return Record{}, errShort
	case binary.LittleEndian.Uint32(data) != checksum(revision, data):
		return Record{}, errChecksum
	}
	return parseUnchecked(revision, data)
}

// parseUnchecked is ParseRecord without the check of the checksum, for damaged records:
// what it returns may be wrong.
func parseUnchecked(revision uint64, data []byte) (Record, error) {
	if len(data) < 6 {
		return Record{}, errShort
	}
	flags := data[4]
	r := Record{
		Kind: Kind(flags & kindMask), Tag: data[5],
		Sealed: flags&flagSealed != 0, Lost: flags&flagLost != 0,
	}
	p := parser{rest: data[6:]}
	since, age := p.uvarint(), p.uvarint()
	r.Written = p.time()
	if flags&flagExpires != 0 {
		r.Expires = p.time()
	}
	r.Key = p.bytes(p.uvarint())
	r.Value = p.rest
	if since != 0 {
		r.Prev = revision - since
	}
	r.Created = revision - age
	switch {
	case p.failed:
		return Record{}, errShort
	case r.Kind == 0, flags&^(kindMask|allFlags) != 0, since >= revision && since != 0, r.Kind == Emit && since != 0, age > revision, len(r.Key) == 0:
		return Record{}, errContent
	}
	return r, nil
}

// parser takes numbers off the front of bytes. failed: there were too few bytes.
type parser struct {
	rest   []byte
	failed bool
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	p.skip(n)
	return v
}

func (p *parser) varint() int64 {
	v, n := binary.Varint(p.rest)
	p.skip(n)
	return v
}

func (p *parser) skip(n int) {
	if n <= 0 {
		p.failed, p.rest = true, nil
		return
	}
	p.rest = p.rest[n:]
}

func (p *parser) bytes(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.failed, p.rest = true, nil
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) time() time.Time {
	seconds, nanos := p.varint(), p.uvarint()
	if nanos >= 1e9 {
		p.failed = true
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanos)).UTC()
}
