package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/watchmill/watchmill/store"
)

// Op is what a change does to its key.
type Op uint8

// The operations. The zero value is none of them.
const (
	// Put sets the version of the key, which need not exist.
	Put Op = iota + 1
	// Delete removes the key.
	Delete
)

// opNames has the names of operations by value.
var opNames = []string{Put: "put", Delete: "delete"}

// ParseOp returns the operation of that name. Errors: [ErrUnknownOp].
func ParseOp(name string) (Op, error) {
	if i := slices.Index(opNames, name); i > 0 {
		return Op(i), nil
	}
	return 0, fmt.Errorf("%w %.64q: it is one of %s", ErrUnknownOp, name, strings.Join(opNames[1:], ", "))
}

// String returns the operation's name in traces.
func (o Op) String() string {
	if o == 0 || int(o) >= len(opNames) {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return opNames[o]
}

// Change is one line of a trace.
type Change struct {
	// Time is when the change happened, in UTC.
	Time time.Time
	Op   Op
	// Key is the object's key, valid by store.ValidateKey.
	Key string
	// Version is the object's content after a Put.
	Version string
}

// maxSeconds is the last second of the year 9999, the last year with four digits.
const maxSeconds = 253402300799

// line has the fields of a line; a missing field is nil.
type line struct {
	t                *json.Number
	op, key, version *string
}

// decode decodes one line. It is stricter than encoding/json, which ignores the case
// of names, takes the last of two equal names, and replaces invalid Unicode. Each of these
// would make two different traces read as the same.
func decode(text []byte) (Change, error) {
	if !utf8.Valid(text) {
		return Change{}, fmt.Errorf("%w: it is not valid UTF-8", ErrNotJSON)
	}
	if text = bytes.Trim(text, " \t\r\n"); len(text) == 0 {
		return Change{}, fmt.Errorf("%w: the line is empty", ErrNotJSON)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return Change{}, notJSON(err, "it does not start with {")
	}
	var l line
	for d.More() {
		if err := l.field(d); err != nil {
			return Change{}, err
		}
	}
	if _, err := d.Token(); err != nil {
		return Change{}, notJSON(err, "")
	}
	if _, err := d.Token(); err != io.EOF {
		return Change{}, notJSON(err, "something follows the object")
	}
	return l.change()
}

// notJSON returns an [ErrNotJSON] that says why: because of err or, if that is nil,
// because of the reason.
func notJSON(err error, reason string) error {
	switch err {
	case nil:
		return fmt.Errorf("%w: %s", ErrNotJSON, reason)
	case io.EOF, io.ErrUnexpectedEOF:
		return fmt.Errorf("%w: the line ends inside it", ErrNotJSON)
	}
	return fmt.Errorf("%w: %w", ErrNotJSON, err)
}

// field decodes one name and its value.
func (l *line) field(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return notJSON(err, "")
	}
	switch name, _ := token.(string); name {
	case "t":
		return set(d, name, &l.t)
	case "op":
		return set(d, name, &l.op)
	case "key":
		return set(d, name, &l.key)
	case "version":
		return set(d, name, &l.version)
	default:
		return fmt.Errorf("%w %.64q: a change has t, op, key and version", ErrUnknownField, name)
	}
}

// set decodes the value of the named field.
func set[V json.Number | string](d *json.Decoder, name string, field **V) error {
	if *field != nil {
		return fmt.Errorf("%w %q", ErrDuplicateField, name)
	}
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return notJSON(err, "")
	}
	// A json.Number would also be decoded from a string.
	_, number := any(*field).(*json.Number)
	if quoted := raw[0] == '"'; quoted == number || json.Unmarshal(raw, field) != nil || *field == nil {
		return fmt.Errorf("%w of %q: %.64s", ErrBadValue, name, raw)
	}
	if hasUnpairedSurrogate(raw) {
		return fmt.Errorf("%w of %q: %.64s has an unpaired surrogate", ErrBadValue, name, raw)
	}
	return nil
}

// hasUnpairedSurrogate reports whether a JSON string has an escape that is half of a pair. Decoding
// replaces it by U+FFFD, which a string may also have itself.
func hasUnpairedSurrogate(quoted []byte) bool {
	for i := 0; i+1 < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		unit := escapedUnit(quoted[i:])
		if i++; unit < 0 {
			continue // the escape of another character, which may be a backslash
		}
		if i += 4; !utf16.IsSurrogate(unit) {
			continue
		}
		if utf16.DecodeRune(unit, escapedUnit(quoted[i+1:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escapedUnit returns the UTF-16 code unit of the escape with which the text begins, such as \u00e9, and
// -1 if it begins otherwise.
func escapedUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// change checks the fields and returns the change.
func (l *line) change() (c Change, err error) {
	for _, f := range []struct {
		name  string
		there bool
	}{{"t", l.t != nil}, {"op", l.op != nil}, {"key", l.key != nil}} {
		if !f.there {
			return Change{}, fmt.Errorf("%w %q", ErrMissingField, f.name)
		}
	}
	if c.Op, err = ParseOp(*l.op); err != nil {
		return Change{}, err
	}
	if c.Op == Put && l.version == nil {
		return Change{}, fmt.Errorf("%w %q: a put needs it", ErrMissingField, "version")
	}
	if c.Time, err = parseTime(*l.t); err != nil {
		return Change{}, err
	}
	c.Key = *l.key
	if l.version != nil {
		c.Version = *l.version
	}
	return c, store.ValidateKey(c.Key)
}

// parseTime converts seconds since 1970, whole or with a fraction.
func parseTime(n json.Number) (time.Time, error) {
	if seconds, err := n.Int64(); err == nil && seconds >= -maxSeconds && seconds <= maxSeconds {
		return time.Unix(seconds, 0).UTC(), nil
	}
	seconds, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || math.Abs(seconds) > maxSeconds {
		return time.Time{}, fmt.Errorf(`%w of "t": %.64s is not a time in seconds since 1970`, ErrBadValue, n)
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)).UTC(), nil
}
