package registry

import (
	"errors"
	"fmt"
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
