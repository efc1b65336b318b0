package etcd

import (
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/usercode"
)

// A value in etcd is the codec's bytes, so that any program can read and write it. Only
// where something must be added it has a header:
//
//	0x00 'W' · version · flags · codec tag · written · expires · the codec's bytes
//
// Times are nanoseconds since 1970, as varints. JSON, protobuf and text do not begin like
// that; bytes that do get a header, too.
const (
	headerStart0  = 0x00
	headerStart1  = 'W'
	headerVersion = 1
	flagSealed    = 1 << 0
)

// maxSize is the most bytes of a value. etcd's own limit is 1.5 MiB for a whole request,
// unless --max-request-bytes says otherwise.
const maxSize = 1400 << 10

var (
	errSealed  = errors.New("it is sealed, and Config.Sealer is nil")
	errHeader  = errors.New("its header is cut off")
	errVersion = errors.New("its header is of a newer version")
)

// header is the metadata of a value.
type header struct {
	tag              uint8
	sealed           bool
	written, expires time.Time // zero means unknown; never
}

// needed reports whether data must have the header.
func (h header) needed(data []byte) bool {
	return h.tag != 0 || h.sealed || !h.expires.IsZero() || hasHeader(data)
}

func hasHeader(data []byte) bool {
	return len(data) >= 2 && data[0] == headerStart0 && data[1] == headerStart1
}

// add returns data behind the header.
func (h header) add(data []byte) []byte {
	out := make([]byte, 0, len(data)+5+2*binary.MaxVarintLen64)
	var flags byte
	if h.sealed {
		flags |= flagSealed
	}
	out = append(out, headerStart0, headerStart1, headerVersion, flags, h.tag)
	out = binary.AppendVarint(out, nanos(h.written))
	out = binary.AppendVarint(out, nanos(h.expires))
	return append(out, data...)
}

// cutHeader returns the header that value begins with, if it does, and the rest.
func cutHeader(value []byte) (h header, data []byte, err error) {
	if !hasHeader(value) {
		return h, value, nil
	}
	switch {
	case len(value) < 5:
		return h, nil, errHeader
	case value[2] != headerVersion, value[3]&^flagSealed != 0:
		return h, nil, errVersion
	}
	h.sealed, h.tag = value[3]&flagSealed != 0, value[4]
	written, rest, err := cutTime(value[5:])
	if err != nil {
		return h, nil, err
	}
	expires, rest, err := cutTime(rest)
	h.written, h.expires = written, expires
	return h, rest, err
}

func cutTime(data []byte) (time.Time, []byte, error) {
	n, size := binary.Varint(data)
	switch {
	case size <= 0:
		return time.Time{}, nil, errHeader
	case n == 0:
		return time.Time{}, data[size:], nil
	}
	return time.Unix(0, n), data[size:], nil
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// values turns objects into values in etcd, and back. It runs the user's code, and returns
// panics as errors.
type values struct {
	prefix string
	keys   keyspace
	schema store.Schema
	codec  codec.Codec
	sealer codec.Sealer
}

// encode returns the value of o, sealed if there is a sealer, with the header that
// it needs.
func (v *values) encode(o *store.Object, written, expires time.Time) ([]byte, error) {
	h := header{sealed: v.sealer != nil, written: written, expires: expires}
	var data []byte
	var err error
	contained := usercode.Call("Codec.Encode", o.Key, func() {
		h.tag, data, err = v.codec.Encode(v.schema.Pointer(o))
	})
	if err = errors.Join(contained, err); err != nil {
		return nil, err
	}
	if h.sealed {
		contained := usercode.Call("Sealer.Seal", o.Key, func() {
			data, err = v.sealer.Seal(data, codec.AAD(v.prefix, o.Key))
		})
		if err = errors.Join(contained, err); err != nil {
			return nil, err
		}
	}
	if h.needed(data) {
		data = h.add(data)
	}
	if len(data) > maxSize {
		return nil, &backend.TooLargeError{Size: len(data), Limit: maxSize}
	}
	return data, nil
}

// decode returns the object that is stored as kv. received is when kv was received, for
// objects that other programs wrote without a time. If the value cannot be decoded, the
// object has the zero value and err says why.
func (v *values) decode(kv *mvccpb.KeyValue, received time.Time) (o *store.Object, err *backend.UndecodableError) {
	h, data, cause := cutHeader(kv.Value)
	o = v.frame(kv, h, received)
	if cause == nil {
		cause = v.decodeInto(o, h, data)
	}
	if cause != nil {
		o = v.frame(kv, h, received)
		return o, &backend.UndecodableError{Type: v.prefix, Key: o.Key, Revision: o.Revision, Tag: h.tag, Cause: cause}
	}
	return o, nil
}

// frame returns the object without its value.
func (v *values) frame(kv *mvccpb.KeyValue, h header, received time.Time) *store.Object {
	o := v.schema.New()
	o.Key, o.Revision, o.Created = v.keys.key(kv.Key), store.Revision(kv.ModRevision), store.Revision(kv.CreateRevision)
	o.Written, o.Expires = h.written, h.expires
	if o.Written.IsZero() {
		o.Written = received
	}
	return o
}

func (v *values) decodeInto(o *store.Object, h header, data []byte) (err error) {
	if h.sealed {
		if v.sealer == nil {
			return errSealed
		}
		contained := usercode.Call("Sealer.Open", o.Key, func() {
			data, _, err = v.sealer.Open(data, codec.AAD(v.prefix, o.Key))
		})
		if err = errors.Join(contained, err); err != nil {
			return err
		}
	}
	contained := usercode.Call("Codec.Decode", o.Key, func() {
		err = v.codec.Decode(h.tag, data, v.schema.Pointer(o))
	})
	if err = errors.Join(contained, err); err != nil {
		return err
	}
	if err := backend.Describe(&v.schema, o); err != nil {
		return err
	}
	return v.schema.Stamp(o, o.Revision)
}
