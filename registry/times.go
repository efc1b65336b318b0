package registry

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/store"
)

// errYear: the years of RFC 3339 have four digits.
var errYear = errors.New("a time is not in the years 0 to 9999 of UTC")

// checkTimes refuses a draft with a time that is in those years where the body says, but not in UTC, in which
// the types of Kubernetes encode it: such an object could be decoded neither by clients nor from storage.
func (f *form) checkTimes(body []byte, draft *store.Object) error {
	if !mayLeaveYears(body) {
		return nil
	}
	if slices.ContainsFunc(f.meta(draft).GetManagedFields(), leavesYears) { // which a map has as texts
		return f.undecodable("the body", errYear)
	}
	text, err := f.layout.Encode(draft, "", false)
	if err != nil {
		return f.undecodable("the body", err)
	}
	if _, err := f.layout.Decode(text, f.schema.New()); err != nil {
		return f.undecodable("the body", fmt.Errorf("%w: %w", errYear, err))
	}
	return nil
}

func leavesYears(e metav1.ManagedFieldsEntry) bool {
	if e.Time == nil {
		return false
	}
	year := e.Time.UTC().Year()
	return year < 0 || year > 9999
}

// mayLeaveYears reports whether a body may have a time that another zone moves out of the years 0 to 9999: one
// of their first or last days, or a text in which digits or dashes are escaped.
func mayLeaveYears(body []byte) bool {
	if bytes.Contains(body, []byte("9999-12-3")) || bytes.Contains(body, []byte("0000-01-0")) {
		return true
	}
	for {
		_, after, escaped := bytes.Cut(body, []byte(`\u00`))
		switch {
		case !escaped:
			return false
		case len(after) > 1 && (after[0] == '3' && after[1] <= '9' || after[0] == '2' && after[1]|0x20 == 'd'):
			return true
		}
		body = after
	}
}
