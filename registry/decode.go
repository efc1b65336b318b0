package registry

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/registry/internal/jsonlimit"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// decode returns the draft of a body, with defaults.
func (f *form) decode(body []byte, opts *WriteOptions) (*store.Object, error) {
	if err := checkSent(body); err != nil {
		return nil, err
	}
	draft := f.schema.New()
	strict, err := f.layout.Decode(body, draft)
	if err != nil {
		return nil, f.undecodable("the body", err)
	}
	if err := f.checkTimes(body, draft); err != nil {
		return nil, err
	}
	if err := f.checkKind(draft); err != nil {
		return nil, err
	}
	if err := f.pruneDraft(draft, strict, opts); err != nil {
		return nil, err
	}
	f.setTypeMeta(draft)
	if err := f.defaultDraft(draft); err != nil {
		return nil, err
	}
	return draft, nil
}

// undecodable returns the error of JSON that is not of the kind, or of a panic in the
// kind's own decoding, which is not the sender's fault.
func (f *form) undecodable(what string, err error) error {
	if errors.Is(err, usercode.ErrPanic) {
		return err
	}
	return &BadRequestError{Reason: fmt.Sprintf("%s is not a valid %s: %v", what, f.kind.Kind, err), Cause: err}
}

// checkKind refuses a body whose apiVersion or kind is of another kind.
func (f *form) checkKind(draft *store.Object) error {
	of := f.typeMeta(draft)
	return checkKind(apiVersionOf(of), of.GroupVersionKind().Kind, &f.kind)
}

// checkKind refuses a body of this apiVersion and kind, either of which may be empty, unless
// it is of the kind that is wanted.
func checkKind(version, kind string, wanted *Kind) error {
	want := wanted.GroupVersionKind()
	if kind != "" && kind != want.Kind || version != "" && version != want.GroupVersion().String() {
		return badRequest("the body is of %s, but the request is for %s %s", strings.TrimSpace(version+" "+kind), want.GroupVersion(), want.Kind)
	}
	return nil
}

// apiVersionOf returns the apiVersion as it was given. The GroupVersionKind of one that does
// not parse has none.
func apiVersionOf(of schema.ObjectKind) string {
	switch of := of.(type) {
	case *metav1.TypeMeta:
		return of.APIVersion
	case interface{ GetAPIVersion() string }:
		return of.GetAPIVersion()
	}
	return of.GroupVersionKind().GroupVersion().String()
}

// judge refuses a body with unknown or repeated fields, warns of them, or ignores them,
// as o.Validation says.
func (o *WriteOptions) judge(strict []error) error {
	if len(strict) == 0 || o.Validation == IgnoreUnknown {
		return nil
	}
	if o.Validation == RefuseUnknown {
		texts := make([]string, len(strict))
		for i, err := range strict {
			texts[i] = err.Error()
		}
		return &BadRequestError{Reason: "strict decoding error: " + strings.Join(texts, ", "), Cause: errors.Join(strict...)}
	}
	for _, err := range strict {
		o.warn(err.Error())
	}
	return nil
}

// checkSent refuses JSON of a client that would take a parser too long.
func checkSent(body []byte) error { return refused(jsonlimit.Check(body)) }

// refused returns the error of a body that goes beyond the limits of JSON as a [*BadRequestError].
func refused(err error) error {
	if err == nil {
		return nil
	}
	return &BadRequestError{Reason: err.Error(), Cause: err}
}

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
