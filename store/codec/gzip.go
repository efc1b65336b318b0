package codec

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// compressed is the bit of a tag that says that the bytes are a gzip stream of
// what the codec inside encoded with the other bits as its tag.
const compressed = 0x80

// The limits of a [Gzip] that are not given.
const (
	// DefaultMinSize is the smallest value worth compressing, in bytes.
	DefaultMinSize = 512
	// DefaultMaxSize is the largest value that is taken, in bytes before
	// compression.
	DefaultMaxSize = 64 << 20
)

// Gzip compresses what another codec encodes. Values that are small, or that do
// not shrink, are left as they are, under the inner codec's own tag: so turning
// compression on or off leaves all that was written before readable.
//
// It uses bit 7 of the tag, so the codec inside must use tags below 128. The
// zero value compresses JSON.
type Gzip struct {
	// Codec encodes the values; nil means [JSON].
	Codec Codec
	// Level is compress/gzip's, from 1 (fast) to 9 (small) or
	// [gzip.HuffmanOnly]; zero means [gzip.DefaultCompression].
	Level int
	// MinSize is the smallest encoding that is compressed, in bytes; zero means
	// [DefaultMinSize].
	MinSize int
	// MaxSize bounds an encoding before compression, in bytes: Encode refuses
	// larger ones, and Decode stops there, so that a few bytes cannot make it
	// fill the memory. Zero means [DefaultMaxSize].
	MaxSize int64
}

func (g Gzip) withDefaults() Gzip {
	if g.Codec == nil {
		g.Codec = JSON{}
	}
	if g.Level == 0 {
		g.Level = gzip.DefaultCompression
	}
	if g.MinSize <= 0 {
		g.MinSize = DefaultMinSize
	}
	if g.MaxSize <= 0 {
		g.MaxSize = DefaultMaxSize
	}
	g.MaxSize = min(g.MaxSize, math.MaxInt64-1)
	return g
}

// Encode encodes value by the codec inside and compresses that if it helps. It
// fails with a [*SizeError] for more than MaxSize bytes, and with a [*TagError]
// if the codec inside uses a tag of 128 or more.
func (g Gzip) Encode(value any) (tag uint8, data []byte, err error) {
	g = g.withDefaults()
	tag, plain, err := g.Codec.Encode(value)
	switch {
	case err != nil:
		return 0, nil, err
	case tag&compressed != 0:
		return 0, nil, &TagError{Codec: "Gzip", Tag: tag}
	case int64(len(plain)) > g.MaxSize:
		return 0, nil, &SizeError{Size: int64(len(plain)), Limit: g.MaxSize}
	case len(plain) < g.MinSize:
		return tag, plain, nil
	}
	small, err := g.compress(plain)
	if err != nil {
		return 0, nil, err
	}
	if len(small) >= len(plain) {
		return tag, plain, nil
	}
	return tag | compressed, small, nil
}

// Decode undoes Encode. It fails with a [*SizeError] as soon as more than
// MaxSize bytes come out.
func (g Gzip) Decode(tag uint8, data []byte, into any) error {
	g = g.withDefaults()
	if tag&compressed == 0 {
		return g.Codec.Decode(tag, data, into)
	}
	plain, err := g.decompress(data)
	if err != nil {
		return err
	}
	return g.Codec.Decode(tag&^compressed, plain, into)
}

// writers and readers keep their tables, some 1.2 MB and 40 kB each, for reuse.
var (
	writers sync.Map // of the level: *sync.Pool of *gzip.Writer
	readers = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

func (g Gzip) compress(plain []byte) ([]byte, error) {
	pool, _ := writers.LoadOrStore(g.Level, new(sync.Pool))
	w, _ := pool.(*sync.Pool).Get().(*gzip.Writer)
	if w == nil {
		var err error
		if w, err = gzip.NewWriterLevel(nil, g.Level); err != nil {
			return nil, fmt.Errorf("invalid Gzip.Level: give 1 to 9, gzip.HuffmanOnly, or zero for the default: %w", err)
		}
	}
	defer pool.(*sync.Pool).Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("cannot compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress: %w", err)
	}
	return out.Bytes(), nil
}

func (g Gzip) decompress(data []byte) ([]byte, error) {
	r := readers.Get().(*gzip.Reader)
	defer readers.Put(r)
	in := bytes.NewReader(data)
	if err := r.Reset(in); err != nil {
		return nil, fmt.Errorf("cannot decompress: %w", err)
	}
	r.Multistream(false)
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(r, g.MaxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot decompress: %w", err)
	case n > g.MaxSize:
		return nil, &SizeError{Size: n, Limit: g.MaxSize}
	case in.Len() > 0:
		return nil, fmt.Errorf("cannot decompress: %w", errTrailing)
	}
	return out.Bytes(), nil
}

var errTrailing = errors.New("there are bytes after the end of the stream")
