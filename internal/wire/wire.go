// Package wire reads messages in protobuf for types that have no generated code:
//
//	message ──Read──▶ Fields, by number ──▶ the variables that they were made of
//
// A type declares which variable each field of its message is for. Fields that it does not declare are skipped, since
// they are of later versions.
package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields are the fields of a message that are read, by number.
type Fields map[protowire.Number]Field

// Field is what is read of a field: bytes, or a number.
type Field struct {
	wire protowire.Type
	set  func(text []byte, n uint64) error
}

// Unmarshaler is a message that reads itself.
type Unmarshaler interface{ Unmarshal(data []byte) error }

// Int32 reads a number into a variable.
func Int32(to *int32) Field {
	return Field{protowire.VarintType, func(_ []byte, n uint64) error {
		*to = int32(n)
		return nil
	}}
}

// Bytes reads a field by a function. Its argument is part of the message, and not to be kept.
func Bytes(read func(text []byte) error) Field {
	return Field{protowire.BytesType, func(text []byte, _ uint64) error { return read(text) }}
}

// String reads a text into a variable.
func String(to *string) Field {
	return Bytes(func(text []byte) error {
		*to = string(text)
		return nil
	})
}

// Strings appends each text that the field has to a variable.
func Strings(to *[]string) Field {
	return Bytes(func(text []byte) error {
		*to = append(*to, string(text))
		return nil
	})
}

// Message reads a message within the message.
func Message(to Unmarshaler) Field { return Bytes(to.Unmarshal) }

// Nested reads a message within the message whose type has no method for it.
func Nested(known Fields) Field {
	return Bytes(func(text []byte) error { return Read(text, known) })
}

// Optional reads a message that may be missing, which leaves the pointer nil.
func Optional[T any, P interface {
	*T
	Unmarshaler
}](to **T) Field {
	return Bytes(func(text []byte) error {
		if *to == nil {
			*to = new(T)
		}
		return P(*to).Unmarshal(text)
	})
}

// Messages appends each message that the field has to a variable.
func Messages[T any, P interface {
	*T
	Unmarshaler
}](to *[]T) Field {
	return Bytes(func(text []byte) error {
		var one T
		if err := P(&one).Unmarshal(text); err != nil {
			return err
		}
		*to = append(*to, one)
		return nil
	})
}

// Read reads those fields of a message that are known. Its error says what is no message, or a field of another type.
func Read(message []byte, known Fields) error {
	for len(message) > 0 {
		of, wire, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		field, isKnown := known[of]
		if isKnown && wire != field.wire {
			return fmt.Errorf("the wire type of field %d is %d, and not %d", of, wire, field.wire)
		}
		var text []byte
		var n uint64
		switch {
		case !isKnown:
			size = protowire.ConsumeFieldValue(of, wire, message)
		case wire == protowire.BytesType:
			text, size = protowire.ConsumeBytes(message)
		default:
			n, size = protowire.ConsumeVarint(message)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if !isKnown {
			continue
		}
		if err := field.set(text, n); err != nil {
			return err
		}
	}
	return nil
}
