package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxNesting is how deep messages may be nested: far deeper than the JSON that they become may be.
const maxNesting = 1000

// checkNesting refuses a message that is nested too deep. A level takes some bytes, and the generated
// code that reads it calls itself for each: a message of megabytes can need more stack than there may
// be, which ends the program.
//
// It takes all bytes for messages until they turn out not to be, and so looks at each byte once.
func checkNesting(message []byte) error {
	ends := []int{len(message)} // of the message, and of those in it that are around at
	for at := 0; len(ends) > 0; {
		end := ends[len(ends)-1]
		size, inside, ok := fieldAt(message[at:end])
		if !ok { // that was the last field, or it is not a message
			at, ends = end, ends[:len(ends)-1]
			continue
		}
		at += size
		if inside == 0 {
			continue
		}
		if ends = append(ends, at+inside); len(ends) > maxNesting {
			return fmt.Errorf("it is nested more than %d deep", maxNesting)
		}
	}
	return nil
}

// fieldAt returns the size of the field at the beginning or, if that is of bytes, how many are before
// them, and how many there are. It takes all that generated code takes; ok is false for what it does not.
func fieldAt(text []byte) (size, inside int, ok bool) {
	tag, size := varint(text)
	if size == 0 {
		return 0, 0, false
	}
	switch protowire.Type(tag & 7) {
	case protowire.VarintType:
		_, more := varint(text[size:])
		return size + more, 0, more > 0
	case protowire.Fixed64Type:
		size += 8
	case protowire.Fixed32Type:
		size += 4
	case protowire.BytesType:
		n, more := varint(text[size:])
		if size += more; more == 0 || n > uint64(len(text)-size) {
			return 0, 0, false
		}
		return size, int(n), true
	case protowire.StartGroupType, protowire.EndGroupType: // what is in a group is skipped field by field
	default:
		return 0, 0, false
	}
	return size, 0, size <= len(text)
}

// varint returns the number at the beginning and its size, which is 0 if there is none. As generated
// code it drops the bits that an uint64 has no room for.
func varint(text []byte) (n uint64, size int) {
	for shift := 0; shift < 64 && size < len(text); shift += 7 {
		b := text[size]
		size++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n, size
		}
	}
	return 0, 0
}
