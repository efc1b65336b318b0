package params

import (
	"cmp"
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

// Delete reads the options of a deletion from its body or, if that is empty, from the query. marked is the
// status code for an object that is only marked. The options say whether it is a dry run even if there is
// an error.
func (r Request) Delete(body []byte) (opts registry.DeleteOptions, marked int, err error) {
	var given metav1.DeleteOptions
	if err := r.readDelete(body, &given); err != nil {
		return opts, 0, err
	}
	opts, err = r.deleteOptions(&given)
	return opts, markedCode(&given), err
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
	if text := r.Query.Get("gracePeriodSeconds"); text != "" {
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
	o.DryRun = r.Query["dryRun"]
	o.Preconditions = r.preconditionsOfQuery()
	return nil
}

// preconditionsOfQuery returns which object, in which state, the query means: as in Kubernetes, a
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
	return p
}

// The parameters that say what becomes of dependents; orphanDependents is the older form.
const (
	propagationPolicy = "propagationPolicy"
	orphanDependents  = "orphanDependents"
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
