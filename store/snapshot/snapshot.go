package snapshot

import (
	"encoding/json"
	"hash/crc32"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultMaxLine is the longest line that Write writes and Read takes, in bytes.
const DefaultMaxLine = 16 << 20

// version is the format's.
const version = 1

// pageSize is how many objects Write asks for at once, as a Reflector does. Storage in memory
// could give small pages at no more cost, but others count with each page what remains: etcd,
// and package bolt for a state that is only in the file.
const pageSize = 10_000

// Options qualify Write and Read. The zero value is ready to use.
type Options struct {
	// Codec turns values into bytes; nil means [codec.JSON]. Read needs that of Write.
	Codec codec.Codec
	// MaxLine is the longest line that Write writes and Read takes, in bytes, which is also
	// about the memory that they need besides the objects; zero means [DefaultMaxLine]. Read
	// needs at least that of Write.
	MaxLine int
}

func (o Options) validate() error {
	if o.MaxLine < 0 {
		return &usercode.ConfigError{Field: "Options.MaxLine", Problem: "is negative; zero means 16 MiB"}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Codec == nil {
		o.Codec = codec.JSON{}
	}
	return o
}

// header is the first line.
type header struct {
	Snapshot int            `json:"snapshot"`
	Revision store.Revision `json:"revision"`
}

// line is an object, or the end.
type line struct {
	Key      string         `json:"key,omitempty"`
	Revision store.Revision `json:"revision,omitempty"`
	Created  store.Revision `json:"created,omitempty"`
	Written  time.Time      `json:"written,omitzero"`
	Expires  time.Time      `json:"expires,omitzero"`
	// Value is the codec's bytes if its tag is 0 and they are JSON as encoding/json writes
	// it; Bytes and Tag are for others.
	Value json.RawMessage `json:"value,omitempty"`
	Tag   uint8           `json:"tag,omitempty"`
	Bytes []byte          `json:"bytes,omitempty"`
	// End is the number of objects, and Sum the CRC-32C of the lines before; only in the last line.
	End *int    `json:"end,omitempty"`
	Sum *uint32 `json:"sum,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
