package params

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// ErrUnreadableOnly: the deletion is right, but only for an object that storage cannot decode.
var ErrUnreadableOnly = errors.New("the deletion is only for an object that storage cannot decode")

// Delete reads the options of a deletion from its body or, if that is empty, from the query. marked is the
// status code for an object that is only marked. The options say whether it is a dry run even if there is
// an error, which is [ErrUnreadableOnly] or a Status.
func (r Request) Delete(body []byte) (opts registry.DeleteOptions, marked int, err error) {
	var given metav1.DeleteOptions
	if err := r.readDelete(body, &given); err != nil {
		return opts, 0, err
	}
	if opts, err = r.deleteOptions(&given); err == nil {
		err = r.unreadableOnly(&given)
	}
	return opts, markedCode(&given), err
}

// unreadableOnly returns [ErrUnreadableOnly] if the deletion is only for an object that storage cannot decode, and nil if
// it is not. That goes neither together with options for objects that can be read, nor for many objects.
func (r Request) unreadableOnly(o *metav1.DeleteOptions) error {
	if only := o.IgnoreStoreReadErrorWithClusterBreakingPotential; only == nil || !*only {
		return nil
	}
	if r.Verb == "deletecollection" {
		return r.invalid(field.Invalid(field.NewPath(ignoreReadError), true, "is not allowed for a collection: delete one object"))
	}
	var wrong field.ErrorList
	for _, other := range []struct {
		name  string
		given bool
	}{
		{propagationPolicy, o.PropagationPolicy != nil},
		//lint:ignore SA1019 clients still send it
		{orphanDependents, o.OrphanDependents != nil},
		{gracePeriodSeconds, o.GracePeriodSeconds != nil},
		{"preconditions", o.Preconditions != nil},
	} {
		if other.given {
			wrong = append(wrong, field.Invalid(field.NewPath(ignoreReadError), true, "cannot be set together with "+other.name))
		}
	}
	if len(wrong) > 0 {
		return r.invalid(wrong...)
	}
	return ErrUnreadableOnly
}

// readDelete reads the options from the body or the query.
func (r Request) readDelete(body []byte, o *metav1.DeleteOptions) error {
	if len(body) == 0 {
		return r.deleteQuery(o)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, o); err != nil {
		return status.BadRequest("the body is not valid DeleteOptions: %v", err)
	}
	if o.Kind != "" && o.Kind != "DeleteOptions" {
		return status.BadRequest("the body is a %s, not DeleteOptions", o.Kind)
	}
	return nil
}

// markedCode returns the status code for an object that is only marked: as in Kubernetes, just the older form
// of asking for the deletion of dependents is told that this one has only begun.
func markedCode(o *metav1.DeleteOptions) int {
	//lint:ignore SA1019 clients still send it
	if orphans := o.OrphanDependents; orphans != nil && !*orphans {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// deleteQuery reads the options from the query.
func (r Request) deleteQuery(o *metav1.DeleteOptions) error {
	if r.Query.Has(gracePeriodSeconds) {
		text := r.Query.Get(gracePeriodSeconds)
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return status.BadRequest("gracePeriodSeconds is %q: give a number of seconds", text)
		}
		o.GracePeriodSeconds = &seconds
	}
	if r.Query.Has(propagationPolicy) { // one that is empty is wrong, as in a body
		o.PropagationPolicy = new(metav1.DeletionPropagation(r.Query.Get(propagationPolicy)))
	}
	if r.Query.Has(orphanDependents) {
		orphans := IsTrue(r.Query, orphanDependents)
		//lint:ignore SA1019 clients still send it
		o.OrphanDependents = &orphans
	}
	if r.Query.Has(ignoreReadError) {
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = new(IsTrue(r.Query, ignoreReadError))
	}
	o.DryRun = r.Query["dryRun"]
	o.Preconditions = r.preconditionsOfQuery()
	return nil
}

// preconditionsOfQuery returns which object, in which state, the query means, nil for any: as in Kubernetes, a
// deletion with one would otherwise delete another object. The resourceVersion of a deletion of many
// says which are deleted, as in a list.
func (r Request) preconditionsOfQuery() *metav1.Preconditions {
	p := &metav1.Preconditions{}
	if text := r.Query.Get("uid"); text != "" {
		p.UID = new(types.UID(text))
	}
	if text := r.Query.Get("resourceVersion"); text != "" && r.Verb == "delete" {
		p.ResourceVersion = &text
	}
	if p.UID == nil && p.ResourceVersion == nil {
		return nil
	}
	return p
}

// Parameters of deletions. Two say what becomes of dependents, of which orphanDependents is the older form.
const (
	propagationPolicy  = "propagationPolicy"
	orphanDependents   = "orphanDependents"
	gracePeriodSeconds = "gracePeriodSeconds"
	ignoreReadError    = "ignoreStoreReadErrorWithClusterBreakingPotential"
)

// deleteOptions returns what is given as options of the registry.
func (r Request) deleteOptions(o *metav1.DeleteOptions) (registry.DeleteOptions, error) {
	opts := registry.DeleteOptions{GracePeriodSeconds: o.GracePeriodSeconds}
	var err error
	if opts.DryRun, err = r.dryRun(o.DryRun); err != nil {
		return opts, err
	}
	if opts.Propagation, err = r.propagation(o); err != nil {
		return opts, err
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil {
			opts.UID = cmp.Or(string(*p.UID), noUID)
		}
		if p.ResourceVersion != nil {
			opts.Revision = revisionOf(*p.ResourceVersion)
		}
	}
	return opts, nil
}

// propagation returns what a deletion says of dependents, in either form.
func (r Request) propagation(o *metav1.DeleteOptions) (metav1.DeletionPropagation, error) {
	//lint:ignore SA1019 clients still send it
	orphans := o.OrphanDependents
	switch {
	case o.PropagationPolicy == nil && orphans != nil && *orphans:
		return metav1.DeletePropagationOrphan, nil
	case o.PropagationPolicy == nil && orphans != nil:
		return metav1.DeletePropagationBackground, nil
	case o.PropagationPolicy == nil:
		return "", nil
	}
	path, policy := field.NewPath(propagationPolicy), *o.PropagationPolicy
	var wrong field.ErrorList
	if orphans != nil {
		wrong = append(wrong, field.Invalid(path, policy, "may not be given together with orphanDependents, its older form"))
	}
	supported := []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
	}
	if !slices.Contains(supported, policy) {
		wrong = append(wrong, field.NotSupported(path, policy, supported))
	}
	if len(wrong) > 0 {
		return "", r.invalid(wrong...)
	}
	return policy, nil
}

// A uid and a revision that no object has, for preconditions that none meets.
const (
	noUID      = `""`
	noRevision = engine.Revision(math.MaxUint64)
)

// revisionOf returns the revision in a resourceVersion. Any other text, such as that of another
// server, matches no object.
func revisionOf(text string) engine.Revision {
	rev, err := strconv.ParseUint(text, 10, 64)
	if err != nil || rev == 0 || engine.Revision(rev).String() != text {
		return noRevision
	}
	return engine.Revision(rev)
}
