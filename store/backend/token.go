package backend

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"

	"github.com/watchmill/watchmill/store"
)

// Token is the content of a continue token: where the next page of a list starts. All
// backends and caches use it, so a list can be continued at another one over the same
// storage.
type Token struct {
	// Revision is that of the state that is listed. Zero means the newest state at the
	// time of the next page, for an inconsistent list (see [ExpiredContinueError]).
	Revision store.Revision
	// Start is the last key of the previous page: the next page has greater keys.
	Start string
	// Timeline names the history that Revision belongs to, in a form of the engine that
	// made the token, which refuses a token of another history. Empty is unknown.
	// Backends leave it empty and ignore it: each has one history.
	Timeline string
}

// tokenVersion changes with the meaning of the fields, so that a newer program does not
// misinterpret a token.
const tokenVersion = 2

// newestState represents Token.Revision zero in the encoding, where zero is a missing
// field.
const newestState = -1

// tokenWire is the JSON inside a token.
type tokenWire struct {
	Version  int    `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
	Timeline string `json:"timeline,omitempty"`
}

// Encode returns the token as opaque text that is safe in a URL.
func (t Token) Encode() string {
	wire := tokenWire{Version: tokenVersion, Revision: int64(t.Revision), Start: t.Start, Timeline: t.Timeline}
	if t.Revision == 0 {
		wire.Revision = newestState
	}
	text, err := json.Marshal(wire)
	if err != nil {
		return "" // cannot happen: numbers and strings always encode
	}
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(text, tokenSum(text)))
}

// sumBytes is the length of the checksum after a token's text.
const sumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tokenSum detects tokens that were changed by mistake. A change of one character
// changes at most 6 adjacent bits, which the sum always detects.
func tokenSum(text []byte) uint32 { return crc32.Checksum(text, castagnoli) }

// ParseToken parses the text of [Token.Encode]. The error is a [*TokenError] if it was
// cut, changed or made by another program. [ListOptions.Scan] checks the prefix and
// [Scan.Check] the revision.
func ParseToken(token string) (Token, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return Token{}, &TokenError{Reason: "it is not base64url", Cause: err}
	}
	end := len(text) - sumBytes
	if end < 0 || binary.BigEndian.Uint32(text[end:]) != tokenSum(text[:end]) {
		return Token{}, &TokenError{Reason: "its checksum does not match: it was cut or changed"}
	}
	wire, err := decodeWire(text[:end])
	if err != nil {
		return Token{}, &TokenError{Reason: "its content is broken", Cause: err}
	}
	switch {
	case wire.Version != tokenVersion:
		return Token{}, &TokenError{Reason: "its version is unknown"}
	case wire.Revision == 0 || wire.Revision < newestState:
		return Token{}, &TokenError{Reason: "its revision is out of range"}
	}
	if err := store.ValidateKey(wire.Start); err != nil {
		return Token{}, &TokenError{Reason: "its start is not a key", Cause: err}
	}
	if wire.Revision == newestState {
		return Token{Start: wire.Start, Timeline: wire.Timeline}, nil
	}
	return Token{Revision: store.Revision(wire.Revision), Start: wire.Start, Timeline: wire.Timeline}, nil
}

var errTrailing = errors.New("there is more after it")

// decodeWire reads exactly one JSON object with exactly the known fields.
func decodeWire(text []byte) (tokenWire, error) {
	var wire tokenWire
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wire); err != nil {
		return wire, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return wire, errTrailing
	}
	return wire, nil
}
