package serve

import (
	"cmp"
	"context"
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

// delete deletes an object, or marks it.
func (c *call) delete(ctx context.Context) error {
	opts, err := c.deleteOptions()
	if err != nil {
		return err
	}
	item, gone, err := c.resource.Delete(ctx, c.key(), opts)
	if err != nil {
		return err
	}
	if !gone {
		return c.answer(http.StatusOK, item)
	}
	c.answerStatus(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
		ListMeta: metav1.ListMeta{ResourceVersion: item.Revision().String()}, // the revision of the deletion, for replicas
		Details:  &metav1.StatusDetails{Name: c.req.Name, Group: c.req.Group, Kind: c.req.Resource, UID: item.Meta().GetUID()},
	})
	return nil
}

// deleteCollection deletes the objects that the selectors match, at most as many as the
// limit says, and answers with their last states.
func (c *call) deleteCollection(ctx context.Context) error {
	opts, err := c.deleteOptions()
	if err != nil {
		return err
	}
	o, err := c.listOptions()
	if err != nil {
		return err
	}
	which, err := o.forList(c)
	if err != nil {
		return err
	}
	deleted, err := c.resource.DeleteAll(ctx, which, opts)
	if err != nil {
		return offerRest(err, o.fingerprint(c))
	}
	return c.writeList(&deleted, metav1.ListMeta{
		ResourceVersion: deleted.Revision.String(), Continue: sealToken(deleted.Continue, o.fingerprint(c)),
	})
}

// deleteOptions reads them from the body or, if there is none, from the query.
func (c *call) deleteOptions() (registry.DeleteOptions, error) {
	var body []byte
	if c.hasBody() { // otherwise its media type does not matter
		var err error
		if body, err = c.document(); err != nil {
			return registry.DeleteOptions{}, err
		}
	}
	var given metav1.DeleteOptions
	if len(body) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &given); err != nil {
			return registry.DeleteOptions{}, status.BadRequest("the body is not valid DeleteOptions: %v", err)
		}
		if given.Kind != "" && given.Kind != "DeleteOptions" {
			return registry.DeleteOptions{}, status.BadRequest("the body is a %s, not DeleteOptions", given.Kind)
		}
	} else if err := c.deleteQuery(&given); err != nil {
		return registry.DeleteOptions{}, err
	}
	return c.deleteOptionsOf(&given)
}

// deleteQuery reads the options from the query.
func (c *call) deleteQuery(o *metav1.DeleteOptions) error {
	if text := c.req.query.Get("gracePeriodSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return status.BadRequest("gracePeriodSeconds is %q: give a number of seconds", text)
		}
		o.GracePeriodSeconds = &seconds
	}
	if text := c.req.query.Get("propagationPolicy"); text != "" {
		policy := metav1.DeletionPropagation(text)
		o.PropagationPolicy = &policy
	}
	if c.req.query.Has(orphanDependents) {
		orphans := isTrue(c.req.query, orphanDependents)
		//lint:ignore SA1019 clients still send it
		o.OrphanDependents = &orphans
	}
	o.DryRun = c.req.query["dryRun"]
	o.Preconditions = c.preconditionsOfQuery()
	return nil
}

// preconditionsOfQuery returns which object, in which state, the query means: as in Kubernetes, a
// deletion with one would otherwise delete another object. The resourceVersion of a deletion of many
// says which are deleted, as in a list.
func (c *call) preconditionsOfQuery() *metav1.Preconditions {
	p := &metav1.Preconditions{}
	if text := c.req.query.Get("uid"); text != "" {
		p.UID = new(types.UID(text))
	}
	if text := c.req.query.Get("resourceVersion"); text != "" && c.req.Verb == "delete" {
		p.ResourceVersion = &text
	}
	return p
}

// orphanDependents is the older form of propagationPolicy.
const orphanDependents = "orphanDependents"

func (c *call) deleteOptionsOf(o *metav1.DeleteOptions) (registry.DeleteOptions, error) {
	opts := registry.DeleteOptions{Grace: o.GracePeriodSeconds}
	var err error
	if opts.DryRun, err = c.checkDryRun(o.DryRun); err != nil {
		return opts, err
	}
	c.dryRun = opts.DryRun
	if opts.Propagation, err = c.propagation(o); err != nil {
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
func (c *call) propagation(o *metav1.DeleteOptions) (metav1.DeletionPropagation, error) {
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
		return "", c.invalidOption(field.Invalid(path, *o.PropagationPolicy, "may not be given together with orphanDependents, its older form"))
	}
	supported := []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
	}
	if !slices.Contains(supported, *o.PropagationPolicy) {
		return "", c.invalidOption(field.NotSupported(path, *o.PropagationPolicy, supported))
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
