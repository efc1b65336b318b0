package params

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/watchmill/watchmill/serve/internal/status"
)

// token is what a continue token holds.
type token struct {
	Continue string `json:"c"`
	List     string `json:"l"`
}

// Seal makes a token of the engine, with which this list continues, one that continues no other list. "" stays "".
func (o *List) Seal(next string) string {
	if next == "" {
		return ""
	}
	text, err := json.Marshal(token{next, o.fingerprint()})
	if err != nil {
		return "" // cannot happen: it is two strings
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// unseal returns the engine's token. The error is a Status.
func (o *List) unseal(sealed string) (string, error) {
	refused := func(why string) (string, error) {
		return "", status.BadRequest("the continue token %s: list again without one", why)
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sealed, "="))
	if err != nil {
		return refused("is not valid")
	}
	var t token
	if err := json.Unmarshal(text, &t); err != nil || t.Continue == "" {
		return refused("is not valid")
	}
	if t.List != o.fingerprint() {
		return refused("is of another list")
	}
	return t.Continue, nil
}

// fingerprint differs between lists, so that a token of one list is not used for another.
func (o *List) fingerprint() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00%s", o.of.Group, o.of.Version, o.of.Resource, o.of.Namespace, o.Labels, o.Fields)
	return strconv.FormatUint(h.Sum64(), 36)
}
