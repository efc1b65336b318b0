package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKeyLength is the longest key in bytes: room for a namespace and a name of
// 253 bytes each, several times over.
const MaxKeyLength = 1024

// KeyFunc returns the key of an item. Any string will do as a key. It must be
// pure, and may be called from any goroutine.
type KeyFunc[T any] func(T) (string, error)

// ValidateKey returns a [*KeyError] unless key can name an object: one or more
// path segments separated by single slashes, none of them empty, "." or "..",
// in valid UTF-8 without NUL, at most [MaxKeyLength] bytes.
func ValidateKey(key string) error {
	if plainKey(key) {
		return nil
	}
	invalid := func(reason string) error { return &KeyError{Key: key, Reason: reason} }
	switch {
	case key == "":
		return invalid("it is empty; every object needs a key")
	case len(key) > MaxKeyLength:
		return &KeyError{Key: key[:32] + "…", Reason: fmt.Sprintf("it is longer than %d bytes", MaxKeyLength)}
	case !utf8.ValidString(key) || strings.IndexByte(key, 0) >= 0:
		return invalid("it must be valid UTF-8 without NUL")
	}
	for rest, more := key, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch segment {
		case "":
			return invalid(`it has an empty path segment; write "a/b" without leading, trailing or double slashes`)
		case ".", "..":
			return invalid(`path segments "." and ".." are not allowed`)
		}
	}
	return nil
}

// plainKey is the fast path of ValidateKey: one pass accepts most valid keys, of ASCII
// without a segment that begins with a dot. For any other key it returns false, and
// ValidateKey decides.
func plainKey(key string) bool {
	before := byte('/')
	for i := range len(key) {
		c := key[i]
		if c == 0 || c >= utf8.RuneSelf || before == '/' && (c == '/' || c == '.') {
			return false
		}
		before = c
	}
	return before != '/' && len(key) <= MaxKeyLength
}

// ValidatePrefix returns a [*KeyError] unless prefix can select keys: either
// "" for all, or a valid key with or without a trailing slash.
func ValidatePrefix(prefix string) error {
	switch prefix {
	case "":
		return nil
	case "/":
		return &KeyError{Key: prefix, Reason: `it has no segment before the slash; for all keys write ""`}
	}
	return ValidateKey(strings.TrimSuffix(prefix, "/"))
}

// HasPrefix reports whether key is under prefix, by whole path segments: "foo"
// covers "foo" and "foo/bar" but not "foobar"; "foo/" covers only "foo/bar".
func HasPrefix(key, prefix string) bool {
	if !strings.HasPrefix(key, prefix) {
		return false
	}
	return prefix == "" || len(key) == len(prefix) || prefix[len(prefix)-1] == '/' || key[len(prefix)] == '/'
}

// Before returns a text that is less than key, with no valid key in between, so that
// the keys greater than it are key and those after key. It is not a key itself. Before
// the empty key there is nothing: it returns "".
func Before(key string) string {
	if key == "" {
		return ""
	}
	last := len(key) - 1
	// Strings in between begin like the result, and then have a byte that is not
	// in UTF-8.
	return key[:last] + string([]byte{key[last] - 1, 0xff})
}
