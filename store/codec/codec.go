package codec

import (
	"encoding/json"
	"fmt"
)

// Codec turns values into bytes and back. Implementations must be pure and safe
// for concurrent use: equal values may be encoded at any time, by any goroutine,
// any number of times. Where a Codec is optional, nil means [JSON]. It never gains methods.
type Codec interface {
	// Encode returns the bytes of value, which is a *T, and the tag that Decode
	// is to be called with. The caller owns data.
	Encode(value any) (tag uint8, data []byte, err error)

	// Decode sets into, a *T that points to a zero value, from data that was
	// encoded with tag. It must not keep data, which may change after it
	// returned. It must refuse tags that it does not know, with a [*TagError].
	Decode(tag uint8, data []byte, into any) error
}

// JSON is the codec that encoding/json is: its tag is 0, and its bytes can be
// read by any other program. Fields that encoding/json leaves out, such as
// unexported ones, are lost. The zero value is ready to use.
type JSON struct{}

// Encode returns value as JSON, with tag 0. The error is that of encoding/json.
func (JSON) Encode(value any) (tag uint8, data []byte, err error) {
	data, err = json.Marshal(value)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot encode as JSON: %w", err)
	}
	return 0, data, nil
}

// Decode reads JSON. It fails with a [*TagError] unless tag is 0.
func (JSON) Decode(tag uint8, data []byte, into any) error {
	if tag != 0 {
		return &TagError{Codec: "JSON", Tag: tag}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot decode JSON: %w", err)
	}
	return nil
}
