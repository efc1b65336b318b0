package bolt

import (
	"bytes"
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/usercode"
)

// values turns the values of one type into bytes and back. It runs the user's code, so it
// is called without locks, and returns panics as errors.
type values struct {
	name   string
	schema store.Schema
	codec  codec.Codec
	sealer codec.Sealer
}

// encoded is a value in bytes.
type encoded struct {
	tag    uint8
	sealed bool
	data   []byte
}

// encode returns the value of o in bytes, sealed if there is a sealer.
func (v *values) encode(o *store.Object) (e encoded, err error) {
	if e, err = v.encodePlain(o); err != nil {
		return encoded{}, err
	}
	if v.sealer != nil {
		e.sealed = true
		contained := usercode.Call("Sealer.Seal", o.Key, func() {
			e.data, err = v.sealer.Seal(e.data, codec.AAD(v.name, o.Key))
		})
		err = errors.Join(contained, err)
	}
	if size := len(e.data) + len(o.Key) + journal.MaxOverhead; err == nil && size > journal.MaxRecord {
		err = &TooLargeError{Size: size, Limit: journal.MaxRecord}
	}
	return e, err
}

// encodePlain returns the value of o as the codec encodes it.
func (v *values) encodePlain(o *store.Object) (e encoded, err error) {
	contained := usercode.Call("Codec.Encode", o.Key, func() {
		e.tag, e.data, err = v.codec.Encode(v.schema.Pointer(o))
	})
	return e, errors.Join(contained, err)
}

// stored is a record to decode. Its key is not the file's.
type stored struct {
	revision uint64
	key      string
	record   journal.Record
}

// kept copies what the record still shares with the file, which user code is not given: a
// codec that writes to it would fault.
func (s stored) kept() stored {
	s.record.Key, s.record.Value = nil, bytes.Clone(s.record.Value)
	return s
}

// decode returns the object that a record of a value holds. If the value cannot be
// decoded, the object has the zero value, and err says why.
func (v *values) decode(s stored) (o *store.Object, err *backend.UndecodableError) {
	return v.decodeBy(v.decodeInto, s)
}

// decodeAsWritten is decode of the value as it was encoded: without the revision that the
// schema puts into it, which was not known then.
func (v *values) decodeAsWritten(s stored) (o *store.Object, err *backend.UndecodableError) {
	return v.decodeBy(v.decodeValue, s)
}

func (v *values) decodeBy(decode func(*store.Object, stored) error, s stored) (o *store.Object, err *backend.UndecodableError) {
	o = v.header(s)
	if cause := decode(o, s); cause != nil {
		o = v.header(s)
		return o, &backend.UndecodableError{Type: v.name, Key: s.key, Revision: o.Revision, Tag: s.record.Tag, Cause: cause}
	}
	return o, nil
}

// header returns the object without its value.
func (v *values) header(s stored) *store.Object {
	o := v.schema.New()
	o.Key, o.Revision, o.Created = s.key, store.Revision(s.revision), store.Revision(s.record.Created)
	o.Written, o.Expires = s.record.Written, s.record.Expires
	return o
}

func (v *values) decodeInto(o *store.Object, s stored) error {
	if err := v.decodeValue(o, s); err != nil {
		return err
	}
	if err := backend.Describe(&v.schema, o); err != nil {
		return err
	}
	return v.schema.Stamp(o, o.Revision)
}

func (v *values) decodeValue(o *store.Object, s stored) error {
	if s.record.Lost {
		return errLost
	}
	plain, _, err := v.unseal(s)
	if err != nil {
		return err
	}
	contained := usercode.Call("Codec.Decode", s.key, func() {
		err = v.codec.Decode(s.record.Tag, plain, v.schema.Pointer(o))
	})
	return errors.Join(contained, err)
}

// unseal returns the bytes that the codec encoded, and whether Rewrite should seal them
// anew.
func (v *values) unseal(s stored) (plain []byte, stale bool, err error) {
	switch {
	case !s.record.Sealed:
		return s.record.Value, v.sealer != nil, nil
	case v.sealer == nil:
		return nil, false, errSealed
	}
	contained := usercode.Call("Sealer.Open", s.key, func() {
		plain, stale, err = v.sealer.Open(s.record.Value, codec.AAD(v.name, s.key))
	})
	return plain, stale, errors.Join(contained, err)
}
