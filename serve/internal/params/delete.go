package params

import (
	"cmp"
	"math"
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

// Delete reads the options of a deletion from its body or, if that is empty, from the query. The
// options say whether it is a dry run even if there is an error.
func (r Request) Delete(body []byte) (registry.DeleteOptions, error) {
	var given metav1.DeleteOptions
	if len(body) == 0 {
		if err := r.deleteQuery(&given); err != nil {
			return registry.DeleteOptions{}, err
		}
		return r.deleteOptions(&given)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &given); err != nil {
		return registry.DeleteOptions{}, status.BadRequest("the body is not valid DeleteOptions: %v", err)
	}
	if given.Kind != "" && given.Kind != "DeleteOptions" {
		return registry.DeleteOptions{}, status.BadRequest("the body is a %s, not DeleteOptions", given.Kind)
	}
	return r.deleteOptions(&given)
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
	if text := r.Query.Get("propagationPolicy"); text != "" {
		policy := metav1.DeletionPropagation(text)
		o.PropagationPolicy = &policy
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

// orphanDependents is the older form of propagationPolicy.
const orphanDependents = "orphanDependents"

// deleteOptions returns what is given as options of the registry.
func (r Request) deleteOptions(o *metav1.DeleteOptions) (registry.DeleteOptions, error) {
	opts := registry.DeleteOptions{Grace: o.GracePeriodSeconds}
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
	path := field.NewPath("propagationPolicy")
	//lint:ignore SA1019 clients still send it
	orphans := o.OrphanDependents
	switch {
	case o.PropagationPolicy == nil && orphans != nil && *orphans:
		return metav1.DeletePropagationOrphan, nil
	case o.PropagationPolicy == nil && orphans != nil:
		return metav1.DeletePropagationBackground, nil
	case o.PropagationPolicy == nil:
		return "", nil
	case orphans != nil:
		return "", r.invalid(field.Invalid(path, *o.PropagationPolicy, "may not be given together with orphanDependents, its older form"))
	}
	supported := []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
	}
	if !slices.Contains(supported, *o.PropagationPolicy) {
		return "", r.invalid(field.NotSupported(path, *o.PropagationPolicy, supported))
	}
	return *o.PropagationPolicy, nil
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
