package serve

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/status"
)

const (
	// maxName is the longest name of an object, in bytes.
	maxName = 253
	// applyPatch is the media type of server-side apply.
	applyPatch = "application/apply-patch+yaml"
)

// writeOptions reads the parameters of a write, except those of an apply.
func (c *call) writeOptions() (registry.WriteOptions, error) {
	opts, err := c.params().Write(c.r.UserAgent())
	opts.Warn, opts.MaxBytes = c.w.Warn, c.limits.objectBytes()
	return opts, err
}

// applyOptions reads the parameters of an apply.
func (c *call) applyOptions() (registry.WriteOptions, error) {
	opts, err := c.params().Apply()
	opts.Warn, opts.MaxBytes, opts.MayCreate = c.w.Warn, c.limits.objectBytes(), c.mayCreate
	return opts, err
}

// create stores a new object or, if the resource is an action, has done what the object asks for.
func (c *call) create(ctx context.Context) error {
	opts, err := c.writeOptions()
	if err != nil {
		return err
	}
	body, err := c.readJSON()
	if err != nil {
		return err
	}
	var item registry.Item
	if actor, isActor := c.resource.(registry.Actor); isActor && c.req.Subresource != "" {
		item, err = actor.Act(ctx, c.key(), body, opts)
	} else {
		c.nameFrom(body)
		item, err = c.resource.Create(ctx, c.req.Namespace, body, opts)
	}
	if err != nil {
		return c.notCreated(ctx, err)
	}
	if c.req.Name == "" {
		_, c.req.Name = registry.SplitKey(item.Key()) // was generated
	}
	return c.answer(http.StatusCreated, item)
}

// notCreated returns the error of a creation. If there is an object of the name that is being deleted, the
// text says so in the words of Kubernetes, from which clients conclude that the name is going to be free.
func (c *call) notCreated(ctx context.Context, err error) error {
	const why = "object is being deleted: "
	s := status.ErrorOf(err, c.req.subject())
	if s.ErrStatus.Reason != metav1.StatusReasonAlreadyExists || c.req.Name == "" || c.req.Subresource != "" || strings.HasPrefix(s.ErrStatus.Message, why) {
		return err
	}
	there, unread := c.resource.Get(ctx, c.key(), engine.GetOptions{Read: engine.Latest()})
	if unread != nil || there.Meta().GetDeletionTimestamp() == nil {
		return err
	}
	s.ErrStatus.Message = why + s.ErrStatus.Message
	return s
}

// nameFrom takes the name of a new object from its body, for errors and audit. One that no object can
// have is left out: it may be as large as the body.
func (c *call) nameFrom(body []byte) {
	var named struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &named) == nil && len(named.Metadata.Name) <= maxName {
		c.req.Name = named.Metadata.Name
	}
}

// update replaces an object.
func (c *call) update(ctx context.Context) error {
	opts, err := c.writeOptions()
	if err != nil {
		return err
	}
	opts.MayCreate = c.mayCreate
	body, err := c.readJSON()
	if err != nil {
		return err
	}
	return c.answerChanged(c.resource.Update(ctx, c.key(), func(registry.Item) ([]byte, error) { return body, nil }, opts))
}

// apply applies a configuration to an object.
func (c *call) apply(ctx context.Context) error {
	opts, err := c.applyOptions()
	if err != nil {
		return err
	}
	config, _, err := c.readAs(applyPatch)
	if err != nil {
		return err
	}
	return c.answerChanged(c.resource.Apply(ctx, c.key(), config, opts))
}

// patchTypes returns the media types of patches that a resource takes.
func patchTypes(of *registry.Info) []string {
	all := []string{string(registry.JSONPatch), string(registry.MergePatch)}
	if of.StrategicMerge != nil {
		all = append(all, string(registry.StrategicPatch))
	}
	if of.Apply {
		all = append(all, applyPatch)
	}
	return all
}

// patchType returns the media type of a patch, which comes before its parameters: clients that know
// newer types fall back to others after a 415.
func (c *call) patchType() (string, error) {
	header, types := c.r.Header.Get("Content-Type"), patchTypes(c.info)
	if header == "" {
		return "", unsupportedMedia("none", types)
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		media = header
	}
	if !slices.Contains(types, media) {
		return "", unsupportedMedia(strconv.Quote(media), types)
	}
	return media, nil
}

// patch changes a part of an object.
func (c *call) patch(ctx context.Context) error {
	media, err := c.patchType()
	if err != nil {
		return err
	}
	if media == applyPatch {
		return c.apply(ctx)
	}
	opts, err := c.writeOptions()
	if err != nil {
		return err
	}
	body, _, err := c.readAs(media)
	if err != nil {
		return err
	}
	p, err := c.info.ParsePatch(registry.PatchType(media), body)
	if err != nil {
		return err
	}
	if err := p.Check(opts); err != nil {
		return unfit(err)
	}
	opts.Patched = true
	var unapplied error
	item, created, err := c.resource.Update(ctx, c.key(), func(live registry.Item) (patched []byte, err error) {
		if live.IsZero() {
			return nil, engine.ErrNotFound
		}
		now, err := live.JSON()
		if err != nil {
			return nil, err
		}
		patched, unapplied = p.Apply(now)
		return patched, unapplied
	}, opts)
	if unapplied == nil {
		err = unfit(err)
	}
	return c.answerChanged(item, created, err)
}

// unfit returns the error of a patch that makes something of the object which does not decode as one that the patch
// is invalid, as in Kubernetes: after that kubectl edit lets its user try again. It returns other errors as they are,
// among them those of admitters.
func unfit(err error) error {
	bad, is := errors.AsType[*registry.BadRequestError](err)
	if !is || bad.Cause == nil || errors.As(err, new(*registry.AdmissionError)) {
		return err
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), field.OmitValueType{}, status.Cut(bad.Reason))})
}

// answerChanged answers with what an update or an apply has returned.
func (c *call) answerChanged(item registry.Item, created bool, err error) error {
	switch {
	case err != nil:
		return err
	case created:
		return c.answer(http.StatusCreated, item)
	}
	return c.answer(http.StatusOK, item)
}
