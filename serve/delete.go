package serve

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/params"
)

// delete deletes an object, or marks it.
func (c *call) delete(ctx context.Context) error {
	opts, marked, err := c.deleteOptions()
	switch {
	case errors.Is(err, params.ErrUnreadableOnly):
		return c.refuseReadable(ctx)
	case err != nil:
		return err
	}
	item, gone, err := c.resource.Delete(ctx, c.key(), opts)
	if err != nil {
		return err
	}
	if !gone {
		return c.answer(marked, item)
	}
	c.answerStatus(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
		ListMeta: metav1.ListMeta{ResourceVersion: item.Revision().String()}, // the revision of the deletion, for replicas
		Details:  &metav1.StatusDetails{Name: c.req.Name, Group: c.req.Group, Kind: c.req.Resource, UID: item.Meta().GetUID()},
	})
	return nil
}

// refuseReadable answers a deletion that is only for an object that storage cannot decode. As in Kubernetes one that can
// be read stays. One that cannot stays, too: the answer is why.
func (c *call) refuseReadable(ctx context.Context) error {
	if _, err := c.resource.Get(ctx, c.key(), engine.GetOptions{Read: engine.Latest()}); err != nil {
		return err
	}
	return apierrors.NewConflict(c.req.subject().Resource, c.req.Name, errors.New(
		"ignoreStoreReadErrorWithClusterBreakingPotential is only for an object that storage cannot decode, and this one can be read: delete it without"))
}

// deleteCollection deletes the objects that the selectors match, at most as many as the
// limit says, and answers with their last states.
func (c *call) deleteCollection(ctx context.Context) error {
	opts, _, err := c.deleteOptions()
	if err != nil {
		return err
	}
	o, err := c.params().List()
	if err != nil {
		return err
	}
	which, err := o.Options()
	if err != nil {
		return err
	}
	deleted, err := c.resource.DeleteCollection(ctx, which, opts)
	if err != nil {
		return offerRest(err, o)
	}
	return c.writeList(&deleted, metav1.ListMeta{
		ResourceVersion: deleted.Revision.String(), Continue: o.Seal(deleted.Continue),
	})
}

// deleteOptions reads them from the body or, if there is none, from the query. marked is the status code
// for an object that is only marked.
func (c *call) deleteOptions() (opts registry.DeleteOptions, marked int, err error) {
	var body []byte
	if c.body != nil { // otherwise its media type does not matter
		if body, err = c.readJSON(); err != nil {
			return opts, 0, err
		}
	}
	opts, marked, err = c.params().Delete(body)
	c.req.dryRun = opts.DryRun
	return opts, marked, err
}
