package access

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// userOf returns the user that asks; a call in the process has none.
func userOf(ctx context.Context) serve.User {
	if u, found := serve.UserOf(ctx); found {
		return u
	}
	return serve.Anonymous
}

// infoOf returns a user in the form of reviews.
func infoOf(u serve.User) userInfo {
	return userInfo{Username: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// subjectOf returns the user that a review asks about.
func subjectOf(spec *subjectAccessSpec) serve.User {
	return serve.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: spec.Extra}
}

// describeSelf says which user asks.
func describeSelf(ctx context.Context, review *selfSubjectReview) error {
	review.Status.UserInfo = infoOf(userOf(ctx))
	return nil
}

// reviewSelf says whether the user that asks may do something.
func (c *Config) reviewSelf(ctx context.Context, review *selfSubjectAccessReview) (err error) {
	review.Status, err = c.decide(ctx, userOf(ctx), &review.Spec)
	return err
}

// reviewSubject says whether the user that the review names may do something.
func (c *Config) reviewSubject(ctx context.Context, review *subjectAccessReview) (err error) {
	review.Status, err = c.decideFor(ctx, &review.Spec)
	return err
}

// reviewLocal says whether the user that the review names may do something in the review's namespace.
func (c *Config) reviewLocal(ctx context.Context, review *localSubjectAccessReview) (err error) {
	of, path := review.Spec.ResourceAttributes, field.NewPath("spec")
	switch {
	case review.Spec.NonResourceAttributes != nil:
		return field.Forbidden(path.Child("nonResourceAttributes"), "a path has no namespace: give resourceAttributes, or create a SubjectAccessReview")
	case of != nil && of.Namespace != review.Namespace:
		return field.Invalid(path.Child("resourceAttributes", "namespace"), of.Namespace, "must match metadata.namespace")
	}
	review.Status, err = c.decideFor(ctx, &review.Spec)
	return err
}

// decideFor asks Authorize about the user that a review names.
func (c *Config) decideFor(ctx context.Context, spec *subjectAccessSpec) (status accessStatus, err error) {
	if spec.User == "" && len(spec.Groups) == 0 {
		return status, field.Required(field.NewPath("spec", "user"), "give the name of a user, or groups")
	}
	return c.decide(ctx, subjectOf(spec), &spec.action)
}

// decide asks Authorize whether a user may do something to a resource, or at a path.
func (c *Config) decide(ctx context.Context, u serve.User, what *action) (status accessStatus, err error) {
	var request serve.Request
	of, at := what.ResourceAttributes, what.NonResourceAttributes
	switch {
	case of != nil && at == nil:
		request = requestFor(of)
	case at != nil && of == nil:
		request = serve.Request{Verb: at.Verb, Path: at.Path}
	default:
		return status, field.Required(field.NewPath("spec", "resourceAttributes"), "give either this or nonResourceAttributes")
	}
	if c.Authorize != nil {
		if refusal := c.Authorize(ctx, u, &request); refusal != nil {
			status.Reason = refusal.Error()
			return status, nil
		}
	}
	status.Allowed = true
	return status, nil
}

// requestFor returns a request for a resource. A selector that is given as requirements counts as none,
// which asks for more.
func requestFor(of *resourceAttributes) serve.Request {
	r := serve.Request{
		Verb: of.Verb, Group: of.Group, Version: of.Version, Resource: of.Resource, Subresource: of.Subresource,
		Namespace: of.Namespace, Name: of.Name,
	}
	if of.LabelSelector != nil {
		r.Labels = of.LabelSelector.RawSelector
	}
	if of.FieldSelector != nil {
		r.Fields = of.FieldSelector.RawSelector
	}
	return r
}

// reviewToken says which user a token is of. Tokens have no audiences: a review that names some is not
// answered by a user, since the token may be meant for others.
func (c *Config) reviewToken(ctx context.Context, review *tokenReview) error {
	review.Status = tokenStatus{}
	if review.Spec.Token == "" { // which Authenticate may take for a user without credentials
		return &registry.BadRequestError{Reason: "token is required for TokenReview in authentication"}
	}
	if len(review.Spec.Audiences) > 0 {
		review.Status.Error = "tokens of this server have no audiences: leave spec.audiences out"
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return field.InternalError(field.NewPath("spec", "token"), err)
	}
	r.Header.Set("Authorization", "Bearer "+review.Spec.Token)
	u, err := c.Authenticate(r)
	switch {
	case err == nil && u.Name == serve.Anonymous.Name: // like a request without credentials: no user has the token
	case err == nil:
		review.Status.Authenticated, review.Status.User = true, infoOf(u)
	case !errors.Is(err, serve.ErrUnauthenticated): // it may be a token all the same
		review.Status.Error = err.Error()
	}
	return nil
}
