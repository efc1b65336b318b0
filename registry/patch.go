package registry

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/patch"
	"github.com/watchmill/watchmill/registry/internal/scale"
	"github.com/watchmill/watchmill/usercode"
)

// PatchType is a media type of patches.
type PatchType string

// The patches that can be applied.
const (
	JSONPatch  PatchType = "application/json-patch+json"
	MergePatch PatchType = "application/merge-patch+json"
	// StrategicPatch needs [Config].StrategicMerge.
	StrategicPatch PatchType = "application/strategic-merge-patch+json"
)

// Patch is a patch that has been read: RFC 6902, RFC 7386, or a strategic merge patch. It is
// immutable.
type Patch struct{ of patch.Patch }

// ParsePatch reads a patch for the resource. The error is a [*BadRequestError], even for a
// strategic merge patch where StrategicMerge is nil, and otherwise as for the function ParsePatch.
func (i *Info) ParsePatch(kind PatchType, body []byte) (*Patch, error) {
	return parsePatch(kind, body, i.StrategicMerge)
}

// ParsePatch reads a JSON patch or a merge patch. The error is a [*BadRequestError], even for a
// patch that nests more than 100 lists and objects, or too many fields below names of more than 16 KiB, and for a
// strategic merge patch, which [Info.ParsePatch] reads. That of a patch of more than 10,000 operations is
// [backend.ErrTooLarge], too, which a server answers with 413.
func ParsePatch(kind PatchType, body []byte) (*Patch, error) { return parsePatch(kind, body, nil) }

// parsePatch reads a patch; merge is nil where strategic merge patches are refused.
func parsePatch(kind PatchType, body []byte, merge Merge) (*Patch, error) {
	if err := checkSent(body); err != nil {
		return nil, err
	}
	p := &Patch{}
	var err error
	switch {
	case kind == JSONPatch:
		p.of, err = patch.Operations(body)
	case kind == MergePatch:
		p.of, err = patch.Merge(body)
	case kind == StrategicPatch && merge != nil:
		p.of, err = patch.Strategic(body, patch.Merging(merge))
	case kind == StrategicPatch:
		err = badRequest("the resource takes no strategic merge patches: send a merge patch or a JSON patch")
	default:
		err = badRequest("%q is not a media type of patches: send a JSON patch (%s) or a merge patch (%s)", kind, JSONPatch, MergePatch)
	}
	if err != nil {
		return nil, unreadablePatch(err)
	}
	return p, nil
}

// unreadablePatch returns a [*patch.SyntaxError] as a [*BadRequestError], and another error as it is.
func unreadablePatch(err error) error {
	if wrong, ok := errors.AsType[*patch.SyntaxError](err); ok {
		return &BadRequestError{Reason: wrong.Reason, Cause: wrong.Cause}
	}
	return err
}

// Check refuses a patch that has fields more than once, or operations with unknown fields, or
// warns of these, or ignores them, as opts.Validation says. The error is a [*BadRequestError].
// Fields that the kind does not have are found when the patched object is stored.
func (p *Patch) Check(opts WriteOptions) error {
	if opts.Validation == IgnoreUnknown {
		return nil
	}
	strict, err := p.of.Strict()
	if err != nil {
		return &BadRequestError{Reason: "the patch does not parse: " + err.Error(), Cause: err}
	}
	for i := range strict {
		strict[i] = fmt.Errorf("the patch: %w", strict[i])
	}
	return opts.judge(strict)
}

// Apply returns the JSON document as the patch changes it. The document stays as it is. As in
// Kubernetes, an operation replace sets a field that is missing, unless its name is a number, and a
// negative index counts from the end of a list. An operation test of a list that has null in it fails.
//
// The error is a [*PatchError], even if the operations copy more than 3 MiB, insert and remove too many
// items in lists that are too long, or are too many for an object of very many fields. A
// [*BadRequestError] of [Config].StrategicMerge, or its panic as a [*usercode.PanicError], is returned
// as it is. It is safe for concurrent use.
func (p *Patch) Apply(document []byte) (patched []byte, err error) {
	patched, err = p.of.Apply(document)
	if err == nil {
		return patched, nil
	}
	err = unreadablePatch(err)
	if errors.As(err, new(*BadRequestError)) || errors.Is(err, usercode.ErrPanic) {
		return nil, err
	}
	return nil, &PatchError{err}
}

// Merge merges a strategic merge patch into an object and returns the result. Both are JSON
// with integers as int64, and may be changed. A [*BadRequestError] says that the patch applies to
// no object, another error that it does not apply to this one. It is called concurrently.
type Merge func(object, patch map[string]any) (map[string]any, error)

// merges returns the merging of the kind's objects and of its scales, each nil if there is none.
func (c *Config[T]) merges() (objects, scales Merge, err error) {
	if c.StrategicMerge == nil {
		return nil, nil, nil
	}
	objects, err = c.StrategicMerge(new(T))
	if err == nil && c.Scale != nil {
		scales, err = c.StrategicMerge(new(scale.Object))
	}
	if err != nil {
		return nil, nil, &engine.ConfigError{Field: "StrategicMerge", Problem: "refuses the kind: " + err.Error()}
	}
	return objects, scales, nil
}
