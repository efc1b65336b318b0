package codec

import (
	"errors"
	"fmt"
)

// Errors besides those of a codec's own encoding, for [errors.Is]. Most have a type that
// says more, for [errors.As].
var (
	// ErrTag: the bytes were encoded in a way that the codec does not know. The
	// error is a [*TagError].
	ErrTag = errors.New("unknown codec tag")
	// ErrTooLarge: a value is larger than the codec takes. The error is a
	// [*SizeError].
	ErrTooLarge = errors.New("value too large")
	// ErrUnknownKey: the bytes were sealed with a key that is not given. The
	// error is an [*UnknownKeyError].
	ErrUnknownKey = errors.New("sealed with an unknown key")
	// ErrNotAuthentic: the bytes are not what was sealed for this object, or were
	// never sealed.
	ErrNotAuthentic = errors.New("sealed value is not authentic")
	// ErrInvalidKey: a sealing key cannot be used. The error is an
	// [*InvalidKeyError].
	ErrInvalidKey = errors.New("invalid sealing key")
)

// TagError says which tag a codec cannot decode.
type TagError struct {
	// Codec is the name of the codec.
	Codec string
	// Tag is the unknown tag.
	Tag uint8
}

func (e *TagError) Error() string {
	return fmt.Sprintf("%s does not know codec tag %d: give the codec that wrote it, or one that also decodes its tag", e.Codec, e.Tag)
}

// Is makes errors.Is(err, ErrTag) true.
func (e *TagError) Is(target error) bool { return target == ErrTag }

// SizeError says that a value is larger than the codec's limit.
type SizeError struct {
	// Size is the size in bytes, or just more than Limit if reading stopped
	// there.
	Size int64
	// Limit is the most that the codec takes.
	Limit int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("value of %d bytes or more is larger than the limit of %d: raise Gzip.MaxSize or store less", e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *SizeError) Is(target error) bool { return target == ErrTooLarge }

// UnknownKeyError says which key is missing.
type UnknownKeyError struct {
	// ID is the key's.
	ID string
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("sealed with the key %q, which is not given: add it after the first one", e.ID)
}

// Is makes errors.Is(err, ErrUnknownKey) true.
func (e *UnknownKeyError) Is(target error) bool { return target == ErrUnknownKey }

// InvalidKeyError says which of the keys that were given cannot be used.
type InvalidKeyError struct {
	// ID is the key's.
	ID string
	// Problem is what is wrong with it and what to do.
	Problem string
}

func (e *InvalidKeyError) Error() string {
	return fmt.Sprintf("invalid sealing key %q: %s", e.ID, e.Problem)
}

// Is makes errors.Is(err, ErrInvalidKey) true.
func (e *InvalidKeyError) Is(target error) bool { return target == ErrInvalidKey }
